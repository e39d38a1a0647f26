import assert from "node:assert/strict";
import { test } from "node:test";
import { Semaphore } from "../../src/runtime/semaphore.ts";

test("at most `limit` tasks run at a time, in order, and a task that throws frees its place", async () => {
  const semaphore = new Semaphore(2);
  const begun: number[] = [];
  let running = 0;
  const tasks = [0, 1, 2, 3, 4].map((index) =>
    semaphore.run(async () => {
      begun.push(index);
      running += 1;
      assert.ok(running <= 2);
      await Promise.resolve();
      running -= 1;
      if (index === 1) throw new Error("no");
      return index;
    }),
  );
  const results = await Promise.allSettled(tasks);
  assert.deepEqual(begun, [0, 1, 2, 3, 4]);
  assert.deepEqual(
    results.map((result) => (result.status === "fulfilled" ? result.value : "threw")),
    [0, "threw", 2, 3, 4],
  );
});
