import type { Job } from "../../gen/gangway/v1/job_pb.ts";
import { JobService, JobView } from "../../gen/gangway/v1/job_service_pb.ts";
import { CommandFailure, EXIT, usageFailure } from "../exit.ts";
import type { Run } from "../run-command.ts";

/** Returns the name in a job argument: `llama`, or `pytorchjob/llama` as `-o name` prints it. */
export function parseJobName(argument: string): string {
  const [name = "", ...more] = argument.split("/").reverse();
  if (name === "" || more.length > 1) throw usageFailure(`a job must be NAME or KIND/NAME, not ${argument}`);
  return name;
}

/** Returns the name in a job argument. If the argument has a kind, checks that the job is of this kind. */
export async function resolveJobName(run: Run, argument: string): Promise<string> {
  const name = parseJobName(argument);
  if (argument !== name) await getJobByName(run, argument, JobView.BASIC);
  return name;
}

/** Gets the job that a job argument names. Refuses a job of another kind than the argument's. */
async function getJobByName(run: Run, argument: string, view: JobView): Promise<Job | undefined> {
  const name = parseJobName(argument);
  const { job } = await run.client.call(JobService.method.getJob, { namespace: run.namespace, name, view });
  const kind = job?.spec?.kind ?? "";
  const isMatch = argument === name || `${kind}/${name}`.toLowerCase() === argument.toLowerCase();
  if (!isMatch) throw new CommandFailure(EXIT.refused, [`error: there is no ${argument}: ${name} is a ${kind}`]);
  return job;
}

/** Gets the jobs that these job arguments name, in their order. */
export async function getJobsByName(run: Run, names: readonly string[], view: JobView): Promise<readonly Job[]> {
  const jobs: Job[] = [];
  for (const name of names) {
    const job = await getJobByName(run, name, view);
    if (job !== undefined) jobs.push(job);
  }
  return jobs;
}
