/** The jobs that manifests name, for commands that act on jobs that exist. */
import { JobService, JobView } from "../../gen/gangway/v1/job_service_pb.ts";
import type { ReadyManifest } from "../manifest/read-manifests.ts";
import { type ReadReadyOptions, readReady } from "../manifest/read-ready.ts";
import { isNotFound } from "../rpc/call-error.ts";
import type { Run } from "../run/run-command.ts";
import { CommandFailure, EXIT } from "../shell/exit.ts";
import type { JobRef } from "./job-name.ts";

/** Checks that each manifest names a job that exists, and is of its kind, before anything is done. */
export async function jobsOfManifests(
  run: Run,
  paths: readonly string[],
  options: ReadReadyOptions & { readonly ignoresMissing: boolean },
): Promise<readonly JobRef[]> {
  const ready = await readReady(run, paths, options);
  const errors: string[] = [];
  const refs: JobRef[] = [];
  for (const manifest of ready) {
    const judged = await judge(run, manifest);
    if (judged.kind === "exists") refs.push(judged.ref);
    else if (judged.kind === "wrong" || !options.ignoresMissing)
      errors.push(`error: ${manifest.where}: ${judged.message}`);
  }
  if (errors.length > 0) throw new CommandFailure(EXIT.refused, [...errors, options.otherwise]);
  return refs;
}

type Judged =
  | { readonly kind: "exists"; readonly ref: JobRef }
  | { readonly kind: "wrong" | "missing"; readonly message: string };

async function judge(run: Run, { job }: ReadyManifest): Promise<Judged> {
  const { namespace = "", name = "" } = job.metadata ?? {};
  const kind = job.spec?.kind ?? "";
  if (name === "") return { kind: "wrong", message: "it has no metadata.name, so it names no job" };
  const found = await kindOf(run, { namespace, name });
  if (found === null) return { kind: "missing", message: `job ${namespace}/${name} does not exist` };
  if (found !== kind) return { kind: "wrong", message: `${namespace}/${name} is a ${found}, not a ${kind}` };
  return { kind: "exists", ref: { namespace, name } };
}

/** The kind of a job. Null: it does not exist. */
async function kindOf(run: Run, ref: JobRef): Promise<string | null> {
  try {
    const { job } = await run.client.call(JobService.method.getJob, { ...ref, view: JobView.BASIC });
    return job?.spec?.kind ?? "";
  } catch (error) {
    if (isNotFound(error)) return null;
    throw error;
  }
}
