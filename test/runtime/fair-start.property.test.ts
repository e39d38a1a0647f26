/** Tasks of random callers begin in passes of an event loop that the test turns. */
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { FairStart } from "../../src/runtime/fair-start.ts";

function loop() {
  let nowMs = 0;
  let passes: (() => void)[] = [];
  const starts = new FairStart({ monotonicMs: () => nowMs, nextPass: (run) => void passes.push(run) });
  const pass = async () => {
    const due = passes;
    passes = [];
    for (const run of due) run();
    await new Promise((resolve) => setImmediate(resolve));
  };
  return {
    turn: (caller: string) => starts.turn(caller),
    pass,
    rest: (ms: number) => {
      nowMs += ms;
    },
    isIdle: () => passes.length === 0,
  };
}

const step = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.record({ caller: fc.constantFrom("a", "b", "c"), tasks: fc.integer({ min: 1, max: 6 }) }),
  },
  { weight: 2, arbitrary: fc.constant("pass" as const) },
);

test("in a pass each of several callers begins one task, in its order, and none waits for another caller", async () => {
  const history = async (steps: readonly (typeof step extends fc.Arbitrary<infer S> ? S : never)[]) => {
    const { turn, pass, isIdle } = loop();
    // Two callers share the loop from the start.
    assert.equal(turn("a"), null);
    assert.equal(turn("b"), null);
    await pass();
    let begun: string[] = [];
    const waiting = new Map<string, number[]>();
    let made = 0;
    for (const one of steps) {
      if (one === "pass") {
        const due = [...waiting].filter(([, tasks]) => tasks.length > 0).map(([caller]) => caller);
        begun = [];
        await pass();
        assert.deepEqual([...begun].sort(), due.sort(), "each that waits begins one");
        continue;
      }
      for (let task = 0; task < one.tasks; task++) {
        const caller: string = one.caller;
        const id = made++;
        const line = waiting.get(caller) ?? [];
        waiting.set(caller, line);
        const turned = turn(caller);
        assert.equal(turned === null, !begun.includes(caller), "the first of a pass begins at once");
        if (turned === null) begun.push(caller);
        else {
          line.push(id);
          void turned.then(() => {
            assert.equal(line.shift(), id, "in its order");
            begun.push(caller);
          });
        }
      }
    }
    for (let left = made; left >= 0; left--) await pass();
    assert.deepEqual([...waiting.values()].flat(), [], "every task has begun");
    await pass();
    assert.ok(isIdle(), "an idle loop is not kept awake");
  };
  await fc.assert(fc.asyncProperty(fc.array(step, { maxLength: 30 }), history), { numRuns: 60 });
});

test("tasks of a caller that is alone begin at once, also a second after another one has left", () => {
  const { turn, rest } = loop();
  for (let task = 0; task < 100; task++) assert.equal(turn("a"), null);
  assert.equal(turn("b"), null);
  assert.equal(turn("a"), null);
  assert.notEqual(turn("a"), null);
  rest(999);
  assert.notEqual(turn("a"), null);
  const other = loop();
  other.turn("b");
  other.turn("a");
  other.rest(1_000);
  for (let task = 0; task < 100; task++) assert.equal(other.turn("a"), null);
});
