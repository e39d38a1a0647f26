import assert from "node:assert/strict";
import { test } from "node:test";
import { deactivate } from "../../../../src/core/plan/queues/class-state.ts";
import { newQueue } from "../../../../src/core/plan/queues/gang-class.ts";
import { dropInactive } from "../../../../src/core/plan/queues/queue-state.ts";
import { type GangClass, written } from "../../../../src/core/plan/queues/records.ts";
import { type SearchesLeft, SearchQueue } from "../../../../src/core/plan/requeue/search-queue.ts";

/** Lanes of one queue, in their order. */
function lanesOf(queue: string, count: number): readonly GangClass[] {
  const gangQueue = newQueue(queue, { stop: null, ageing: null });
  const classes = Array.from({ length: count }, (_, at) => {
    return {
      key: `${queue}-${at}`,
      gangQueue,
      gangs: [{}],
      reevaluated: "victims",
      searchedUpTo: 0,
    } as unknown as GangClass;
  });
  written(gangQueue).order = [...classes];
  return classes;
}

/** The gang classes of queues that are active, which all become inactive then. */
function takeAwake(classes: Iterable<GangClass>): readonly string[] {
  const queues = [...new Set([...classes].map(({ gangQueue }) => gangQueue))];
  const active = queues.flatMap((gangQueue) => [...gangQueue.active]);
  for (const gangClass of active) deactivate(gangClass);
  for (const gangQueue of queues) dropInactive(gangQueue, { isWalked: true });
  return active.map(({ key }) => key);
}

const upTo = (max: number): SearchesLeft => ({ searches: max, wakes: max });

test("every gang has its turn to search although all are told to look again before each round", () => {
  const reevaluated = new Set([...lanesOf("a", 5), ...lanesOf("b", 3)]);
  const woken: string[] = [];
  const searchQueue = new SearchQueue();
  for (let round = 0; round < 8; round++) {
    searchQueue.addAll({ reevaluated });
    searchQueue.begin({ reevaluated }, { left: upTo(2), nowMs: 0 });
    woken.push(...takeAwake(reevaluated));
  }
  assert.deepEqual(woken.slice(0, 8), ["a-0", "a-1", "a-2", "a-3", "a-4", "b-0", "b-1", "b-2"]);
  for (const { key } of reevaluated) assert.equal(woken.filter((one) => one === key).length, 2, key);
});

test("a gang that looks for another reason meanwhile has no turn for what it was told before", () => {
  const [first, second] = lanesOf("a", 2) as [GangClass, GangClass];
  const reevaluated = new Set([first, second]);
  const searchQueue = new SearchQueue();
  const left = upTo(1);
  searchQueue.begin({ reevaluated }, { left, nowMs: 0 });
  searchQueue.addAll({ reevaluated });
  assert.equal(searchQueue.mayTake(first, left), true);
  searchQueue.take(first, left);
  assert.equal(searchQueue.mayTake(second, left), false, "the round has looked for as many as it may");
  searchQueue.take(second, left);
  assert.equal(searchQueue.areLeft, true);
  const woken: string[] = [];
  for (let round = 0; round < 3; round++) {
    searchQueue.begin({ reevaluated }, { left: upTo(2), nowMs: 0 });
    woken.push(...takeAwake(reevaluated));
  }
  assert.deepEqual(woken, ["a-1"]);
  assert.equal(searchQueue.areLeft, false);
});
