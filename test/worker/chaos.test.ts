import assert from "node:assert/strict";
import { test } from "node:test";
import { isTerminal } from "../../src/core/job/status.ts";
import { clientOf, clock, gpuNodes, seededRandom, startSim, until } from "../cluster/harness.ts";
import { count, gangOf, leftOf, runWorker } from "./harness.ts";
import { MemoryStore } from "./memory-store.ts";

for (const seed of [1, 2, 3]) {
  test(`workers that crash at random moments amid faults lose no job, no pod and no token (seed ${seed})`, async () => {
    const random = seededRandom(seed);
    const sim = await startSim(gpuNodes(3), seed + 100);
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
    for (let crashes = 0; crashes < 6; crashes++) {
      const worker = runWorker(sim, store);
      await clock.sleep(random() * 250);
      if (crashes === 3) store.cancel(jobs[2]!.uid);
      await worker.stop();
    }
    // What a crash interrupted is due again when the record says so; the test moves that moment forward.
    for (const job of jobs) store.change(job.uid, (one) => one);
    const last = runWorker(sim, store);
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
  });
}
