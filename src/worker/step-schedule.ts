import { bucketOf } from "../core/job/bucket.ts";
import type { Clock } from "../runtime/clock.ts";
import { doublingMs } from "../runtime/doubling.ts";
import { getOrCreate } from "../runtime/get-or-create.ts";

/**
 * The wait before a step that could not run (its clusters are not listed, the store is away) is tried again, doubling
 * up to the longest. So it is after a poll that failed.
 */
export const TRY_AGAIN = { firstMs: 200, longestMs: 2_000 };

/** What this worker knows about the next step of one job. Times are on the monotonic clock. */
type NextStep = {
  /** Its step runs now. */
  isRunning: boolean;
  /** Its recorded time to look again has passed. */
  isDue: boolean;
  /** Nothing is left to do until an event. */
  isSettled: boolean;
  /** A step that is planned for later. With `holds` it is not stepped before, although it is due. Null: none. */
  later: { readonly atMs: number; readonly holds: boolean } | null;
  /** How often in a row its step could not run. */
  failedTries: number;
  /** When the step that it waits for was first requested. Null: it waits for none. */
  requestedAtMs: number | null;
};

/**
 * Which jobs of this worker are to be stepped, and which are being stepped: one record for each job of which anything
 * is to be remembered. Only the methods here change it.
 */
export class StepSchedule {
  readonly #clock: Pick<Clock, "monotonicMs">;
  readonly #jobs = new Map<string, NextStep>();
  /** The jobs that events have woken since the last `takeWoken`. */
  readonly #woken = new Set<string>();
  /** The jobs with a step that is planned for later. */
  readonly #planned = new Set<string>();
  /** How many steps run of jobs in each bucket. */
  readonly #busy = new Map<number, number>();

  constructor(clock: Pick<Clock, "monotonicMs">) {
    this.#clock = clock;
  }

  /** How many jobs are remembered. For bounds in tests, not for decisions. */
  get size(): number {
    return this.#jobs.size;
  }

  /** How many steps are planned for later. */
  get planned(): number {
    return this.#planned.size;
  }

  isBusy(bucket: number): boolean {
    return this.#busy.has(bucket);
  }

  isRunning(jobUid: string): boolean {
    return this.#jobs.get(jobUid)?.isRunning === true;
  }

  /** True: it is not stepped before its planned time, although it is due. */
  isHeld(jobUid: string): boolean {
    return this.#jobs.get(jobUid)?.later?.holds === true;
  }

  isSettled(jobUid: string): boolean {
    return this.#jobs.get(jobUid)?.isSettled === true;
  }

  /** An event has woken the job. */
  wake(jobUid: string): void {
    const job = this.#of(jobUid);
    job.isSettled = false;
    job.requestedAtMs ??= this.#clock.monotonicMs();
    this.#woken.add(jobUid);
  }

