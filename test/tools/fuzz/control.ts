/** An event loop that does nothing, in a thread of its own. When it stalls, the machine is busy. */

import { once } from "node:events";
import { isMainThread, parentPort, Worker } from "node:worker_threads";
import { type Stall, watchStalls } from "./stalls.ts";

export type ControlLoop = {
  /** The stalls since the last call. */
  readonly take: () => Promise<readonly Stall[]>;
  readonly stop: () => Promise<number>;
};

export function startControlLoop(): ControlLoop {
  const worker = new Worker(new URL(import.meta.url));
  worker.unref();
  const take = async () => {
    worker.postMessage("take");
    const [stalls] = (await once(worker, "message")) as [readonly Stall[]];
    return stalls;
  };
  return { take, stop: () => worker.terminate() };
}

if (!isMainThread) {
  const stalls = watchStalls();
  parentPort?.on("message", () => parentPort?.postMessage(stalls.take()));
}
