import { setImmediate } from "node:timers/promises";

/** Maps items one after the other. After each `perTurn` of them, the rest of the process gets a turn. */
export async function mapInTurns<T, Result>(
  items: readonly T[],
  perTurn: number,
  map: (item: T) => Promise<Result>,
): Promise<Result[]> {
  const results: Result[] = [];
  for (const item of items) {
    results.push(await map(item));
    if (results.length % perTurn === 0) await setImmediate();
  }
  return results;
}
