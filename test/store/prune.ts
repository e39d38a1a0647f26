import type { PrunedKind } from "../../src/core/job/request/event-log.ts";
import type { TestStore } from "./db.ts";
import { NOW } from "./jobs.ts";

/** Runs one whole pass over a kind. Returns how many rows went. */
export async function prunePass(
  { watch }: Pick<TestStore, "watch">,
  of: { readonly kind: PrunedKind; readonly beforeMs: number; readonly limit?: number },
): Promise<number> {
  let total = 0;
  for (let after: number | null = 0; after !== null; ) {
    const page = await watch.prune(of.kind, { beforeMs: of.beforeMs, nowMs: NOW, after, limit: of.limit ?? 500 });
    total += page.deleted;
    after = page.next;
  }
  return total;
}

/** Runs a pass over each kind. */
export async function pruneAll(store: Pick<TestStore, "watch">, beforeMs: number, limit = 500): Promise<void> {
  for (const kind of ["changes", "events", "asks"] as const) await prunePass(store, { kind, beforeMs, limit });
}
