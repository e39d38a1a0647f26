import type { ContainerForLog, LogFailure, LogLine, LogTarget } from "../../core/job/container-log.ts";
import type { KeptLog } from "../../core/job/failure-logs/kept-logs.ts";
import type { Clock } from "../../runtime/clock.ts";
import type { JobLogs } from "../ports.ts";
import type { FollowedJob } from "./followed-job.ts";
import { isTransient, logFailure, noSuchContainer } from "./log-errors.ts";
import { type LogReplica, targetOf } from "./log-replicas.ts";

/** The stream fails with UNAVAILABLE after a cluster has not answered for this long. */
const AWAY_MS_MAX = 60_000;

type FollowOptions = {
  readonly logs: JobLogs;
  readonly clock: Clock;
  readonly job: FollowedJob;
  /** How many existing lines to read, from the end. Null: all. */
  readonly tailLines: number | null;
  /** The lines that are kept of a replica's last failure. */
  readonly lastKept: (replica: LogReplica) => Promise<readonly KeptLog[]>;
};

/** Lines of the log of a pod; or kept ones, which come last. */
export type FollowedLines = { readonly lines: readonly LogLine[] } | { readonly kept: readonly KeptLog[] };

/** How far the log of a replica has been read. */
type ReadState = {
  run: string;
  lastNs: bigint | null;
  /** True: a log of the replica was opened. */
  opened: boolean;
  /** True: the run has ended, and its log was read to the end. */
  complete: boolean;
  /** Applies to the run that exists at the start; null for later runs. */
  tailLines: number | null;
  awaySinceMs: number | null;
};

/**
 * Reads the log of a replica run by run, across restarts and new pods, until the job is over and everything is read. If
 * a connection breaks, opens the log again after the last line that was read. If the job is over before a log of the
 * replica was opened, returns the lines that are kept of its last failure.
 */
export async function* followReplica(
  followed: FollowOptions,
  replica: LogReplica,
  signal: AbortSignal,
): AsyncGenerator<FollowedLines> {
  const at: ReadState = {
    run: "",
    lastNs: null,
    opened: false,
    complete: false,
    tailLines: followed.tailLines,
    awaySinceMs: null,
  };
  while (!signal.aborted) {
    // Read this before looking at the pod: lines that the pod wrote until then are still read.
    const { over } = followed.job;
    const found = await findRun(followed, replica, at, signal);
    const outcome = typeof found === "string" ? found : yield* readRun(followed, found, at, signal);
    if (outcome === "noLog" && over) break;
    if (outcome !== "read" || !at.complete) await followed.job.wait(signal);
  }
  if (!at.opened && !signal.aborted) yield { kept: await followed.lastKept(replica) };
}

/**
 * What a look at a replica found. `noLog`: no container runs or has run, its log is gone, or was read to the end.
 * `unanswered`: the cluster may answer later.
 */
type LookOutcome = "read" | "noLog" | "unanswered";

type ReadableRun = { readonly target: LogTarget; readonly container: ContainerForLog; readonly replica: LogReplica };

/** Returns the run to read, or why there is none. */
async function findRun(
  followed: FollowOptions,
  replica: LogReplica,
  at: ReadState,
  signal: AbortSignal,
): Promise<ReadableRun | "noLog" | "unanswered"> {
  const target = targetOf(followed.job.job, replica, { follow: true });
  if (target === null) return noLogYet(at);
  const pod = await followed.logs.look(target, signal);
  if (signal.aborted) return "unanswered";
  if (pod.kind === "failed") return throwUnlessTransient(followed, replica, at, pod);
  at.awaySinceMs = null;
  if (pod.kind === "absent") return noLogYet(at);
  const container = pod.containers.find(({ name }) => name === replica.container);
  if (container === undefined) throw noSuchContainer(replica, pod.containers);
  if (container.state === "waiting") return noLogYet(at);
  if (container.run !== at.run) startRun(at, container.run);
  return at.complete ? "noLog" : { target, container, replica };
}

function startRun(at: ReadState, run: string): void {
  if (at.run !== "") at.tailLines = null;
  Object.assign(at, { run, lastNs: null, complete: false });
}

/** Notes that no log exists yet: a run that starts later is read from its beginning. */
function noLogYet(at: ReadState): "noLog" {
  at.tailLines = null;
  return "noLog";
}

/** Throws a failure that is permanent, or that has lasted for too long. */
function throwUnlessTransient(
  { clock, job }: FollowOptions,
  replica: LogReplica,
  at: ReadState,
  failure: LogFailure,
): "unanswered" {
  at.awaySinceMs ??= clock.monotonicMs();
  const isHopeless = clock.monotonicMs() - at.awaySinceMs > AWAY_MS_MAX;
  if (isHopeless || !isTransient(failure)) throw logFailure(job.job, replica, failure);
  return "unanswered";
}

async function* readRun(
  followed: FollowOptions,
  found: ReadableRun,
  at: ReadState,
  signal: AbortSignal,
): AsyncGenerator<FollowedLines, LookOutcome> {
  const opened = await followed.logs.open(requestOf(found, at), signal);
  if (signal.aborted) return "unanswered";
  if (opened.kind === "failed") {
    // The pod went away or restarted between two calls: look at it again. Once the job is over, the log is gone.
    if (opened.status === 400 || opened.status === 404) return "noLog";
    return throwUnlessTransient(followed, found.replica, at, opened);
  }
  at.opened = true;
  try {
    for await (const lines of linesAfter(at, opened.lines)) yield { lines };
    at.complete = found.container.state === "ended";
    return "read";
  } catch (error) {
    return signal.aborted ? "unanswered" : throwUnlessTransient(followed, found.replica, at, brokenOff(error));
  }
}

function requestOf({ target, container }: ReadableRun, { lastNs, tailLines }: ReadState) {
  return {
    ...target,
    container: container.name,
    previous: false,
    tailLines: lastNs === null ? tailLines : null,
    sinceTime: lastNs === null ? null : new Date(Number(lastNs / 1_000_000n)).toISOString(),
  };
}

/** Skips lines that were read before: servers begin up to a second too early. */
async function* linesAfter(at: ReadState, all: AsyncIterable<readonly LogLine[]>): AsyncGenerator<readonly LogLine[]> {
  const after = at.lastNs;
  for await (const lines of all) {
    const fresh = after === null ? lines : lines.filter(({ timeNs }) => timeNs === null || timeNs > after);
    at.lastNs = lines.at(-1)?.timeNs ?? at.lastNs;
    if (fresh.length > 0) yield fresh;
  }
}

function brokenOff(error: unknown): LogFailure {
  const message = error instanceof Error ? error.message : String(error);
  return { kind: "failed", status: 0, reason: "BrokenOff", message };
}
