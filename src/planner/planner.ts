import { RoundStopped } from "../core/plan/model/round-bounds.ts";
import type { Clock } from "../runtime/clock.ts";
import { doublingMs } from "../runtime/doubling.ts";
import { BatchSize } from "./batch-size.ts";
import type { PlannerPorts } from "./ports.ts";
import { type RoundOutcome, runRound } from "./round.ts";
import { StateChecks } from "./state-checks.ts";
import { WaitingPlace } from "./waiting-place.ts";

type PlannerOptions = {
  /** Called with the error of a round; the loop continues by itself. */
  readonly onError: (error: unknown) => void;
  /** Called with the results of each round of the loop. */
  readonly onRound?: (round: RoundOutcome) => void;
};

export type RunningPlanner = {
  /**
   * Runs one round after those that already run. Null: another planner leads. Throws the errors of the store and the
   * counters.
   */
  readonly runOnce: () => Promise<RoundOutcome | null>;
  /** Runs rounds until the signal is aborted. Resolves then, and never rejects. */
  readonly run: (signal: AbortSignal) => Promise<void>;
  /** A hint that a round may find something new. Many hints make one round. */
  readonly wake: () => void;
};

/**
 * The pause between rounds, in which hints are collected. It is as long as the last round took, within these bounds: so
 * under load the planner leaves half of the time to others.
 */
const COLLECT_MS = 10;
const COLLECT_MS_MAX = 250;
/** A lost hint delays a round by this at most. */
const IDLE_MS_MAX = 1_000;
const RETRY_MS_MIN = 20;
const RETRY_MS_MAX = 5_000;
/** The longest wait before missed admissions are planned again. It is short: their job or cluster only changed. */
const MISSED_MS_MAX = 500;

const NOT_LEADING: RoundOutcome = {
  admitted: 0,
  grown: 0,
  refused: 0,
  nominated: 0,
  missed: 0,
  replanAtMs: null,
  more: false,
};
const NEVER = new AbortController().signal;

/** Makes a planner, which runs rounds only while it holds the planner's lease. */
export function createPlanner(ports: PlannerPorts, options: PlannerOptions): RunningPlanner {
  const place = new WaitingPlace(ports.quota);
  const batchSize = new BatchSize();
  const hints = new Hints(ports.clock);
  const checks = new StateChecks(ports, options.onError);
  let last: Promise<unknown> = Promise.resolve();

  async function round(signal: AbortSignal): Promise<RoundOutcome | null> {
    const plannerEpoch = ports.lease.epoch();
    if (plannerEpoch === null) {
      ports.fleet.rest();
      ports.onRested?.();
      return null;
    }
    try {
      return await runRound({ ...ports, plannerEpoch, place, batchSize }, signal);
    } catch (error) {
      // The lease was lost meanwhile.
      if (error instanceof RoundStopped) return null;
      throw error;
    } finally {
      checks.begin();
    }
  }

  /** Rounds never overlap: each starts when the one before has ended or thrown. */
  function inTurn(signal: AbortSignal): Promise<RoundOutcome | null> {
    const mine = last.then(() => round(signal));
    last = mine.catch(() => undefined);
    return mine;
  }

  async function run(signal: AbortSignal): Promise<void> {
    let failedInRow = 0;
    const stopListening = ports.quota.counters.onOffer((waiter) => {
      if (waiter === place.waiter) hints.add();
    });
    while (!signal.aborted) {
      hints.clear();
      const startedMs = ports.clock.monotonicMs();
      const done = await inTurn(signal).catch((error: unknown) => {
        options.onError(error);
        return "failed" as const;
      });
      if (done !== null && done !== "failed") options.onRound?.(done);
      failedInRow = done !== "failed" && (done?.missed ?? 0) === 0 ? 0 : failedInRow + 1;
      const tookMs = ports.clock.monotonicMs() - startedMs;
      await hints.wait(pauseAfter(done ?? NOT_LEADING, { failedInRow, tookMs, nowMs: ports.clock.nowMs() }), signal);
    }
    stopListening();
  }

  return { runOnce: () => inTurn(NEVER), run, wake: () => hints.add() };
}

type Pause = { readonly leastMs: number; readonly mostMs: number };

/** How long to wait after a round. After a failure or missed admissions, hints do not shorten the wait. */
function pauseAfter(
  round: RoundOutcome | "failed",
  now: { failedInRow: number; tookMs: number; nowMs: number },
): Pause {
  if (round === "failed" || round.missed > 0) {
    const mostMs = round === "failed" ? RETRY_MS_MAX : MISSED_MS_MAX;
    const delayMs = doublingMs({ firstMs: RETRY_MS_MIN, longestMs: mostMs }, now.failedInRow - 1);
    return { leastMs: delayMs, mostMs: delayMs };
  }
  const leastMs = Math.min(COLLECT_MS_MAX, Math.max(COLLECT_MS, now.tookMs));
  if (round.more) return { leastMs, mostMs: leastMs };
  const untilMs = round.replanAtMs === null ? IDLE_MS_MAX : round.replanAtMs - now.nowMs;
  return { leastMs, mostMs: Math.min(IDLE_MS_MAX, untilMs) };
}

/** Remembers whether a hint came, also while nothing waits for one. */
class Hints {
  readonly #clock: Clock;
  #any = false;
  #stop: AbortController | null = null;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  add(): void {
    if (this.#any) return;
    this.#any = true;
    // Without a reason it would make an error with a stack, at each hint.
    this.#stop?.abort("hinted");
  }

  clear(): void {
    this.#any = false;
  }

  /** Waits `leastMs`, then until there is a hint, at most `mostMs` in all. Ends at once when the signal is aborted. */
  async wait(pause: Pause, signal: AbortSignal): Promise<void> {
    await this.#clock.sleep(pause.leastMs, signal);
    if (this.#any || signal.aborted || pause.mostMs <= pause.leastMs) return;
    const stop = new AbortController();
    const end = () => stop.abort();
    this.#stop = stop;
    signal.addEventListener("abort", end, { once: true });
    await this.#clock.sleep(pause.mostMs - pause.leastMs, stop.signal);
    signal.removeEventListener("abort", end);
    this.#stop = null;
  }
}
