/**
 * Deletes what the life of jobs has left and is older than its retention, a page at a time. It runs beside the
 * sequencer, so that changes get their positions meanwhile. Each kind has a pass of its own: one that fails stops no
 * other.
 */

import type { PrunedKind } from "../core/job/request/event-log.ts";
import { doublingMs } from "../runtime/doubling.ts";
import { minOf } from "../runtime/lists.ts";
import type { Telemetry } from "../telemetry/events.ts";
import type { WatchPorts } from "./ports.ts";

/** Rows are kept for 14 days. */
const RETENTION_MS = 14 * 24 * 3_600_000;
/** A pass over a kind begins so long after the last one. */
const PASS_MS = 3_600_000;
/** A page deletes so many rows at most: the embedded database answers nobody else meanwhile. */
const PAGE_MAX = 250;
/** Pages become smaller while they fail, so that one that takes too long ends at last. */
const PAGE_MIN = 10;
/** After a page, a kind rests at least so long, and so many times as long as the page took. */
const REST_MS_MIN = 10;
const REST_PART = 4;
/** A kind that has failed rests so long, and twice as long after each further failure. */
const FAILED_REST = { firstMs: 60_000, longestMs: 3_600_000 };
/** How often a process without the lease looks whether it has it. */
const LEASE_MS = 10_000;

const KINDS: readonly PrunedKind[] = ["changes", "events", "asks"];

/** The pass over one kind. */
type Pass = { readonly kind: PrunedKind; after: number; limit: number; failures: number; dueMs: number };

export type PrunerPorts = {
  readonly clock: WatchPorts["clock"];
  readonly store: Pick<WatchPorts["store"], "prune">;
  /** The process with this lease prunes. Omitted: there is only one process. */
  readonly lease?: { readonly epoch: () => number | null };
};

export type Pruner = { readonly run: (signal: AbortSignal) => Promise<void> };

export function createPruner(
  { clock, store, lease }: PrunerPorts,
  telemetry: Pick<Telemetry, "loopFailed" | "rowsPruned">,
): Pruner {
  async function prunePage(pass: Pass, signal: AbortSignal): Promise<void> {
    const { kind, after, limit } = pass;
    const startMs = clock.monotonicMs();
    try {
      const nowMs = clock.nowMs();
      const { deleted, next } = await store.prune(kind, { beforeMs: nowMs - RETENTION_MS, nowMs, after, limit });
      if (deleted > 0) telemetry.rowsPruned({ kind, rows: deleted });
      const endMs = clock.monotonicMs();
      const restMs = next === null ? PASS_MS : Math.max(REST_MS_MIN, (endMs - startMs) * REST_PART);
      pass.after = next ?? 0;
      pass.limit = Math.min(PAGE_MAX, limit * 2);
      pass.failures = 0;
      pass.dueMs = endMs + restMs;
    } catch (error) {
      if (signal.aborted) return;
      telemetry.loopFailed({ loop: `pruning of ${kind}`, error });
      pass.dueMs = clock.monotonicMs() + doublingMs(FAILED_REST, pass.failures);
      pass.limit = Math.max(PAGE_MIN, Math.floor(limit / 2));
      pass.failures += 1;
    }
  }

  async function pruneDue(passes: readonly Pass[], signal: AbortSignal): Promise<void> {
    for (const pass of passes) {
      if (!signal.aborted && pass.dueMs <= clock.monotonicMs()) await prunePage(pass, signal);
    }
  }

  return {
    run: async (signal) => {
      const passes = KINDS.map((kind): Pass => ({ kind, after: 0, limit: PAGE_MAX, failures: 0, dueMs: 0 }));
      while (!signal.aborted) {
        const isMine = lease === undefined || lease.epoch() !== null;
        if (isMine) await pruneDue(passes, signal);
        const dueMs = isMine ? minOf(passes.map((pass) => pass.dueMs)) : Number.POSITIVE_INFINITY;
        await clock.sleep(Math.max(0, Math.min(dueMs - clock.monotonicMs(), LEASE_MS)), signal);
      }
    },
  };
}
