import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate as turn } from "node:timers/promises";
import { SharedCalls } from "../../src/runtime/shared-calls.ts";

/** Long enough for the next run to begin. */
async function turns(): Promise<void> {
  for (let at = 0; at < 5; at += 1) await turn();
}

const STAYS = new AbortController().signal;

test("calls with one key that wait together share one run; a call that comes later gets its own", async () => {
  const calls = new SharedCalls(1);
  const runs: string[] = [];
  let finish = () => {};
  const task = (key: string) => async () => {
    runs.push(key);
    await new Promise<void>((resolve) => (finish = resolve));
    return runs.length;
  };
  const call = (key: string) => calls.run(key, task(key), STAYS);
  const together = [call("a"), call("a")];
  await turns();
  const later = [call("a"), call("b"), call("a")];
  await turns();
  assert.deepEqual(runs, ["a"]);
  for (let at = 0; at < 3; at += 1) {
    finish();
    await turns();
  }
  assert.deepEqual(await Promise.all([...together, ...later]), [1, 1, 2, 3, 2]);
  assert.deepEqual(runs, ["a", "a", "b"]);
});

test("at most `limit` runs go on at a time", async () => {
  const calls = new SharedCalls(3);
  let running = 0;
  let most = 0;
  const task = async () => {
    running += 1;
    most = Math.max(most, running);
    await turn();
    running -= 1;
  };
  await Promise.all(Array.from({ length: 50 }, (_, at) => calls.run(String(at), task, STAYS)));
  assert.equal(most, 3);
});

test("a run whose callers have all left does not begin, and an error reaches every caller", async () => {
  const calls = new SharedCalls(1);
  const left = new AbortController();
  const first = calls.run("first", () => turn("done"), STAYS);
  const skipped = calls.run("second", () => assert.fail("nobody waits for it"), left.signal);
  const failing = () => Promise.reject(new Error("no"));
  const failed = [calls.run("third", failing, left.signal), calls.run("third", failing, STAYS)];
  left.abort();
  assert.deepEqual(await Promise.all([first, skipped]), ["done", null]);
  const reasons = (await Promise.allSettled(failed)).map((one) => one.status === "rejected" && one.reason.message);
  assert.deepEqual(reasons, ["no", "no"]);
  assert.equal(await calls.run("third", async () => "again", STAYS), "again");
});
