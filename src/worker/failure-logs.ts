/**
 * Keeps the last lines of containers that failed. It reads them as soon as a step sees the failure, beside the step,
 * and holds back only the deletion of those pods, for a few seconds at most. It serves users who ask why a job failed
 * when its pods are gone.
 */

import type { LogFailure, LogRequest, OpenLog } from "../core/job/container-log.ts";
import {
  FAILURE_LOG_LIMITS,
  type FailedRun,
  type FailureLog,
  type LastLines,
  type LogProblem,
  type RunKey,
  runKey,
} from "../core/job/failure-logs/kept-logs.ts";
import { LogTail } from "../core/job/failure-logs/log-tail.ts";
import type { Job } from "../core/job/job.ts";
import type { Action } from "../core/reconcile/decision.ts";
import { abortAfter } from "../runtime/abort-after.ts";
import { aborted } from "../runtime/aborted.ts";
import type { Clock } from "../runtime/clock.ts";
import { foreignText } from "../runtime/foreign-text.ts";
import { linkedController } from "../runtime/linked-controller.ts";
import { Semaphore } from "../runtime/semaphore.ts";

/** What a worker needs to keep the last lines of failed containers. */
export type FailureLogPorts = {
  /** The runs of which something is kept. Null: the namespace of the job keeps nothing. */
  readonly keptRuns: (jobUid: string) => Promise<readonly RunKey[] | null>;
  /** Keeps logs within the limits, each run once. Returns the bytes of text that were added. */
  readonly keep: (logs: {
    readonly jobUid: string;
    readonly namespace: string;
    readonly gang: boolean;
    readonly logs: readonly FailureLog[];
  }) => Promise<number>;
  readonly open: (request: LogRequest, signal: AbortSignal) => Promise<OpenLog | LogFailure>;
  /** Called with the bytes that were kept, and the reason of each log that could not be read. */
  readonly onKept?: (facts: { readonly bytes: number; readonly problems: readonly string[] }) => void;
};

/**
 * The time for the logs of one step: to read them, and to keep them. No deletion waits longer. The longest pause of a
 * kubelet that still answers is shorter, and the shortest backoff of a restart is twice as long.
 */
export const HOLD_MS_MAX = 5_000;
/** After so many logs in a row that a cluster did not return in time, no deletion there waits until one comes. */
const SILENT_AFTER = 8;
/** How many logs are read at a time, of all jobs: as many as a cluster has connections for logs that are read once. */
const READS_MAX = 64;
/** A server that was too busy is asked once more after this wait. */
const RETRY_MS = 500;
/** The runs of so many jobs are remembered. A job that is forgotten costs a query. */
const JOBS_MAX = 10_000;

/** The reason of a log that its cluster did not return in time. */
const TIMEOUT = "Timeout";

type Ports = FailureLogPorts & { readonly clock: Clock };

/** The logs that a worker reads, and those that it has read. */
export class FailureLogs {
  readonly #ports: Ports;
  readonly #onError: (error: unknown) => void;
  /** The runs that are read or being read, by job. */
  readonly #taken = new Map<string, Set<string>>();
  /** The ends of the reads that are under way, by the uid of their pod. */
  readonly #underWay = new Map<string, Promise<unknown>>();
  /** How many logs in a row each cluster did not return in time. */
  readonly #silence = new Map<string, number>();
  readonly #places = new Semaphore(READS_MAX);

  constructor(ports: Ports, onError: (error: unknown) => void) {
    this.#ports = ports;
    this.#onError = onError;
  }

  /** How many jobs are remembered. For bounds in tests, not for decisions. */
  get size(): number {
    return this.#taken.size;
  }

  /** Begins to read the logs of those runs that are new, and returns at once. No error of it ends a step. */
  see(job: Job, failedRuns: () => readonly FailedRun[], signal: AbortSignal): void {
    try {
      this.#begin(job, failedRuns(), signal);
    } catch (error) {
      this.#onError(error);
    }
  }

