import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { CountedJobs, JobCounts, JobProperty as Property } from "../../core/job/request/count.ts";
import { type CountJobsRequest, JobProperty } from "../../gen/gangway/v1/job_service_pb.ts";
import { canonicalJson } from "../../runtime/json.ts";
import { SharedCalls } from "../../runtime/shared-calls.ts";
import type { JobReads } from "../ports.ts";
import type { CallContext } from "../rpc/call.ts";
import { jobFilter } from "./job-filter.ts";
import { shownNamespaces } from "./read-jobs.ts";

/** A count reads every job that has not ended, so few run at a time. */
const COUNTS_MAX = 2;

const PROPERTIES: Readonly<Record<Property, JobProperty>> = {
  phase: JobProperty.PHASE,
  queue: JobProperty.QUEUE,
  namespace: JobProperty.NAMESPACE,
  owner: JobProperty.OWNER,
  kind: JobProperty.KIND,
  cluster: JobProperty.CLUSTER,
  flavor: JobProperty.FLAVOR,
  reason: JobProperty.REASON,
};

const NAMES = Object.keys(PROPERTIES) as Property[];

/** Makes the function that answers CountJobs. Equal counts that wait for their turn at the same time are one. */
export function jobCounter(reads: JobReads) {
  const counts = new SharedCalls(COUNTS_MAX);
  return async (request: CountJobsRequest, { access, signal }: Pick<CallContext, "access" | "signal">) => {
    const shown = shownNamespaces("BASIC", access);
    const query = {
      filter: await jobFilter(reads, request.filter, { shown, access }),
      groupBy: request.groupBy.flatMap((asked) => NAMES.filter((name) => PROPERTIES[name] === asked)),
    };
    const counted = await counts.run(canonicalJson(query), () => reads.countJobs(query), signal);
    return counted === null ? {} : toProtoCounts(counted, query.groupBy);
  };
}

function toProtoCounts(
  { groups, rest, restGroups, endedCapped, endedSinceMs }: JobCounts,
  groupBy: readonly Property[],
) {
  // All jobs are one group, even if there are none.
  const all = groupBy.length === 0 && groups.length === 0 ? [NO_JOBS] : groups;
  return {
    groups: all.map(toProtoCount),
    ...(rest === null ? {} : { rest: toProtoCount(rest) }),
    restGroups: BigInt(restGroups),
    endedCapped,
    ...(endedSinceMs === null ? {} : { endedSince: timestampFromMs(endedSinceMs) }),
  };
}

const NO_JOBS: CountedJobs = { values: [], jobs: 0, pods: 0, tokens: {}, oldestCreateMs: null };

function toProtoCount({ values, jobs, pods, tokens, oldestCreateMs }: CountedJobs) {
  return {
    values: [...values],
    jobs: BigInt(jobs),
    pods: BigInt(pods),
    tokens: Object.fromEntries(Object.entries(tokens).map(([pool, amount]) => [pool, BigInt(amount)])),
    ...(oldestCreateMs === null ? {} : { oldestCreateTime: timestampFromMs(oldestCreateMs) }),
  };
}
