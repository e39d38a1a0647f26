/**
 * The time by which processes decide: the database's time plus a correction that all of them read. This file is the
 * arithmetic; `decision-clock.ts` reads the clocks.
 *
 * A process counts decision time by its own monotonic clock, and measures the database's time with each renewal of its
 * member. What it finds too much or too little is its debt. It pays a debt with at most 10 % of the time that passes.
 * So decision time never goes back and never jumps, except over time that the machine slept.
 *
 * One process holds the lease of the clock. It follows the database itself, and notes what it still owes as the
 * correction. The others follow the database's time plus that correction, so all agree while the holder pays.
 */

/** The part of passing time that pays a debt. A deadline is off by as much meanwhile. */
const SLEW = 0.1;

/** A clock that moves by more than this against a monotonic one has stepped. */
export const STEP_MS = 1_000;

/** What the database says about time. */
export type SharedTime = {
  /** The database's clock. */
  readonly databaseMs: number;
  /** Decision time minus database time, as the holder last noted it. */
  readonly correctionMs: number;
  /** The database's time when the holder noted the correction. 0: no process has done so yet. */
  readonly notedMs: number;
};

/** Decision time in one process. All moments are in milliseconds of its monotonic clock. */
export type DecisionTime = {
  readonly atMs: number;
  /** Decision time at `atMs`. */
  readonly timeMs: number;
  /** How much decision time still has to gain on the monotonic clock; negative: to lose. */
  readonly debtMs: number;
  /** When the database's clock was last read, and what it said. */
  readonly database: { readonly atMs: number; readonly timeMs: number };
  /** The database's time when this process found itself behind the others by a step. Null: it is not. */
  readonly behindSinceMs: number | null;
};

export type Measure = {
  readonly read: SharedTime;
  /** When the question was sent, and when the answer came. The database read its clock in between. */
  readonly sentMs: number;
  readonly answeredMs: number;
  /** True: this process holds the lease of the clock. */
  readonly holds: boolean;
  /** How long the monotonic clock stood still since the last measure, as another clock of the machine tells. */
  readonly sleptMs: number;
  /** A correction that is older than this does not count: the database's clock may have stepped since. */
  readonly ageMsMax: number;
};

export type Measured = {
  readonly time: DecisionTime;
  /** The correction to note. Null: this process does not hold the lease of the clock. */
  readonly correctionMs: number | null;
  /** By how much the database's clock has stepped against this process's. 0: it has not. */
  readonly stepMs: number;
  /** How long the machine slept, or the process stood still: decision time has jumped over that time. */
  readonly jumpedMs: number;
  /** False: the correction was too old to follow, and the time slept is still to be accounted for. */
  readonly isFollowed: boolean;
};

/**
 * Decision time at the start of a process: the database's, with the last correction. It is never before the time of
 * the last note, so decision time does not go back over a restart of everything either.
 */
export function startTime(read: SharedTime, atMs: number): DecisionTime {
  const timeMs = Math.max(read.databaseMs, read.notedMs) + read.correctionMs;
  return { atMs, timeMs, debtMs: 0, database: { atMs, timeMs: read.databaseMs }, behindSinceMs: null };
}

/** Decision time at a moment. Never less than at an earlier one. */
export function timeAt({ atMs, timeMs, debtMs }: DecisionTime, monotonicMs: number): number {
  const passedMs = Math.max(0, monotonicMs - atMs);
  return timeMs + passedMs + paidMs(debtMs, passedMs);
}

/** Takes over what the database said. */
export function measure(before: DecisionTime, of: Measure): Measured {
  const { read, sentMs, answeredMs, holds } = of;
  const readMs = (sentMs + answeredMs) / 2;
  // Times of the database are whole milliseconds.
  const errorMs = (answeredMs - sentMs) / 2 + 1;
  const movedMs = read.databaseMs - before.database.timeMs - (readMs - before.database.atMs);
  const unexplainedMs = movedMs - within(movedMs, 0, of.sleptMs);
  const stepMs = Math.abs(unexplainedMs) - errorMs > STEP_MS ? unexplainedMs : 0;
  const timeMs = timeAt(before, answeredMs);
  const at = { atMs: answeredMs, timeMs, database: { atMs: readMs, timeMs: read.databaseMs } };
  if (!holds && !isCurrent(read, of.ageMsMax)) {
    const debtMs = before.debtMs - paidMs(before.debtMs, Math.max(0, answeredMs - before.atMs));
    return { time: { ...before, ...at, debtMs }, correctionMs: null, stepMs, jumpedMs: 0, isFollowed: false };
  }
  const targetMs = read.databaseMs + (holds ? 0 : read.correctionMs);
  const behindMs = targetMs + (answeredMs - readMs) - timeMs;
  const { jumpedMs, behindSinceMs } = standstill(before, of, { behindMs, movedMs, errorMs });
  const debtMs = beyond(behindMs - jumpedMs, errorMs);
  const time = { ...at, timeMs: timeMs + jumpedMs, debtMs, behindSinceMs };
  return { time, correctionMs: holds ? -Math.round(debtMs) || 0 : null, stepMs, jumpedMs, isFollowed: true };
}

/** How long this process stood still, as far as that is sure. */
function standstill(
  before: DecisionTime,
  { read, holds, sleptMs }: Measure,
  of: { readonly behindMs: number; readonly movedMs: number; readonly errorMs: number },
): { readonly jumpedMs: number; readonly behindSinceMs: number | null } {
  const { behindMs, movedMs, errorMs } = of;
  // The holder may owe a step of the database that has nothing to do with the sleep: only what moved now is confirmed.
  if (holds) return { jumpedMs: within(Math.min(behindMs, movedMs), 0, sleptMs), behindSinceMs: null };
  if (behindMs - errorMs <= STEP_MS) return { jumpedMs: within(behindMs, 0, sleptMs), behindSinceMs: null };
  const sinceMs = before.behindSinceMs;
  // The holder has noted the correction since, so its monotonic clock agrees: this process alone stood still.
  if (sinceMs !== null && read.notedMs >= sinceMs) return { jumpedMs: behindMs, behindSinceMs: null };
  if (sleptMs > 0) return { jumpedMs: within(behindMs, 0, sleptMs), behindSinceMs: null };
  return { jumpedMs: 0, behindSinceMs: sinceMs ?? read.databaseMs };
}

/** True if no step of the database's clock can have happened since the correction was noted, but a small one. */
export function isCurrent({ databaseMs, notedMs }: SharedTime, ageMsMax: number): boolean {
  const ageMs = databaseMs - notedMs;
  return ageMs >= -STEP_MS && ageMs <= ageMsMax;
}

function paidMs(debtMs: number, passedMs: number): number {
  return within(debtMs, -SLEW * passedMs, SLEW * passedMs);
}

function within(value: number, min: number, max: number): number {
  return Math.min(Math.max(value, min), max);
}

/** What is left of a difference after the error of its measurement. */
function beyond(differenceMs: number, errorMs: number): number {
  return differenceMs - within(differenceMs, -errorMs, errorMs);
}
