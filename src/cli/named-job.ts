import type { Job } from "../gen/gangway/v1/job_pb.ts";
import { JobService, JobView } from "../gen/gangway/v1/job_service_pb.ts";
import { CommandFailure, EXIT, usageFailure } from "./exit.ts";
import type { Run } from "./shell.ts";

/** A job's name as given: `llama` or, as `-o name` prints it, `pytorchjob/llama`. */
export function jobName(given: string): string {
  const [name = "", ...more] = given.split("/").reverse();
  if (name === "" || more.length > 1) throw usageFailure(`a job must be NAME or KIND/NAME, not ${given}`);
  return name;
}

/** A job's name as given, in which a kind has to be the job's own: whoever says one means no job of another. */
export async function namedJob(run: Run, given: string, namespace: string): Promise<string> {
  const name = jobName(given);
  if (given !== name) await getNamedJob(run, given, { namespace, view: JobView.BASIC });
  return name;
}

/** The job that is named so, of the kind that is given with its name, if one is; undefined where the service answers with none. */
export async function getNamedJob(
  run: Run,
  given: string,
  { namespace, view }: { readonly namespace: string; readonly view: JobView },
): Promise<Job | undefined> {
  const name = jobName(given);
  const { job } = await run.client.call(JobService.method.getJob, { namespace, name, view });
  const kind = job?.spec?.kind ?? "";
  const isMeant = given === name || `${kind}/${name}`.toLowerCase() === given.toLowerCase();
  if (!isMeant) throw new CommandFailure(EXIT.refused, [`error: there is no ${given}: ${name} is a ${kind}`]);
  return job;
}
