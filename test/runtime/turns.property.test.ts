import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { Turns } from "../../src/runtime/turns.ts";

type Item = {
  readonly key: string;
  readonly number: number;
  /** How many items of its key were before it when it came. */
  readonly before: number;
  /** By other key: how many of its items were taken since this one came. */
  readonly passed: Map<string, number>;
};

const KEYS = ["a", "b", "c", "d"];
const stepsOf = (keys: readonly string[]) =>
  fc.array(fc.oneof({ weight: 2, arbitrary: fc.constantFrom(...keys) }, { weight: 1, arbitrary: fc.constant(null) }));

/** Adds an item for each key and takes one for each null, then takes the rest. Calls `taken` for each in its order. */
function run(steps: readonly (string | null)[], taken: (item: Item, waiting: readonly Item[]) => void): number {
  const turns = new Turns<Item>();
  let waiting: Item[] = [];
  let added = 0;
  const take = () => {
    const item = turns.next();
    assert.equal(item === null, waiting.length === 0, "an item is taken as long as one waits");
    if (item === null) return;
    waiting = waiting.filter((one) => one !== item);
    for (const { passed, key } of waiting) if (key !== item.key) passed.set(item.key, (passed.get(item.key) ?? 0) + 1);
    taken(item, waiting);
    assert.equal(turns.size, waiting.length);
  };
  for (const key of steps) {
    if (key === null) {
      take();
      continue;
    }
    const before = waiting.filter((one) => one.key === key).length;
    const item = { key, number: added, before, passed: new Map() };
    added += 1;
    turns.add(key, item);
    waiting.push(item);
  }
  while (waiting.length > 0) take();
  return added;
}

test("no item is lost or taken twice, and those of one key keep their order", () => {
  fc.assert(
    fc.property(stepsOf(KEYS), (steps) => {
      const byKey = new Map<string, number[]>();
      const added = run(steps, ({ key, number }) => byKey.set(key, [...(byKey.get(key) ?? []), number]));
      const numbers = [...byKey.values()];
      for (const of of numbers)
        assert.deepEqual(
          of,
          of.toSorted((a, b) => a - b),
        );
      assert.deepEqual(
        numbers.flat().sort((a, b) => a - b),
        Array.from({ length: added }, (_, at) => at),
      );
    }),
  );
});

test("each other key gets at most one item before each of those that an item waits for, and one before it", () => {
  fc.assert(
    fc.property(stepsOf(KEYS), (steps) => {
      run(steps, ({ before, passed }) => {
        for (const [key, count] of passed) assert.ok(count <= before + 1, `${count} of ${key}, ${before} before it`);
      });
    }),
  );
});

test("with one key, items are taken in the order in which they came", () => {
  fc.assert(
    fc.property(stepsOf(["a"]), (steps) => {
      let next = 0;
      run(steps, ({ number }) => {
        assert.equal(number, next);
        next += 1;
      });
    }),
  );
});

test("only the newest item of a longest line gives way, and only to a line that stays the shorter one", () => {
  fc.assert(
    fc.property(fc.array(fc.constantFrom(...KEYS)), fc.constantFrom(...KEYS), (added, key) => {
      const turns = new Turns<{ readonly key: string; readonly number: number }>();
      const lines = new Map(KEYS.map((one) => [one, [] as number[]]));
      for (const [number, one] of added.entries()) {
        turns.add(one, { key: one, number });
        lines.get(one)?.push(number);
      }
      const lengthOf = (one: string) => lines.get(one)?.length ?? 0;
      const longest = Math.max(...KEYS.map(lengthOf));
      const item = turns.giveWay(key);
      assert.equal(item !== null, longest > lengthOf(key) + 1);
      assert.equal(turns.size, added.length - (item === null ? 0 : 1));
      if (item === null) return;
      assert.equal(lengthOf(item.key), longest);
      assert.equal(item.number, lines.get(item.key)?.at(-1));
    }),
  );
});

test("an item that does not fit keeps its turn, and those of its key wait behind it", () => {
  const turns = new Turns<{ readonly text: string }>();
  for (const text of ["a1", "b1", "a2"]) turns.add(text.slice(0, 1), { text });
  assert.equal(turns.next(({ text }) => text !== "a1")?.text, "b1");
  assert.deepEqual([turns.next()?.text, turns.next()?.text, turns.next()], ["a1", "a2", null]);
});
