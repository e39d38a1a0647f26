import { equals } from "@bufbuild/protobuf";
import { timestampMs } from "@bufbuild/protobuf/wkt";
import { type Job, JobSpecSchema } from "../../gen/gangway/v1/job_pb.ts";
import { JobService, JobView } from "../../gen/gangway/v1/job_service_pb.ts";
import { formatSpan } from "../output/duration.ts";
import { phaseWord, TERMINAL } from "../output/job-words.ts";
import type { Run } from "../run/run-command.ts";
import { namespaceFlag } from "./namespace-flag.ts";

/** Gets the job that has the name of a submitted one, in full. Null if it is gone meanwhile. */
export async function existingJob(run: Run, { metadata }: Job): Promise<Job | null> {
  const { namespace = "", name = "" } = metadata ?? {};
  try {
    const { job } = await run.client.call(JobService.method.getJob, { namespace, name, view: JobView.FULL });
    return job ?? null;
  } catch {
    // The refusal of the submission says more than this one.
    return null;
  }
}

/** True if a manifest has everything that the job has now, defaults included: `gangway get -o yaml` printed it. */
export function isPrintedFrom(existing: Job, { spec, metadata }: Job): boolean {
  const labels = (job: Job["metadata"]) => JSON.stringify(Object.entries(job?.labels ?? {}).sort());
  return (
    spec !== undefined &&
    existing.spec !== undefined &&
    equals(JobSpecSchema, existing.spec, spec) &&
    labels(existing.metadata) === labels(metadata)
  );
}

/**
 * Says that a job has ended, and how it runs again; null if it has not ended. `differs`: another job of its name was
 * refused.
 */
export function endedNote(run: Run, job: Job, differs: boolean): string | null {
  const { phase = 0, completionTime } = job.status ?? {};
  if (!TERMINAL.includes(phase)) return null;
  const { name = "" } = job.metadata ?? {};
  const nowMs = run.deps.clock.nowMs();
  const ago = completionTime === undefined ? "" : ` ${formatSpan(nowMs - timestampMs(completionTime))} ago`;
  const flag = namespaceFlag(run, [job]);
  const ended = `note: ${name} has ended (${phaseWord(phase)}${ago})`;
  return differs
    ? `${ended}; to submit another job of this name, delete its record: "gangway delete ${name}${flag}"`
    : `${ended} and does not run again; "gangway rerun ${name}${flag}" submits it anew`;
}
