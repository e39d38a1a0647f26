import assert from "node:assert/strict";
import { test } from "node:test";
import type { WorkerPorts } from "../../src/worker/ports.ts";
import { createWorker } from "../../src/worker/worker.ts";
import { clock } from "../cluster/harness.ts";
import { CONFIG } from "../core/reconcile/world.ts";
import { gangOf, NO_PODS } from "./harness.ts";
import { MemoryStore } from "./memory-store.ts";

/** The machine has slept so long without knowing it. */
const SLEPT_MS = 20_000;

/** What a worker makes of a job that another process has just recorded. `knows`: a look at the time tells it. */
async function recordedTime({ knows }: { readonly knows: boolean }): Promise<number | undefined> {
  let behindMs = SLEPT_MS;
  const late = { ...clock, nowMs: () => clock.nowMs() - behindMs };
  const store = new MemoryStore(late);
  const plain = gangOf();
  const waiting = { reason: "NotEvaluated", message: "waits", sinceMs: clock.nowMs() };
  const job = { ...plain, status: { ...plain.status, waiting } };
  store.add(job);
  const term = { name: "w/1", signal: new AbortController().signal };
  const ports: WorkerPorts = {
    clock: late,
    store: { ...store.port(), dueJobs: async () => [job.uid] },
    clusters: NO_PODS,
    member: {
      term: () => term,
      look: async () => {
        if (knows) behindMs = 0;
      },
    },
    wakePlanner: () => undefined,
  };
  await createWorker(ports, { config: CONFIG, onError: (error) => assert.fail(String(error)) }).runOnce();
  const since = store.job(job.uid)?.status.waiting?.sinceMs;
  return since === undefined ? undefined : since - waiting.sinceMs;
}

test("a worker whose machine slept asks for the time before it takes what others recorded for wrong", async () => {
  assert.equal(await recordedTime({ knows: true }), 0);
});

test("a recorded time that is in the future by the right time becomes now", async () => {
  const moved = (await recordedTime({ knows: false })) ?? 0;
  assert.ok(moved < 0 && moved >= -SLEPT_MS - 1, `it is moved by ${moved} ms`);
});
