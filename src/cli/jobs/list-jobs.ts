import type { Job, JobPhase } from "../../gen/gangway/v1/job_pb.ts";
import { JobService, type JobView } from "../../gen/gangway/v1/job_service_pb.ts";
import { append } from "../../runtime/lists.ts";
import type { Run } from "../run-command.ts";
import { type JobFilterOptions, jobFilterOf } from "./job-filter.ts";

type ListOptions = JobFilterOptions & {
  readonly orderBy?: string;
  readonly limit: number;
  readonly view?: JobView;
};

const PAGE_SIZE = 500;

/** Fetches the pages of jobs up to the limit. `phases` applies if the options name no phase. */
export async function listJobs(run: Run, options: ListOptions, phases: readonly JobPhase[] = []) {
  const { orderBy = "", limit, view } = options;
  const given = await jobFilterOf(run, options, []);
  const filter = options.phase === undefined ? { ...given, phases: [...phases] } : given;
  const jobs: Job[] = [];
  let pageToken = "";
  let total = 0;
  do {
    const pageSize = Math.min(PAGE_SIZE, limit - jobs.length);
    const request = { filter, orderBy, pageSize, pageToken, ...(view === undefined ? {} : { view }) };
    const page = await run.client.call(JobService.method.listJobs, request);
    append(jobs, page.jobs);
    pageToken = page.nextPageToken;
    total = page.totalEstimate;
  } while (pageToken !== "" && jobs.length < limit);
  return { jobs, total, isCut: pageToken !== "" };
}