  takeWoken(): readonly string[] {
    const woken = [...this.#woken];
    this.#woken.clear();
    return woken;
  }

  /** Its recorded time has passed. `offer` queues its step; false: it is queued or runs, and moves the time itself. */
  due(jobUid: string, offer: () => boolean): void {
    const job = this.#of(jobUid);
    const { requestedAtMs } = job;
    // Noted before the step begins, which may be at once.
    job.isDue = true;
    job.requestedAtMs ??= this.#clock.monotonicMs();
    if (offer()) return;
    job.isDue = false;
    job.requestedAtMs = requestedAtMs;
    this.#forgetIfIdle(jobUid, job);
  }

  /** True if it was due. It is not any more. */
  takeDue(jobUid: string): boolean {
    const job = this.#jobs.get(jobUid);
    if (job === undefined || !job.isDue) return false;
    job.isDue = false;
    this.#forgetIfIdle(jobUid, job);
    return true;
  }

  /** Its step begins. Returns how long it has waited since it was requested, in milliseconds. */
  begin(jobUid: string): number {
    const job = this.#of(jobUid);
    const nowMs = this.#clock.monotonicMs();
    const lagMs = nowMs - (job.requestedAtMs ?? nowMs);
    job.requestedAtMs = null;
    job.isRunning = true;
    // Marked before the step, so that an event during the step can unmark it.
    job.isSettled = true;
    const bucket = bucketOf(jobUid);
    this.#busy.set(bucket, (this.#busy.get(bucket) ?? 0) + 1);
    return lagMs;
  }

  /** Its step has ended, however it did. */
  end(jobUid: string): void {
    const job = this.#of(jobUid);
    job.isRunning = false;
    this.#forgetIfIdle(jobUid, job);
    const bucket = bucketOf(jobUid);
    const others = (this.#busy.get(bucket) ?? 1) - 1;
    if (others > 0) this.#busy.set(bucket, others);
    else this.#busy.delete(bucket);
  }

  /** Its step left nothing to do until an event. */
  settle(jobUid: string): void {
    const job = this.#of(jobUid);
    job.failedTries = 0;
    this.#plan(jobUid, job, null);
  }

  /** Its step has left something to do. */
  leaveOpen(jobUid: string): void {
    const job = this.#of(jobUid);
    job.failedTries = 0;
    job.isSettled = false;
  }

  /** It is stepped again so much later, or once it is due. */
  stepAgain(jobUid: string, afterMs: number): void {
    this.leaveOpen(jobUid);
    this.#plan(jobUid, this.#of(jobUid), { atMs: this.#clock.monotonicMs() + afterMs, holds: false });
  }

  /** Its step could not begin yet. */
  postpone(jobUid: string): void {
    this.#plan(jobUid, this.#of(jobUid), { atMs: Number.NEGATIVE_INFINITY, holds: false });
  }

  /** Its step could not run. It is tried again after a wait, and not before. */
  tryLater(jobUid: string): void {
    const job = this.#of(jobUid);
    job.isSettled = false;
    job.failedTries += 1;
    const atMs = this.#clock.monotonicMs() + doublingMs(TRY_AGAIN, job.failedTries - 1);
    this.#plan(jobUid, job, { atMs, holds: true });
  }

  /** The jobs whose planned time has come. They are planned no longer. */
  takePlanned(): readonly string[] {
    const nowMs = this.#clock.monotonicMs();
    const come = [...this.#planned].filter((jobUid) => (this.#jobs.get(jobUid)?.later?.atMs ?? 0) <= nowMs);
    for (const jobUid of come) this.#plan(jobUid, this.#of(jobUid), null);
    return come;
  }

  /** Of jobs that have no objects in clusters any more it is not remembered that they are settled. */
  keepSettled(seen: ReadonlySet<string>): void {
    for (const [jobUid, job] of this.#jobs) {
      if (!job.isSettled || seen.has(jobUid)) continue;
      job.isSettled = false;
      this.#forgetIfIdle(jobUid, job);
    }
  }

  /** Forgets jobs that belong to another worker now, except that their steps run. */
  forgetWhere(isTheirs: (jobUid: string) => boolean): void {
    for (const [jobUid, job] of this.#jobs) {
      if (!isTheirs(jobUid)) continue;
      this.#woken.delete(jobUid);
      this.#planned.delete(jobUid);
      if (job.isRunning) this.#jobs.set(jobUid, { ...idle(), isRunning: true });
      else this.#jobs.delete(jobUid);
    }
  }

  #plan(jobUid: string, job: NextStep, later: NextStep["later"]): void {
    job.later = later;
    if (later === null) this.#planned.delete(jobUid);
    else this.#planned.add(jobUid);
    this.#forgetIfIdle(jobUid, job);
  }

  #of(jobUid: string): NextStep {
    return getOrCreate(this.#jobs, jobUid, () => idle());
  }

  #forgetIfIdle(jobUid: string, job: NextStep): void {
    const { isRunning, isDue, isSettled, later, failedTries, requestedAtMs } = job;
    if (isRunning || isDue || isSettled || later !== null || failedTries > 0 || requestedAtMs !== null) return;
    this.#jobs.delete(jobUid);
  }
}

function idle(): NextStep {
  return { isRunning: false, isDue: false, isSettled: false, later: null, failedTries: 0, requestedAtMs: null };
}
