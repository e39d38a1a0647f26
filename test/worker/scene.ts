import { afterEach } from "node:test";
import type { Job } from "../../src/core/job/job.ts";
import { clock, gpuNodes } from "../cluster/harness.ts";
import { ownSim } from "../cluster/own-sim.ts";
import { type Running, runWorker, type WorkerSettings } from "./harness.ts";
import { MemoryStore } from "./memory-store.ts";

/**
 * The surroundings of a file's workers: one simulated cluster, and a store that is emptied for each test. The
 * workers stop with the test that started them.
 */
export async function workerScene(time = clock) {
  const { sim, direct } = await ownSim(gpuNodes(4), time);
  const store = new MemoryStore(time);
  const running: Running[] = [];
  afterEach(async () => {
    sim.setFaults({});
    await Promise.all(running.splice(0).map((one) => one.stop()));
    store.clear();
  });
  return {
    sim,
    /** Speaks to the cluster beside the workers. */
    direct,
    store,
    running,
    start(settings: Omit<WorkerSettings, "time"> = {}): Running {
      const one = runWorker(sim, store, { ...settings, time });
      running.push(one);
      return one;
    },
    /** Submits a job that is admitted at once. Returns its uid. */
    admit(job: Job): string {
      store.add(job);
      store.admit(job.uid, "sim");
      return job.uid;
    },
  };
}
