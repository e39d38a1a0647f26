import type { ContainerForLog, LogFailure, LogLine, LogTarget } from "../../core/job/container-log.ts";
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
};

/** How far the log of a replica has been read. */
type ReadState = {
  run: string;
  lastNs: bigint | null;
  /** True: the run has ended, and its log was read to the end. */
  complete: boolean;
  /** Applies to the run that exists at the start; null for later runs. */
  tailLines: number | null;
  awaySinceMs: number | null;
};

/**
 * Reads the log of a replica run by run, across restarts and new pods, until the job is over and everything is read. If
 * a connection breaks, opens the log again after the last line that was read.
 */
export async function* followReplica(
  followed: FollowOptions,
  replica: LogReplica,
  signal: AbortSignal,
): AsyncGenerator<readonly LogLine[]> {
  const at: ReadState = {
    run: "",
    lastNs: null,
    complete: false,
    tailLines: followed.tailLines,
    awaySinceMs: null,
  };
  while (!signal.aborted) {
    // Read this before looking at the pod: lines that the pod wrote until then are still read.
    const { over } = followed.job;
    const found = await findRun(followed, replica, at, signal);
    if (found !== null) yield* readRun(followed, found, at, signal);
    else if (over) return;
    if (found === null || !at.complete) await followed.job.wait(signal);
  }
}

type ReadableRun = { readonly target: LogTarget; readonly container: ContainerForLog; readonly replica: LogReplica };

/** Returns the run to read. Null: no container runs or has run, or its log was read to the end. */
async function findRun(
  followed: FollowOptions,
  replica: LogReplica,
  at: ReadState,
  signal: AbortSignal,
): Promise<ReadableRun | null> {
  const target = targetOf(followed.job.job, replica, { follow: true });
  if (target === null) return noLogYet(at);
  const pod = await followed.logs.look(target, signal);
  if (signal.aborted) return null;
  if (pod.kind === "failed") return throwUnlessTransient(followed, replica, at, pod);
  at.awaySinceMs = null;
  if (pod.kind === "absent") return noLogYet(at);
  const container = pod.containers.find(({ name }) => name === replica.container);
  if (container === undefined) throw noSuchContainer(replica, pod.containers);
  if (container.state === "waiting") return noLogYet(at);
  if (container.run !== at.run) startRun(at, container.run);
  return at.complete ? null : { target, container, replica };
}

function startRun(at: ReadState, run: string): void {
  if (at.run !== "") at.tailLines = null;
  Object.assign(at, { run, lastNs: null, complete: false });
}

/** Notes that no log exists yet: a run that starts later is read from its beginning. */
function noLogYet(at: ReadState): null {
  at.tailLines = null;
  return null;
}

/** Throws a failure that is permanent, or that has lasted for too long. */
function throwUnlessTransient(
  { clock, job }: FollowOptions,
  replica: LogReplica,
  at: ReadState,
  failure: LogFailure,
): null {
  at.awaySinceMs ??= clock.monotonicMs();
  const isHopeless = clock.monotonicMs() - at.awaySinceMs > AWAY_MS_MAX;
  if (isHopeless || !isTransient(failure)) throw logFailure(job.job, replica, failure);
  return null;
}

async function* readRun(
  followed: FollowOptions,
  found: ReadableRun,
  at: ReadState,
  signal: AbortSignal,
): AsyncGenerator<readonly LogLine[]> {
  const opened = await followed.logs.open(requestOf(found, at), signal);
  if (signal.aborted) return;
  if (opened.kind === "failed") {
    // The pod went away or restarted between two calls: look at it again.
    if (opened.status !== 400 && opened.status !== 404) throwUnlessTransient(followed, found.replica, at, opened);
    return;
  }
  try {
    yield* linesAfter(at, opened.lines);
    at.complete = found.container.state === "ended";
  } catch (error) {
    if (!signal.aborted) throwUnlessTransient(followed, found.replica, at, brokenOff(error));
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
