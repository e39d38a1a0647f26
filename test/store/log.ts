import type { TestStore } from "./db.ts";

/** Entries after a position of the log's present incarnation. */
export async function entriesAfter({ watch }: Pick<TestStore, "watch">, position: number, limit: number) {
  const { incarnation } = await watch.head();
  return watch.entriesAfter({ incarnation, position }, limit);
}
