import type { Clock } from "../runtime/clock.ts";
import type { FollowedJob } from "./followed-job.ts";
import { isTransient, logFailure, noSuchContainer } from "./log-errors.ts";
import { type LogReplica, targetOf } from "./log-replicas.ts";
import type { ContainerForLog, JobLogs, LogFailure, LogLine, LogTarget } from "./ports.ts";

/** A cluster that does not answer for so long is said to be away. */
const AWAY_MS_MAX = 60_000;

type Followed = {
  readonly logs: JobLogs;
  readonly clock: Clock;
  readonly job: FollowedJob;
  /** Of what is there when following begins; null: all. */
  readonly tailLines: number | null;
};

/** How far the log of a replica has been read. */
type Position = {
  run: string;
  lastNs: bigint | null;
  /** The run had ended and its log was read to the end. */
  complete: boolean;
  /** For the run that is there at the beginning. */
  tailLines: number | null;
  awaySinceMs: number | null;
};

/**
 * What a replica writes, run by run, from the pod that it has to those that take its place, until the job is over and all is read. A
 * connection that breaks is made again after the last line that was read.
 */
export async function* followReplica(
  followed: Followed,
  replica: LogReplica,
  signal: AbortSignal,
): AsyncGenerator<readonly LogLine[]> {
  const at: Position = {
    run: "",
    lastNs: null,
    complete: false,
    tailLines: followed.tailLines,
    awaySinceMs: null,
  };
  while (!signal.aborted) {
    // Asked before the pod is looked at: what it wrote until then is still read.
    const { over } = followed.job;
    const found = await findRun(followed, replica, at, signal);
    if (found !== null) yield* readRun(followed, found, at, signal);
    else if (over) return;
    if (found === null || !at.complete) await followed.job.wait(signal);
  }
}

type Found = { readonly target: LogTarget; readonly container: ContainerForLog; readonly replica: LogReplica };

/** The run that is there to be read; null while there is none, or none that was not read to its end. */
async function findRun(
  followed: Followed,
  replica: LogReplica,
  at: Position,
  signal: AbortSignal,
): Promise<Found | null> {
  const target = targetOf(followed.job.job, replica);
  if (target === null) return noted(at);
  const pod = await followed.logs.look(target, signal);
  if (signal.aborted) return null;
  if (pod.kind === "failed") return bear(followed, replica, at, pod);
  at.awaySinceMs = null;
  if (pod.kind === "absent") return noted(at);
  const container = pod.containers.find(({ name }) => name === replica.container);
  if (container === undefined) throw noSuchContainer(replica, pod.containers);
  if (container.state === "waiting") return noted(at);
  if (container.run !== at.run) begin(at, container.run);
  return at.complete ? null : { target, container, replica };
}

function begin(at: Position, run: string): void {
  if (at.run !== "") at.tailLines = null;
  Object.assign(at, { run, lastNs: null, complete: false });
}

/** What starts from now on is new as a whole. */
function noted(at: Position): null {
  at.tailLines = null;
  return null;
}

/** Throws what will not pass, or has not passed for too long. */
function bear({ clock, job }: Followed, replica: LogReplica, at: Position, failure: LogFailure): null {
  at.awaySinceMs ??= clock.monotonicMs();
  const isHopeless = clock.monotonicMs() - at.awaySinceMs > AWAY_MS_MAX;
  if (isHopeless || !isTransient(failure)) throw logFailure(job.job, replica, failure);
  return null;
}

async function* readRun(
  followed: Followed,
  found: Found,
  at: Position,
  signal: AbortSignal,
): AsyncGenerator<readonly LogLine[]> {
  const opened = await followed.logs.open(requestOf(found, at), signal);
  if (signal.aborted) return;
  if (opened.kind === "failed") {
    // A pod that goes or starts again between two calls is looked at anew.
    if (opened.status !== 400 && opened.status !== 404) bear(followed, found.replica, at, opened);
    return;
  }
  try {
    yield* linesAfter(at, opened.lines);
    at.complete = found.container.state === "ended";
  } catch (error) {
    if (!signal.aborted) bear(followed, found.replica, at, brokenOff(error));
  }
}

function requestOf({ target, container }: Found, { lastNs, tailLines }: Position) {
  return {
    ...target,
    container: container.name,
    follow: true,
    previous: false,
    tailLines: lastNs === null ? tailLines : null,
    sinceTime: lastNs === null ? null : new Date(Number(lastNs / 1_000_000n)).toISOString(),
  };
}

/** Those that were not read before: servers begin up to a second too early. */
async function* linesAfter(at: Position, all: AsyncIterable<readonly LogLine[]>): AsyncGenerator<readonly LogLine[]> {
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
