import assert from "node:assert/strict";
import { test } from "node:test";
import { waitForCount, waitUntil, within } from "./bounded.ts";

test("a condition that never holds ends the wait with its name", async () => {
  const waiting = waitUntil("nodes are ready", () => false, { maxMs: 20, pollMs: 1 });
  await assert.rejects(waiting, new Error("waited 0.02 s until nodes are ready, which did not happen"));
});

test("a count that does not change ends the wait, and one that grows does not", async () => {
  let count = 0;
  const grow = async () => (count < 3 ? ++count : count);
  const waiting = waitForCount("admitted jobs", grow, { wanted: 4, stallMs: 20, pollMs: 1 });
  await assert.rejects(
    waiting,
    new Error("waited for 4 admitted jobs: there are 3, and the count did not change for 0.02 s"),
  );
  await waitForCount("admitted jobs", grow, { wanted: 3, stallMs: 20, pollMs: 1 });
});

test("a promise that takes too long is an error, and one in time returns its result", async () => {
  await assert.rejects(within("the start", 10, new Promise(() => {})), new Error("the start took longer than 0.01 s"));
  assert.equal(await within("the start", 10_000, Promise.resolve(1)), 1);
});
