import assert from "node:assert/strict";
import { test } from "node:test";
import { isTerminal } from "../../src/core/job/status.ts";
import type { WorkerClusters } from "../../src/worker/ports.ts";
import { clientOf, fastClock, gpuNodes, seededRandom, startSim, until } from "../cluster/harness.ts";
import { count, gangOf, leftOf, runWorker } from "./harness.ts";
import { MemoryStore } from "./memory-store.ts";

test("workers that crash while they act, with faulty clusters, lose no job, no pod and no token", {
  concurrency: true,
}, async (t) => {
  await Promise.all([1, 2, 3, 4].map((seed) => t.test(`seed ${seed}`, () => crashAndRecover(seed))));
});

async function crashAndRecover(seed: number): Promise<void> {
  const random = seededRandom(seed);
  const clock = fastClock(5);
  const sim = await startSim(gpuNodes(3), seed + 100, clock);
  const client = clientOf(sim.kubeconfig());
  const store = new MemoryStore(clock);
  const jobs = [
    gangOf({ kind: "PyTorchJob", workers: 3, run: "150ms" }),
    gangOf({ workers: 5, run: "80ms" }),
    gangOf({ workers: 2, run: "forever" }),
  ];
  for (const job of jobs) {
    store.add(job);
    store.admit(job.uid, "sim");
  }
  sim.setFaults({
    throttleWrites: 0.03,
    dropBeforeWrite: 0.03,
    dropAfterWrite: 0.03,
    endWatch: 0.05,
    expireWatch: 0.1,
  });
  const over = () => jobs.every(({ uid }) => store.released.has(`${uid}/1`));
  for (let crashes = 0; crashes < 8 && !over(); crashes++) {
    const crash = { atAct: 1 + Math.floor(random() * 12), before: random() < 0.5, happened: false };
    const crashing = (clusters: WorkerClusters, stop: () => void): WorkerClusters => ({
      ...clusters,
      act: async (action, signal) => {
        crash.atAct -= 1;
        if (crash.atAct > 0) return clusters.act(action, signal);
        crash.happened = true;
        if (crash.before) stop();
        const outcome = await clusters.act(action, signal);
        stop();
        return outcome;
      },
    });
    const worker = runWorker(sim, store, { wrap: crashing, time: clock });
    if (crashes === 1) store.cancel(jobs[2]!.uid);
    for (const job of jobs) store.change(job.uid, (one) => one);
    try {
      await until(() => crash.happened || over(), "the worker crashes, or has nothing left to do");
    } finally {
      await worker.stop();
    }
  }
  // An interrupted job is due again at the recorded time. The test moves that time forward.
  for (const job of jobs) store.change(job.uid, (one) => one);
  const last = runWorker(sim, store, { time: clock });
  try {
    for (const { uid } of jobs) {
      await until(() => store.released.has(`${uid}/1`), `tokens of ${uid} are released`);
      await until(async () => count(await leftOf(client, uid)) === 0, `nothing is left of ${uid}`);
    }
    const phases = jobs.map(({ uid }) => store.job(uid)?.status);
    assert.ok(phases.every((status) => status !== undefined && isTerminal(status)));
    assert.deepEqual(
      phases.map((status) => status?.phase),
      ["SUCCEEDED", "SUCCEEDED", "CANCELLED"],
    );
    assert.deepEqual(
      phases.map((status) => status?.attempts.user),
      [0, 0, 0],
    );
  } finally {
    await last.stop();
    await client.close();
    await sim.close();
  }
}
