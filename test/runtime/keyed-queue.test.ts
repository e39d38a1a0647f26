import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { KeyedQueue } from "../../src/runtime/keyed-queue.ts";

const asked = fc.array(
  fc.record({ key: fc.constantFrom("a", "b", "c", "d", "e"), how: fc.constantFrom("wake", "offer") }),
);

test("no key runs twice at once, no more keys run than allowed, and each wake is served by a later run", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(asked, { maxLength: 6 }), fc.integer({ min: 1, max: 3 }), async (bursts, concurrency) => {
      const running = new Set<string>();
      const unserved = new Set<string>();
      const errors: unknown[] = [];
      const queue = new KeyedQueue(
        async (key) => {
          assert.ok(!running.has(key), `${key} runs twice`);
          running.add(key);
          assert.ok(running.size <= concurrency, `${running.size} run`);
          unserved.delete(key);
          await Promise.resolve();
          await Promise.resolve();
          running.delete(key);
        },
        { concurrency, onError: (error) => errors.push(error) },
      );
      for (const burst of bursts) {
        for (const { key, how } of burst) {
          if (how === "wake") {
            unserved.add(key);
            queue.wake(key);
          } else queue.offer(key);
        }
        await Promise.resolve();
      }
      await queue.idle();
      assert.deepEqual(errors, []);
      assert.deepEqual([...unserved], []);
      assert.equal(running.size, 0);
    }),
  );
});

test("a task that leaves its place lets another run, up to a limit, and no key runs twice at once", async () => {
  const gate = Promise.withResolvers<void>();
  const running: string[] = [];
  let most = 0;
  const queue = new KeyedQueue(
    async (key) => {
      assert.ok(!running.includes(key));
      running.push(key);
      most = Math.max(most, running.length);
      if (key.startsWith("slow")) {
        queue.leave(key);
        await gate.promise;
      }
      running.splice(running.indexOf(key), 1);
    },
    { concurrency: 2, leftMax: 3, onError: (error) => assert.fail(String(error)) },
  );
  for (let at = 0; at < 9; at += 1) queue.wake(`slow ${at}`);
  assert.deepEqual(running, ["slow 0", "slow 1", "slow 2", "slow 3", "slow 4"], "three have left, and two keep places");
  queue.leave("nobody");
  gate.resolve();
  for (let at = 0; at < 3; at += 1) queue.wake(`fast ${at}`);
  await queue.idle();
  assert.ok(most <= 5);
  assert.deepEqual(running, []);
});

test("many wakes of a running key cause one more run; an offer causes none", async () => {
  let runs = 0;
  const gate = Promise.withResolvers<void>();
  const queue = new KeyedQueue(
    async () => {
      runs += 1;
      await gate.promise;
    },
    { concurrency: 2, onError: () => undefined },
  );
  queue.wake("a");
  queue.offer("a");
  assert.equal(runs, 1);
  for (let times = 0; times < 5; times++) queue.wake("a");
  gate.resolve();
  await queue.idle();
  assert.equal(runs, 2);
});

test("a task that throws is reported, and the others continue", async () => {
  const errors: string[] = [];
  const done: string[] = [];
  const queue = new KeyedQueue(
    async (key) => {
      if (key === "bad") throw new Error("no");
      done.push(key);
    },
    { concurrency: 1, onError: (_error, key) => errors.push(key) },
  );
  for (const key of ["bad", "good"]) queue.wake(key);
  await queue.idle();
  assert.deepEqual([errors, done], [["bad"], ["good"]]);
});

test("a closed queue waits for running tasks and starts no other", async () => {
  const runs: string[] = [];
  const gate = Promise.withResolvers<void>();
  const queue = new KeyedQueue(
    async (key) => {
      runs.push(key);
      await gate.promise;
    },
    { concurrency: 1, onError: () => undefined },
  );
  for (const key of ["a", "b"]) queue.wake(key);
  queue.wake("a");
  const closed = queue.close();
  queue.wake("c");
  gate.resolve();
  await closed;
  assert.deepEqual(runs, ["a"]);
});
