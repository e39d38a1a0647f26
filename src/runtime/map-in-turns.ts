import { setImmediate } from "node:timers/promises";

/** Maps items one after the other. After each `perTurn` of them, the rest of the process gets a turn. */
export async function mapInTurns<T, Result>(
  items: readonly T[],
  perTurn: number,
  map: (item: T, at: number) => Promise<Result>,
): Promise<Result[]> {
  const results: Result[] = [];
  for (const [at, item] of items.entries()) {
    results.push(await map(item, at));
    if (results.length % perTurn === 0) await setImmediate();
  }
  return results;
}
