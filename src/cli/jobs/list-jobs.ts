import type { JobPhase } from "../../gen/gangway/v1/job_pb.ts";
import { JobService, type JobView } from "../../gen/gangway/v1/job_service_pb.ts";
import { pagesUpTo } from "../rpc/pages.ts";
import type { Run } from "../run/run-command.ts";
import { type JobFilterOptions, jobFilterOf, localFilterOf } from "./job-filter.ts";

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
  const filter = given.phases?.length === 0 ? { ...given, phases: [...phases] } : given;
  const isWanted = await localFilterOf(run, options);
  let total = 0;
  const { items: jobs, isCut } = await pagesUpTo(limit, async ({ pageSize, pageToken }) => {
    const size = isWanted === null ? pageSize : PAGE_SIZE;
    const request = { filter, orderBy, pageSize: size, pageToken, ...(view === undefined ? {} : { view }) };
    const page = await run.client.call(JobService.method.listJobs, request);
    total = page.totalEstimate;
    return { items: isWanted === null ? page.jobs : page.jobs.filter(isWanted), next: page.nextPageToken };
  });
  if (isWanted === null) return { jobs, total, isCut };
  return { jobs: jobs.slice(0, limit), total: jobs.length, isCut: isCut || jobs.length > limit };
}