  #begin(job: Job, runs: readonly FailedRun[], signal: AbortSignal): void {
    const taken = this.#taken.get(job.uid) ?? new Set();
    const fresh = runs.filter((run) => !taken.has(runKey(run)));
    if (runs.length === 0) this.#taken.delete(job.uid);
    if (fresh.length === 0) return;
    for (const run of fresh) taken.add(runKey(run));
    this.#taken.set(job.uid, taken);
    if (this.#taken.size > JOBS_MAX) this.#forgetOldest();
    const ended = this.#keep(job, fresh, signal).catch((error: unknown) => {
      this.#forget(job.uid, fresh);
      this.#onError(error);
    });
    for (const { podUid } of fresh) this.#underWay.set(podUid, ended);
    void ended.then(() => {
      for (const { podUid } of fresh) if (this.#underWay.get(podUid) === ended) this.#underWay.delete(podUid);
    });
  }

  forget(jobUid: string): void {
    this.#taken.delete(jobUid);
  }

  /** Waits until the logs of the pod that an action deletes are kept, or until their time is over. */
  async before(action: Action, signal: AbortSignal): Promise<void> {
    if (action.kind !== "deletePod") return;
    const reading = this.#underWay.get(action.uid);
    if (reading === undefined || (this.#silence.get(action.cluster) ?? 0) >= SILENT_AFTER) return;
    using left = linkedController(signal);
    await Promise.race([reading, this.#ports.clock.sleep(HOLD_MS_MAX, left.signal)]);
    left.abort();
  }

  /** Reads the logs of those runs of which nothing is kept, and keeps them. */
  async #keep(job: Job, runs: readonly FailedRun[], signal: AbortSignal): Promise<void> {
    const { clock, keptRuns, keep, onKept } = this.#ports;
    using time = linkedController(signal);
    abortAfter(clock, HOLD_MS_MAX, time);
    const kept = await keptRuns(job.uid);
    if (kept === null) return this.#forget(job.uid, runs);
    const known = new Set(kept.map(runKey));
    const wanted = firstOfAttempts(runs.filter((run) => !known.has(runKey(run))));
    const read = await Promise.all(wanted.map((run) => this.#read(job, run, time.signal)));
    time.abort();
    // A worker that stops has not asked in earnest: the next one does.
    if (signal.aborted) return;
    const logs = read.flatMap((log) => log ?? []);
    if (logs.length === 0) return;
    const gang = job.spec.runPolicy.restartScope === "GANG";
    const bytes = await keep({ jobUid: job.uid, namespace: job.namespace, gang, logs });
    const problems = logs.flatMap(({ problem }) => (problem === null ? [] : [knownReason(problem)]));
    onKept?.({ bytes, problems });
  }

  /** Reads one log. In no more than its time, it has its lines or a problem. */
  #read(job: Job, { previous, ...run }: FailedRun, signal: AbortSignal): Promise<FailureLog> {
    const request = {
      cluster: run.cluster,
      namespace: job.namespace,
      pod: run.pod,
      jobUid: job.uid,
      admission: run.admission,
      follow: false,
      container: run.container,
      previous,
      // One more line shows whether the log has more.
      tailLines: FAILURE_LOG_LIMITS.linesMax + 1,
      sinceTime: null,
    };
    return this.#places.run(async () => {
      const last = signal.aborted ? BUSY : await this.#lastLines(request, signal);
      if (!("reason" in last)) {
        this.#silence.delete(run.cluster);
        return { ...run, lines: last, problem: null };
      }
      if (last.reason !== TIMEOUT) this.#silence.delete(run.cluster);
      else this.#silence.set(run.cluster, (this.#silence.get(run.cluster) ?? 0) + 1);
      return { ...run, lines: { text: "", cut: false }, problem: last };
    });
  }

  /** The last lines of a log; or why they cannot be read. */
  async #lastLines(request: LogRequest, signal: AbortSignal): Promise<LastLines | LogProblem> {
    const { clock, open } = this.#ports;
    for (let isLast = false; ; isLast = true) {
      const opened = signal.aborted ? null : await untilAborted(open(request, signal), signal);
      if (opened === null) return late(request.cluster);
      if (opened.kind === "open") {
        const read = await untilAborted(tailOf(opened.lines), signal);
        return read ?? late(request.cluster);
      }
      const isBusy = opened.status === 0 || opened.status === 429 || opened.status >= 500;
      if (isLast || !isBusy) return problemOf(opened, request.cluster);
      await clock.sleep(RETRY_MS, signal);
    }
  }

  #forget(jobUid: string, runs: readonly FailedRun[]): void {
    const taken = this.#taken.get(jobUid);
    for (const run of runs) taken?.delete(runKey(run));
    if (taken?.size === 0) this.#taken.delete(jobUid);
  }

  #forgetOldest(): void {
    for (const jobUid of this.#taken.keys()) {
      this.#taken.delete(jobUid);
      return;
    }
  }
}

const BUSY: LogProblem = { reason: "TooBusy", message: "too many logs were to be read at that moment" };

/** A reason that measurements name. A cluster may say any other. */
function knownReason({ reason }: LogProblem): string {
  return REASONS.includes(reason) ? reason : "Other";
}

const REASONS = [
  "Forbidden",
  "NotFound",
  "BadRequest",
  TIMEOUT,
  "TooBusy",
  "BrokenOff",
  "Unreachable",
  "UnknownCluster",
];

/** Only the first containers of each attempt are read: the others would not be kept. */
function firstOfAttempts(runs: readonly FailedRun[]): readonly FailedRun[] {
  const counts = new Map<number, number>();
  return runs.filter(({ attempt }) => {
    const count = (counts.get(attempt) ?? 0) + 1;
    counts.set(attempt, count);
    return count <= FAILURE_LOG_LIMITS.containersMax;
  });
}

async function tailOf(lines: OpenLog["lines"]): Promise<LastLines | LogProblem> {
  const tail = new LogTail();
  try {
    for await (const some of lines) for (const line of some) tail.add(line);
    return tail.last;
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    return { reason: "BrokenOff", message: foreignText(`the log broke off: ${why}`) };
  }
}

function late(cluster: string): LogProblem {
  return { reason: TIMEOUT, message: `cluster ${cluster} did not return the log within ${HOLD_MS_MAX / 1000} s` };
}

function problemOf({ status, reason, message }: LogFailure, cluster: string): LogProblem {
  const why =
    status === 403
      ? `the account of Gangway in cluster ${cluster} may not read logs: it needs get on pods/log`
      : `cluster ${cluster} did not return the log`;
  return { reason: foreignText(reason || String(status), 256), message: foreignText(`${why}: ${message}`) };
}

/** Null: the signal was aborted first. */
async function untilAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T | null> {
  work.catch(() => undefined);
  using left = linkedController(signal);
  const result = await Promise.race([work, aborted(left.signal).then(() => null)]);
  const isLate = signal.aborted;
  left.abort();
  return isLate ? null : result;
}
