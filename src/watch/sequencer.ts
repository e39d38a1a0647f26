import type { LogPlace } from "../core/job/request/event-log.ts";
import type { Telemetry } from "../telemetry/events.ts";
import type { WatchPorts } from "./ports.ts";

/** How often the sequencer looks without a hint: hints may be lost. */
const POLL_MS = 500;
/** How often it looks once nothing has come for a while: then readers wait for nothing that is on its way. */
const REST_POLL_MS = 2_000;
const REST_AFTER_MS = 5_000;
/** Hints within this time cause one look. */
const COLLECT_MS = 5;
/** Looks that follow hints begin at least so far apart: each costs three round trips to the database. */
const APART_MS = 25;

export type Sequencer = {
  /** Says that events may have been committed. */
  readonly hint: () => void;
  /** Gives positions to everything that is committed now, and passes on the log's head. */
  readonly runOnce: () => Promise<void>;
  /** Runs until `signal` is aborted. A failed look is reported and repeated. */
  readonly run: (signal: AbortSignal) => Promise<void>;
};

/**
 * Gives positions to committed changes, and calls `advance` with the log's head after each look. Of several processes,
 * the one with the lease gives positions as changes come; the others only follow the head. Any process may also give
 * positions for a reader that waits for one: a row lock keeps two from doing so at a time, so that readers never depend
 * on the lease.
 */
export function createSequencer(
  { clock, store, lease, onGiven, onBegunAnew }: WatchPorts,
  advance: (head: LogPlace) => Promise<void>,
  telemetry: Pick<Telemetry, "loopFailed">,
): Sequencer {
  let hinted = false;
  let wake = new AbortController();
  let known: LogPlace | null = null;
  let movedMs = clock.monotonicMs();
  let lookedMs = Number.NEGATIVE_INFINITY;

  /** Passes on the head, and notes when it last moved. */
  async function moveTo(head: LogPlace): Promise<void> {
    if (head.position !== known?.position) movedMs = clock.monotonicMs();
    if (known !== null && head.incarnation !== known.incarnation) onBegunAnew?.(head);
    known = head;
    await advance(head);
  }

  /** Follows the head. A head that went back was restored: then this process lets a new incarnation begin. */
  async function follow(): Promise<void> {
    const head = await store.head();
    const wentBack = head.incarnation === known?.incarnation && head.position < known.position;
    if (wentBack) await runOnce();
    else await moveTo(head);
  }

  async function runOnce(): Promise<void> {
    for (;;) {
      const { head, given, more } = await store.sequence(known);
      if (given > 0) onGiven?.();
      await moveTo(head);
      if (!more) return;
    }
  }

  async function pause(): Promise<void> {
    if (!hinted) {
      wake = new AbortController();
      const rests = clock.monotonicMs() - movedMs >= REST_AFTER_MS;
      await clock.sleep(rests ? REST_POLL_MS : POLL_MS, wake.signal);
    }
    if (hinted) await clock.sleep(Math.max(COLLECT_MS, lookedMs + APART_MS - clock.monotonicMs()));
    hinted = false;
    lookedMs = clock.monotonicMs();
  }

  async function look(signal: AbortSignal): Promise<void> {
    try {
      if (lease !== undefined && lease.epoch() === null) return await follow();
      await runOnce();
    } catch (error) {
      if (!signal.aborted) telemetry.loopFailed({ loop: "sequencer", error });
    }
  }

  function hint(): void {
    if (hinted) return;
    hinted = true;
    // Without a reason it would make an error with a stack, at each hint.
    wake.abort("hinted");
  }

  return {
    hint,
    runOnce,
    run: async (signal) => {
      signal.addEventListener("abort", hint, { once: true });
      while (!signal.aborted) {
        await look(signal);
        await pause();
      }
      signal.removeEventListener("abort", hint);
    },
  };
}
