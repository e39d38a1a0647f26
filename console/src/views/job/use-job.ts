/** The calls behind the page of a job. Each is made again when the job changes. */
import { useInfiniteQuery, useQuery, useQueryClient } from "@tanstack/react-query";
import { useEffect, useMemo } from "react";
import { JobView as Level } from "../../../../src/gen/gangway/v1/job_service_pb.ts";
import { newestOf } from "../../live/live-jobs.ts";
import { useJobsWatch } from "../../live/use-jobs-watch.ts";
import type { JobName } from "../../router/path.ts";
import { bounded, jobs } from "../../rpc/clients.ts";

/** Numbers of a job that waits change without a change of the job. */
const WHY_AGAIN_MS = 5_000;
/** Pods are read from their cluster. */
const PODS_AGAIN_MS = 5_000;
const PODS_PAGE = 100;
/** So many events of a job are shown: the newest of its first pages. */
const EVENTS_PAGE = 1_000;
const EVENTS_MAX = 5_000;

/** The job without its templates, as it is now. */
export function useJob({ namespace, name }: JobName) {
  const query = useQuery({
    queryKey: ["job", namespace, name, "basic"],
    queryFn: ({ signal }) => jobs.getJob({ namespace, name, view: Level.BASIC }, bounded(signal)),
    refetchInterval: 30_000,
  });
  const listed = query.data?.job;
  const names = useMemo(() => [name], [name]);
  const { live, state } = useJobsWatch(names, namespace);
  const job = useMemo(() => {
    if (listed === undefined) return undefined;
    // Another job may have got the name.
    const other = [...live.values()].find((one) => one !== null && one.metadata?.uid !== listed.metadata?.uid);
    return newestOf(listed, live) ?? other ?? listed;
  }, [listed, live]);
  const isGone = listed !== undefined && newestOf(listed, live) === null;
  const version = job?.metadata?.resourceVersion;
  const client = useQueryClient();
  useEffect(() => {
    if (version !== undefined) void client.invalidateQueries({ queryKey: ["job", namespace, name] });
  }, [client, namespace, name, version]);
  return { query, job, isGone, live: state };
}

export function useWhy({ namespace, name }: JobName, hasEnded: boolean) {
  return useQuery({
    queryKey: ["job", namespace, name, "why"],
    queryFn: ({ signal }) => jobs.explainJob({ namespace, name }, bounded(signal)),
    refetchInterval: hasEnded ? false : WHY_AGAIN_MS,
  });
}

export function usePods({ namespace, name }: JobName, hasEnded: boolean) {
  return useInfiniteQuery({
    queryKey: ["job", namespace, name, "pods"],
    initialPageParam: "",
    queryFn: ({ pageParam, signal }) =>
      jobs.listJobPods({ namespace, name, pageSize: PODS_PAGE, pageToken: pageParam }, bounded(signal)),
    getNextPageParam: ({ nextPageToken }) => (nextPageToken === "" ? undefined : nextPageToken),
    refetchInterval: hasEnded ? false : PODS_AGAIN_MS,
  });
}

export function useEvents({ namespace, name }: JobName) {
  return useQuery({
    queryKey: ["job", namespace, name, "events"],
    queryFn: async ({ signal }) => {
      const pages = [];
      let pageToken = "";
      do {
        const page = await jobs.listJobEvents({ namespace, name, pageSize: EVENTS_PAGE, pageToken }, bounded(signal));
        pages.push(...page.events);
        pageToken = page.nextPageToken;
      } while (pageToken !== "" && pages.length < EVENTS_MAX);
      return { events: pages.reverse(), isCut: pageToken !== "" };
    },
  });
}

/** The job with everything that its view FULL has. */
export function useFullJob({ namespace, name }: JobName) {
  return useQuery({
    queryKey: ["job", namespace, name, "full"],
    queryFn: ({ signal }) => jobs.getJob({ namespace, name, view: Level.FULL }, bounded(signal)),
  });
}
