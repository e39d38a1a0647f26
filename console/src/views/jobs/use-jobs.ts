/** The rows of the list of jobs: pages of the service, kept in place, with what a watch says of them since. */
import { useInfiniteQuery } from "@tanstack/react-query";
import { useEffect, useMemo, useState } from "react";
import type { Job } from "../../../../src/gen/gangway/v1/job_pb.ts";
import { newestOf } from "../../live/live-jobs.ts";
import { useJobsWatch } from "../../live/use-jobs-watch.ts";
import { bounded, jobs } from "../../rpc/clients.ts";
import type { JobsRequest } from "./jobs-search.ts";
import { NO_ROWS, placed, type RowOrder } from "./row-order.ts";

const PAGE_SIZE = 100;
/** How often the loaded pages are listed again, for each of them. */
const LIST_AGAIN_MS = 15_000;

/** A row. `isGone`: its record was removed. */
export type JobRow = { readonly job: Job; readonly isGone: boolean };

/** `key` names the search: another one begins anew. */
export function useJobs(key: string, { filter, orderBy, namespace }: JobsRequest) {
  const query = useInfiniteQuery({
    queryKey: ["jobs", key],
    initialPageParam: "",
    queryFn: ({ pageParam, signal }) =>
      jobs.listJobs({ filter, orderBy, pageSize: PAGE_SIZE, pageToken: pageParam }, bounded(signal)),
    getNextPageParam: ({ nextPageToken }) => (nextPageToken === "" ? undefined : nextPageToken),
    refetchInterval: ({ state }) => LIST_AGAIN_MS * Math.max(1, state.data?.pages.length ?? 1),
  });
  const { data } = query;
  const byUid = useMemo(() => {
    const listed = data?.pages.flatMap((page) => page.jobs) ?? [];
    return new Map(listed.map((job) => [job.metadata?.uid ?? "", job]));
  }, [data]);
  const [kept, setKept] = useState<Kept>({ key, order: NO_ROWS, jobs: new Map() });
  useEffect(() => {
    if (data === undefined) return;
    setKept((before) => {
      const known = before.key === key ? before : { key, order: NO_ROWS, jobs: new Map<string, Job>() };
      const order = placed(known.order, [...byUid.keys()]);
      return { key, order, jobs: new Map(order.shown.flatMap((uid) => jobOf(uid, byUid, known.jobs))) };
    });
  }, [data, byUid, key]);
  const { order, jobs: listed } = kept.key === key ? kept : { order: NO_ROWS, jobs: new Map<string, Job>() };
  const names = useMemo(() => [...listed.values()].map(({ metadata }) => metadata?.name ?? ""), [listed]);
  const { live, state } = useJobsWatch(names, namespace);
  const rows = useMemo(() => {
    return [...listed.values()].map((job): JobRow => {
      const now = newestOf(job, live);
      return { job: now ?? job, isGone: now === null };
    });
  }, [listed, live]);
  return {
    query,
    rows,
    live: state,
    newer: order.newer,
    total: data?.pages[0]?.totalEstimate ?? 0,
    showNewer: () => setKept({ key, order: placed(NO_ROWS, [...byUid.keys()]), jobs: byUid }),
  };
}

/** What is shown of the pages for one request. */
type Kept = { readonly key: string; readonly order: RowOrder; readonly jobs: ReadonlyMap<string, Job> };

function jobOf(uid: string, ...sources: readonly ReadonlyMap<string, Job>[]): readonly (readonly [string, Job])[] {
  const job = sources.map((source) => source.get(uid)).find((one) => one !== undefined);
  return job === undefined ? [] : [[uid, job]];
}
