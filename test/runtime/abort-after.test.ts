import assert from "node:assert/strict";
import { test } from "node:test";
import { abortAfter } from "../../src/runtime/abort-after.ts";

/** A clock whose sleeps end with `wake`, or with their signal. */
function sleeper() {
  let wake = () => {};
  const sleep = (_ms: number, signal?: AbortSignal) =>
    new Promise<void>((resolve) => {
      wake = resolve;
      signal?.addEventListener("abort", () => resolve(), { once: true });
    });
  return { clock: { sleep }, wake: () => wake() };
}

test("a controller is aborted when the time is over, which is known then", async () => {
  const { clock, wake } = sleeper();
  const controller = new AbortController();
  const wasFirst = abortAfter(clock, 5, controller);
  assert.deepEqual([wasFirst(), controller.signal.aborted], [false, false]);
  wake();
  await Promise.resolve();
  assert.deepEqual([wasFirst(), controller.signal.aborted], [true, true]);
});

test("a controller that was aborted before was not aborted by the time", async () => {
  const { clock } = sleeper();
  const controller = new AbortController();
  const wasFirst = abortAfter(clock, 5, controller);
  controller.abort();
  await Promise.resolve();
  assert.equal(wasFirst(), false);
});

test("without a time, nothing is aborted", () => {
  const controller = new AbortController();
  assert.equal(abortAfter({ sleep: () => assert.fail("nobody sleeps") }, null, controller)(), false);
  assert.equal(controller.signal.aborted, false);
});
