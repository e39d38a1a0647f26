/** The rows of the list of jobs: pages of the service, kept in place, with what a watch says of them since. */
import { useInfiniteQuery } from "@tanstack/react-query";
import { useEffect, useMemo, useState } from "react";
import type { Job } from "../../../../src/gen/gangway/v1/job_pb.ts";
import { isListedBefore, newestOf } from "../../live/live-jobs.ts";
import { useJobsWatch } from "../../live/use-jobs-watch.ts";
import { bounded, jobs } from "../../rpc/clients.ts";
import type { JobsRequest } from "./jobs-search.ts";
import { NO_ROWS, placed, type RowOrder } from "./row-order.ts";

const PAGE_SIZE = 100;
/** How often the loaded pages are listed again, for each of them. */
const LIST_AGAIN_MS = 15_000;

/** Several jobs are often admitted together. */
const LIST_SOON_MS = 2_000;

/** A row. `isGone`: its record was removed. */
export type JobRow = { readonly job: Job; readonly isGone: boolean };

/** `key` names the search. Another search needs a component of its own, so that its rows begin anew. */
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
  const [{ order, jobs: listed }, setKept] = useState<Kept>({ order: NO_ROWS, jobs: new Map() });
  useEffect(() => {
    if (data === undefined) return;
    setKept((before) => {
      const order = placed(before.order, [...byUid.keys()]);
      return { order, jobs: new Map(order.shown.flatMap((uid) => jobOf(uid, byUid, before.jobs))) };
    });
  }, [data, byUid]);
  const names = useMemo(() => [...listed.values()].map(({ metadata }) => metadata?.name ?? ""), [listed]);
  const { live, state } = useJobsWatch(names, namespace);
  const rows = useMemo(() => {
    return [...listed.values()].map((job): JobRow => {
      const now = newestOf(job, live);
      return { job: now ?? job, isGone: now === null };
    });
  }, [listed, live]);
  useListSoon(
    rows.some(({ job }) => isListedBefore(listed.get(job.metadata?.uid ?? "") ?? job, job)),
    query.refetch,
  );
  return {
    query,
    rows,
    live: state,
    newer: order.newer,
    total: data?.pages[0]?.totalEstimate ?? 0,
    showNewer: () => setKept({ order: placed(NO_ROWS, [...byUid.keys()]), jobs: byUid }),
  };
}

/** Lists again a moment after jobs were admitted: a watch does not say what they hold. */
function useListSoon(isDue: boolean, list: () => unknown): void {
  useEffect(() => {
    if (!isDue) return;
    const timer = setInterval(() => void list(), LIST_SOON_MS);
    return () => clearInterval(timer);
  }, [isDue, list]);
}

/** What is shown of the pages. */
type Kept = { readonly order: RowOrder; readonly jobs: ReadonlyMap<string, Job> };

function jobOf(uid: string, ...sources: readonly ReadonlyMap<string, Job>[]): readonly (readonly [string, Job])[] {
  const job = sources.map((source) => source.get(uid)).find((one) => one !== undefined);
  return job === undefined ? [] : [[uid, job]];
}
