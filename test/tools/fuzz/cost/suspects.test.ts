/** Which problems a run reports. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { methodNamed } from "../surface.ts";
import { namedInput } from "./plan.ts";
import { Slowdown } from "./slowdown.ts";
import { Suspects } from "./suspects.ts";

const inputOf = (size: number) => namedInput(methodNamed("QueueService.GetQueue"), "name", size, "a");
const cost = (ms: number) => `1.0 KiB cost ${ms}.5 ms of CPU time`;

test("a problem that shows three times is reported once, as it showed last", async () => {
  const suspects = new Suspects();
  suspects.add({ input: inputOf(100), problem: cost(30) });
  suspects.add({ input: inputOf(120), problem: cost(50) });
  assert.equal(suspects.waiting, 1, "sizes do not make another problem");
  assert.deepEqual(await suspects.replay(async () => [cost(40)]), []);
  const sure = await suspects.replay(async () => ["twice the size costs too much", cost(60)]);
  assert.deepEqual(
    sure.map(({ problem }) => problem),
    [cost(60)],
  );
  assert.deepEqual([suspects.waiting, suspects.gone], [0, 0]);
  suspects.add({ input: inputOf(100), problem: cost(30) });
  assert.equal(suspects.waiting, 0);
});

test("a problem that does not show again is counted, and may show once more later", async () => {
  const suspects = new Suspects();
  suspects.add({ input: inputOf(100), problem: cost(30) });
  assert.deepEqual(await suspects.replay(async () => ["twice the size costs too much"]), []);
  assert.deepEqual([suspects.waiting, suspects.gone], [0, 1]);
  suspects.add({ input: inputOf(100), problem: cost(30) });
  assert.equal(suspects.waiting, 1);
});

const yardsticks = (...costs: readonly number[]) => {
  const left = costs.values();
  return new Slowdown(async () => left.next().value ?? Number.NaN);
};
const FIRST = [90, ...Array.from({ length: 11 }, () => 40)];

test("a slowdown compares with the quickest yardstick so far", async () => {
  const slowdown = yardsticks(...FIRST, 80, 82, 60, 20, 20, 24, 40, 38, 90);
  const found: number[] = [];
  for (let time = 0; time < 4; time += 1) found.push(await slowdown.now());
  assert.deepEqual(found, [1, 2, 1, 2]);
});
