/** Reads the logs of a job, and goes on when the stream breaks. */
import { useEffect, useState } from "react";
import type { StreamJobLogsResponse } from "../../../../src/gen/gangway/v1/job_service_pb.ts";
import { type FollowState, follow, sleep } from "../../live/follow.ts";
import { usePageVisible } from "../../live/page-visible.ts";
import type { JobName } from "../../router/path.ts";
import { jobs } from "../../rpc/clients.ts";
import { type CallFailed, callFailed, isPassing } from "../../rpc/failure.ts";
import { type LogBuffer, NO_LINES, type ShownLine, withLines } from "./log-buffer.ts";

/** So many existing lines of each replica are read first. */
export const TAIL_LINES = 1_000;
/** Lines are shown together, a few times a second. */
const GATHER_MS = 200;

export type LogState =
  | { readonly kind: FollowState | "paused" | "ended" }
  | { readonly kind: "failed"; readonly failure: CallFailed };

type LogsAsked = { readonly name: JobName; readonly replica: string; readonly follows: boolean };

/** `tries`: another number reads everything again. */
export function useLogs({ name: { namespace, name }, replica, follows }: LogsAsked, tries: number) {
  const [buffer, setBuffer] = useState<LogBuffer>(NO_LINES);
  const [state, setState] = useState<LogState>({ kind: "connecting" });
  const isVisible = usePageVisible();
  const isPaused = follows && !isVisible;
  useEffect(() => {
    if (isPaused) return setState({ kind: "paused" });
    const end = new AbortController();
    let gathered: Omit<ShownLine, "number">[] = [];
    let isAnew = true;
    const show = () => {
      if (gathered.length === 0) return;
      const [added, start] = [gathered, isAnew];
      gathered = [];
      isAnew = false;
      setBuffer((before) => withLines(start ? NO_LINES : before, added));
    };
    const timer = setInterval(show, GATHER_MS);
    const asked = { namespace, name, replica, follow: follows, tailLines: BigInt(TAIL_LINES) };
    setBuffer(NO_LINES);
    follow<StreamJobLogsResponse>(
      {
        // A stream has no cursor: it begins again with the last lines, which replace those that were shown.
        open: (signal) => {
          gathered = [];
          isAnew = true;
          return jobs.streamJobLogs(asked, { signal });
        },
        onMessage: (message) => {
          for (const line of linesOf(message)) gathered.push(line);
        },
        onState: (kind) => setState((before) => (before.kind === kind ? before : { kind })),
        isPassing,
        random: Math.random,
        sleep,
      },
      end.signal,
    )
      .then(() => !end.signal.aborted && setState({ kind: "ended" }))
      .catch((cause: unknown) => setState({ kind: "failed", failure: callFailed(cause) }))
      .finally(() => end.signal.aborted || show());
    return () => {
      end.abort();
      clearInterval(timer);
    };
  }, [namespace, name, replica, follows, isPaused, tries]);
  return { buffer, state };
}

function linesOf({ lines, kept }: StreamJobLogsResponse): readonly Omit<ShownLine, "number">[] {
  const read = lines.map((line) => ({ replica: line.replica, text: line.text }));
  if (kept === undefined) return read;
  const head =
    `The pod of ${kept.replica} is gone. Kept of container ${kept.container}, attempt ${kept.attempt}, which ended ` +
    `with exit code ${kept.exitCode}:`;
  return [{ replica: "", text: kept.problem === "" ? head : `${head} ${kept.problemMessage}` }, ...read];
}
