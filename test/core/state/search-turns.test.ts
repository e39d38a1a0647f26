import assert from "node:assert/strict";
import { test } from "node:test";
import type { GangLines, Lane } from "../../../src/core/plan/state/gang-lines.ts";
import { newLine } from "../../../src/core/plan/state/new-lane.ts";
import { SearchTurns } from "../../../src/core/plan/state/search-turns.ts";

/** Lanes of one queue, in their order. */
function lanesOf(queue: string, count: number): readonly Lane[] {
  const line = newLine(queue, { stop: null, ageing: null });
  const lanes = Array.from({ length: count }, (_, at) => {
    return { key: `${queue}-${at}`, line, entries: [{}], restless: "victims" } as unknown as Lane;
  });
  line.order = lanes;
  return lanes;
}

test("every gang has its turn to search although all are told to look again before each round", () => {
  const restless = new Set([...lanesOf("a", 5), ...lanesOf("b", 3)]);
  const woken: string[] = [];
  const lines = { restless, wake: ({ key }: Lane) => woken.push(key) } as unknown as GangLines;
  const turns = new SearchTurns();
  for (let round = 0; round < 8; round++) {
    turns.addAll(lines);
    turns.begin(lines, { max: 2, nowMs: 0 });
  }
  assert.deepEqual(woken.slice(0, 8), ["a-0", "a-1", "a-2", "a-3", "a-4", "b-0", "b-1", "b-2"]);
  for (const { key } of restless) assert.equal(woken.filter((one) => one === key).length, 2, key);
});
