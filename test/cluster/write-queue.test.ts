import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate } from "node:timers/promises";
import type { KubeRequest, KubeResult } from "../../src/adapters/cluster/client.ts";
import { unreachable } from "../../src/adapters/cluster/kube-failure.ts";
import { WriteQueue } from "../../src/adapters/cluster/write-queue.ts";
import { SleepersClock } from "../support/sleepers-clock.ts";

const OK: KubeResult = { kind: "ok", object: {} };
const throttled = (retryAfterMs: number | null): KubeResult => ({
  kind: "failed",
  status: 429,
  reason: "TooManyRequests",
  message: "",
  retryAfterMs,
});

/** A queue whose writes end when the test says so. */
function queued(writesMax: number) {
  const clock = new SleepersClock();
  let throttles = 0;
  const queue = new WriteQueue({ clock, writesMax, onThrottled: () => (throttles += 1) });
  const sent: string[] = [];
  const under: ((result: KubeResult) => void)[] = [];
  const write = (method: KubeRequest["method"], name: string) =>
    queue.run(method, () => {
      sent.push(name);
      return new Promise<KubeResult>((resolve) => under.push(resolve));
    });
  const end = async (result: KubeResult = OK) => {
    under.shift()?.(result);
    await setImmediate();
  };
  return { clock, queue, sent, write, end, throttles: () => throttles };
}

test("no more writes are under way than allowed, and deletes go before creates that wait", async () => {
  const { queue, sent, write, end } = queued(2);
  const writes = [
    write("POST", "a"),
    write("PATCH", "b"),
    write("POST", "c"),
    write("DELETE", "d"),
    write("POST", "e"),
  ];
  await setImmediate();
  assert.deepEqual(sent, ["a", "b"]);
  assert.deepEqual(queue.facts(), { limit: 2, inFlight: 2, waiting: 3 });
  await end();
  assert.deepEqual(sent, ["a", "b", "d"]);
  for (let at = 0; at < 4; at += 1) await end();
  await Promise.all(writes);
  assert.deepEqual(sent, ["a", "b", "d", "c", "e"]);
  assert.deepEqual(queue.facts(), { limit: 2, inFlight: 0, waiting: 0 });
});

test("a pause that the server asks for holds creates back, not deletes, and ends by itself", async () => {
  const { clock, sent, write, end, throttles } = queued(10);
  const first = write("POST", "a");
  await setImmediate();
  await end(throttled(5_000));
  await first;
  assert.equal(throttles(), 1);
  const held = write("POST", "b");
  const free = write("DELETE", "c");
  await clock.goOn(4_999);
  assert.deepEqual(sent, ["a", "c"]);
  await clock.goOn(5_000);
  assert.deepEqual(sent, ["a", "c", "b"]);
  await end();
  await end();
  assert.deepEqual((await Promise.all([held, free])).length, 2);
});

test("a server that is not reached counts as neither fast nor busy; one that answers too late is busy", async () => {
  const { write, end, throttles } = queued(10);
  for (const code of ["ECONNREFUSED", "UND_ERR_HEADERS_TIMEOUT"]) {
    const writing = write("POST", code);
    await setImmediate();
    await end(unreachable(Object.assign(new Error("no"), { code })));
    await writing;
  }
  assert.equal(throttles(), 1);
});

test("a write that throws gives its place back, and closing lets all that wait go", async () => {
  const { queue, sent, write } = queued(1);
  await assert.rejects(
    queue.run("POST", async () => {
      throw new Error("thrown");
    }),
    /thrown/,
  );
  void write("POST", "a");
  void write("POST", "b");
  await setImmediate();
  assert.deepEqual(sent, ["a"]);
  queue.close();
  await setImmediate();
  assert.deepEqual(sent, ["a", "b"]);
});
