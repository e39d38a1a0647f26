/** Tasks of random callers begin in passes of an event loop that the test turns. */
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { FairStart } from "../../src/runtime/fair-start.ts";

function loop() {
  let nowMs = 0;
  let idleMs = 0;
  let passes: (() => void)[] = [];
  const nextPass = (run: () => void) => void passes.push(run);
  const starts = new FairStart({ monotonicMs: () => nowMs, nextPass, soon: nextPass, idleMs: () => idleMs });
  const pass = async () => {
    const due = passes;
    passes = [];
    for (const run of due) run();
    await new Promise((resolve) => setImmediate(resolve));
  };
  return {
    turn: (caller: string, runs = false) => starts.turn({ caller, runs }),
    end: (caller: string) => starts.end({ caller }),
    pass,
    rest: (ms: number) => {
      nowMs += ms;
      idleMs += ms;
    },
    work: (ms: number) => {
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

const run = fc.oneof(
  { weight: 3, arbitrary: fc.record({ caller: fc.constantFrom("a", "b"), tasks: fc.integer({ min: 1, max: 12 }) }) },
  { weight: 3, arbitrary: fc.record({ ends: fc.nat() }) },
  { weight: 2, arbitrary: fc.constant("pass" as const) },
);

test("of several callers each has at most eight tasks that run, and every task begins once others end", async () => {
  const history = async (steps: readonly (typeof run extends fc.Arbitrary<infer S> ? S : never)[]) => {
    const { turn, end, pass, isIdle } = loop();
    turn("a");
    turn("b");
    await pass();
    const running: string[] = [];
    const waiting = { a: 0, b: 0 };
    const endOne = (at: number) => {
      const [caller] = running.splice(at % running.length, 1);
      if (caller !== undefined) end(caller);
    };
    for (const one of steps) {
      if (one === "pass") await pass();
      else if ("ends" in one) endOne(one.ends);
      else {
        const caller = one.caller as "a" | "b";
        for (let task = 0; task < one.tasks; task++) {
          const turned = turn(caller, true);
          if (turned === null) {
            assert.equal(waiting[caller], 0, "no task passes those of its caller");
            running.push(caller);
            continue;
          }
          waiting[caller] += 1;
          void turned.then(() => {
            waiting[caller] -= 1;
            running.push(caller);
          });
        }
      }
      await new Promise((resolve) => setImmediate(resolve));
      for (const caller of ["a", "b"]) assert.ok(running.filter((name) => name === caller).length <= 8);
    }
    for (let left = 0; waiting.a + waiting.b + running.length > 0; left++) {
      assert.ok(left < 10_000, "tasks wait for nothing");
      endOne(left);
      await pass();
    }
    for (let left = 0; left < 3; left++) await pass();
    assert.ok(isIdle(), "an idle loop is not kept awake");
  };
  await fc.assert(fc.asyncProperty(fc.array(run, { maxLength: 30 }), history), { numRuns: 60 });
});

test("tasks that do not run wait for none that do", async () => {
  const { turn, pass } = loop();
  turn("b");
  for (let task = 0; task < 8; task++) {
    turn("a", true);
    await pass();
  }
  const ninth = turn("a", true);
  assert.notEqual(ninth, null);
  assert.equal(turn("a"), null);
});

const busy = fc.record({
  workMs: fc.integer({ min: 0, max: 40 }),
  restMs: fc.integer({ min: 0, max: 40 }),
  tasks: fc.integer({ min: 0, max: 8 }),
});

test("a caller beyond its share begins tasks as the loop has time, but never stops; others in each pass", async () => {
  const history = async (steps: readonly (typeof busy extends fc.Arbitrary<infer S> ? S : never)[]) => {
    const { turn, pass, rest, work } = loop();
    let many = 0;
    let few = 0;
    for (let task = 0; task < 300; task++) assert.equal(turn("many"), null, "it is alone");
    assert.equal(turn("few"), null);
    for (let task = 0; task < 100; task++) void turn("many")?.then(() => many++);
    await pass();
    const last = { ms: 0, restMs: 0 };
    for (const { workMs, restMs, tasks } of steps) {
      work(workMs);
      rest(restMs);
      last.ms += workMs + restMs;
      last.restMs += restMs;
      for (let task = 0; task < tasks; task++) {
        const turned = turn("few");
        if (turned === null) continue;
        few += 1;
        void turned.then(() => few--);
      }
      const [begun, waited] = [many, few];
      await pass();
      await pass();
      assert.ok(few <= Math.max(waited - 1, 0), "however many of its tasks a stall has left");
      const hasTime = last.ms >= 50 || last.restMs >= last.ms / 2;
      assert.equal(many > begun, hasTime, `${last.restMs} of ${last.ms} ms were idle`);
      if (hasTime) Object.assign(last, { ms: 0, restMs: 0 });
    }
  };
  await fc.assert(fc.asyncProperty(fc.array(busy, { minLength: 1, maxLength: 12 }), history), { numRuns: 100 });
});

test("callers that ask for equally much leave no pass of a busy loop unused", async () => {
  const { turn, pass, work } = loop();
  const begun = { a: 0, b: 0 };
  for (let task = 0; task < 100; task++) {
    for (const caller of ["a", "b"] as const) void turn(caller)?.then(() => begun[caller]++);
  }
  await pass();
  for (let passes = 1; passes <= 40; passes++) {
    work(1);
    await pass();
    assert.ok(begun.a + begun.b >= passes, `${begun.a} and ${begun.b} tasks in ${passes} passes`);
    assert.ok(Math.abs(begun.a - begun.b) <= 1, "both get the same");
  }
});
