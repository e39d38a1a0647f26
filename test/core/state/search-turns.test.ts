import assert from "node:assert/strict";
import { test } from "node:test";
import type { GangLines, Lane } from "../../../src/core/plan/state/gang-lines.ts";
import { newLine } from "../../../src/core/plan/state/new-lane.ts";
import { SearchTurns } from "../../../src/core/plan/state/search-turns.ts";

/** Lanes of one queue, in their order. */
function lanesOf(queue: string, count: number): readonly Lane[] {
  const line = newLine(queue, { stop: null, ageing: null });
  const lanes = Array.from({ length: count }, (_, at) => {
    return { key: `${queue}-${at}`, line, entries: [{}], restless: "victims", toldUpTo: 0 } as unknown as Lane;
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

test("a gang that looks for another reason meanwhile has no turn for what it was told before", () => {
  const [first, second] = lanesOf("a", 2) as [Lane, Lane];
  const woken: string[] = [];
  const lines = {
    restless: new Set([first, second]),
    wake: ({ key }: Lane) => woken.push(key),
  } as unknown as GangLines;
  const turns = new SearchTurns();
  turns.begin(lines, { max: 1, nowMs: 0 });
  turns.addAll(lines);
  assert.equal(turns.take(first), true);
  assert.equal(turns.take(second), false, "the round has looked for as many as it may");
  assert.equal(turns.areLeft, true);
  for (let round = 0; round < 3; round++) turns.begin(lines, { max: 2, nowMs: 0 });
  assert.deepEqual(woken, ["a-1"]);
  assert.equal(turns.areLeft, false);
});
