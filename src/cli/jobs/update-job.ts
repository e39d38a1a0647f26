import type { MessageInitShape } from "@bufbuild/protobuf";
import type { JobSchema } from "../../gen/gangway/v1/job_pb.ts";
import { JobService } from "../../gen/gangway/v1/job_service_pb.ts";
import { qualifiedName } from "../output/job-text.ts";
import { printLines } from "../output/print.ts";
import type { Run } from "../run/run-command.ts";

type JobSpecInit = Exclude<NonNullable<MessageInitShape<typeof JobSchema>["spec"]>, { $typeName: string }>;

export type MaskedUpdate = {
  readonly spec?: JobSpecInit;
  readonly labels?: Record<string, string>;
  readonly resourceVersion?: string;
  /** The update mask: the service reads only these fields. Others may be set too. */
  readonly paths: readonly string[];
};

/** Updates one job, and prints its name with `verb`, such as `scaled`. */
export async function updateJob(
  run: Run,
  job: { readonly namespace: string; readonly name: string },
  verb: string,
  { spec, labels, resourceVersion, paths }: MaskedUpdate,
): Promise<void> {
  const metadata = { ...job, ...(labels && { labels }), ...(resourceVersion && { resourceVersion }) };
  const updated = await run.client.call(JobService.method.updateJob, {
    job: { metadata, ...(spec && { spec }) },
    updateMask: { paths: [...paths] },
  });
  printLines(run, [`${updated.job === undefined ? job.name : qualifiedName(updated.job)} ${verb}`]);
}

/** Makes a spec of the fields that the update mask names. The other fields may be missing. */
export function partialSpec(fields: Partial<JobSpecInit>): JobSpecInit {
  return { ...fields } as JobSpecInit;
}
