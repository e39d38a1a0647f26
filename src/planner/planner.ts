import type { Clock } from "../runtime/clock.ts";
import { doublingMs } from "../runtime/doubling.ts";
import { PlannerLine } from "./line.ts";
import type { PlannerPorts } from "./ports.ts";
import { type Round, runRound } from "./round.ts";

export type PlannerOptions = {
  /** Hears what a round threw; the loop goes on by itself. */
  readonly onError: (error: unknown) => void;
  /** Hears what came of each round of the loop. */
  readonly onRound?: (round: Round) => void;
};

export type Planner = {
  /** One round after those that are under way, null while another planner leads; throws what the store or the counters throw. */
  readonly runOnce: () => Promise<Round | null>;
  /** Rounds until the signal is aborted; resolves then, and never rejects. */
  readonly run: (signal: AbortSignal) => Promise<void>;
  /** A hint that a round may find something new; many of them make one round. */
  readonly wake: () => void;
};

/** Hints are collected for so long before a round, or as long as the last round took: under load half of the time is others'. */
const COLLECT_MS = 10;
const COLLECT_MS_MAX = 250;
/** A lost hint costs no more than this. */
const IDLE_MS_MAX = 1_000;
const RETRY_MS_MIN = 20;
const RETRY_MS_MAX = 5_000;
/** Admissions that did not come about are planned again sooner: their job or cluster only moved on meanwhile. */
const MISSED_MS_MAX = 500;

const STOOD_BY: Round = { admitted: 0, grown: 0, refused: 0, missed: 0, replanAtMs: null };
const NEVER = new AbortController().signal;

/** The planner: stands by until it leads. */
export function createPlanner(ports: PlannerPorts, options: PlannerOptions): Planner {
  const told = new Map<string, string>();
  const line = new PlannerLine(ports.quota);
  const bell = new Bell(ports.clock);
  let plannerEpoch: number | null = null;
  let last: Promise<unknown> = Promise.resolve();

  async function round(signal: AbortSignal): Promise<Round | null> {
    const epoch = ports.lease.epoch();
    if (epoch === null) return null;
    if (epoch !== plannerEpoch) {
      // Another may have led meanwhile: what it told the jobs is not known here.
      told.clear();
      plannerEpoch = epoch;
    }
    return await runRound({ ...ports, plannerEpoch, line, told }, signal);
  }

  /** Rounds never overlap: each starts when the one before has ended, however that ended. */
  function inTurn(signal: AbortSignal): Promise<Round | null> {
    const mine = last.then(() => round(signal));
    last = mine.catch(() => undefined);
    return mine;
  }

  async function run(signal: AbortSignal): Promise<void> {
    let troubles = 0;
    const deafen = ports.quota.counters.onOffer((waiter) => {
      if (waiter === line.waiter) bell.ring();
    });
    while (!signal.aborted) {
      bell.hush();
      const startedMs = ports.clock.monotonicMs();
      const done = await inTurn(signal).catch((error: unknown) => {
        options.onError(error);
        return "failed" as const;
      });
      if (done !== null && done !== "failed") options.onRound?.(done);
      troubles = done !== "failed" && (done?.missed ?? 0) === 0 ? 0 : troubles + 1;
      const tookMs = ports.clock.monotonicMs() - startedMs;
      await bell.wait(pauseAfter(done ?? STOOD_BY, { troubles, tookMs, nowMs: ports.clock.nowMs() }), signal);
    }
    deafen();
  }

  return { runOnce: () => inTurn(NEVER), run, wake: () => bell.ring() };
}

type Pause = { readonly leastMs: number; readonly mostMs: number };

/** How long to wait after a round. Trouble is waited out whoever calls meanwhile. */
function pauseAfter(round: Round | "failed", now: { troubles: number; tookMs: number; nowMs: number }): Pause {
  if (round === "failed" || round.missed > 0) {
    const mostMs = round === "failed" ? RETRY_MS_MAX : MISSED_MS_MAX;
    const delayMs = doublingMs({ firstMs: RETRY_MS_MIN, longestMs: mostMs }, now.troubles - 1);
    return { leastMs: delayMs, mostMs: delayMs };
  }
  const leastMs = Math.min(COLLECT_MS_MAX, Math.max(COLLECT_MS, now.tookMs));
  const untilMs = round.replanAtMs === null ? IDLE_MS_MAX : round.replanAtMs - now.nowMs;
  return { leastMs, mostMs: Math.min(IDLE_MS_MAX, untilMs) };
}

/** Remembers that somebody rang, also while nobody waits. */
class Bell {
  readonly #clock: Clock;
  #rung = false;
  #stop: AbortController | null = null;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  ring(): void {
    this.#rung = true;
    this.#stop?.abort();
  }

  hush(): void {
    this.#rung = false;
  }

  /** Waits `leastMs` whoever rings, then until somebody does or has, at most `mostMs` in all; ends at once on abort. */
  async wait(pause: Pause, signal: AbortSignal): Promise<void> {
    await this.#clock.sleep(pause.leastMs, signal);
    if (this.#rung || signal.aborted || pause.mostMs <= pause.leastMs) return;
    const stop = new AbortController();
    const end = () => stop.abort();
    this.#stop = stop;
    signal.addEventListener("abort", end, { once: true });
    await this.#clock.sleep(pause.mostMs - pause.leastMs, stop.signal);
    signal.removeEventListener("abort", end);
    this.#stop = null;
  }
}
