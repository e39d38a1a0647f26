/** Watches the jobs of these names while the page is looked at. */
import { useEffect, useState } from "react";
import type { WatchJobsResponse } from "../../../src/gen/gangway/v1/job_service_pb.ts";
import { jobs } from "../rpc/clients.ts";
import { type CallFailed, callFailed, isPassing } from "../rpc/failure.ts";
import { type FollowState, follow, sleep } from "./follow.ts";
import { type LiveJobs, withChanges } from "./live-jobs.ts";
import { usePageVisible } from "./page-visible.ts";

/** Changes are shown together, four times a second at most. */
const GATHER_MS = 250;
/** The service takes no more names in a filter. */
export const WATCHED_NAMES_MAX = 1_000;

export type LiveState =
  | { readonly kind: FollowState | "paused" | "idle" }
  | { readonly kind: "failed"; readonly failure: CallFailed };

const NONE: LiveJobs = new Map();

/** `namespace` empty: all namespaces. Without names nothing is watched. */
export function useJobsWatch(
  names: readonly string[],
  namespace: string,
): { readonly live: LiveJobs; readonly state: LiveState } {
  const [live, setLive] = useState<LiveJobs>(NONE);
  const [state, setState] = useState<LiveState>({ kind: "idle" });
  const isVisible = usePageVisible();
  const key = JSON.stringify([namespace, ...[...new Set(names)].sort().slice(0, WATCHED_NAMES_MAX)]);
  useEffect(() => {
    const [inNamespace = "", ...watched] = JSON.parse(key) as readonly string[];
    if (watched.length === 0) return setState({ kind: "idle" });
    if (!isVisible) return setState({ kind: "paused" });
    const end = new AbortController();
    let gathered: WatchJobsResponse[] = [];
    let cursor = "";
    const show = setInterval(() => {
      if (gathered.length === 0) return;
      const changes = gathered;
      gathered = [];
      setLive((before) => withChanges(before, changes));
    }, GATHER_MS);
    const filter = { namespace: inNamespace, names: [...watched] };
    follow(
      {
        open: (signal) => jobs.watchJobs({ filter, cursor }, { signal }),
        onMessage: (message) => {
          if (message.cursor !== "") cursor = message.cursor;
          gathered.push(message);
        },
        onState: (kind) => setState((before) => (before.kind === kind ? before : { kind })),
        isPassing,
        random: Math.random,
        sleep,
      },
      end.signal,
    ).catch((cause: unknown) => setState({ kind: "failed", failure: callFailed(cause) }));
    return () => {
      end.abort();
      clearInterval(show);
    };
  }, [key, isVisible]);
  return { live, state };
}
