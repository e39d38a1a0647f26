/**
 * A caller beside the one that sends grown requests, in a thread of its own: what the first caller does to its own
 * thread must not show.
 */
import { isMainThread, parentPort, Worker, workerData } from "node:worker_threads";
import { Caller, framed } from "../caller.ts";
import { encode } from "../plan.ts";
import { methodNamed, pathOf } from "../surface.ts";

/** What the first caller is doing. */
export const DOING = { other: 0, refused: 1, grown: 2 } as const;
type Doing = keyof typeof DOING;

const PAUSE_MS = 2;
const METHOD = methodNamed("QueueService.GetQueue");

export class SecondCaller {
  readonly #worker: Worker;
  readonly #doing: Int32Array;
  #latencies: { readonly doing: number; readonly tookMs: number }[] = [];

  constructor(address: string) {
    const shared = new SharedArrayBuffer(4);
    this.#doing = new Int32Array(shared);
    this.#worker = new Worker(new URL(import.meta.url), { workerData: { address, shared } });
    this.#worker.on("message", (latency) => this.#latencies.push(latency));
  }

  /** Runs while the first caller does this. */
  async while<T>(doing: Doing, run: () => Promise<T>): Promise<T> {
    Atomics.store(this.#doing, 0, DOING[doing]);
    try {
      return await run();
    } finally {
      Atomics.store(this.#doing, 0, DOING.other);
    }
  }

  /** The latencies, in milliseconds, since they were taken last. */
  take(): Readonly<Record<Doing, readonly number[]>> {
    const taken = this.#latencies;
    this.#latencies = [];
    const of = (which: Doing) => taken.filter(({ doing }) => doing === DOING[which]).map(({ tookMs }) => tookMs);
    return { other: of("other"), refused: of("refused"), grown: of("grown") };
  }

  async stop(): Promise<void> {
    await this.#worker.terminate();
  }
}

async function call({ address, shared }: { readonly address: string; readonly shared: SharedArrayBuffer }) {
  const doing = new Int32Array(shared);
  const caller = new Caller(address, 1);
  const request = framed(encode(METHOD, { name: "default" }));
  for (;;) {
    const before = Atomics.load(doing, 0);
    const fromMs = performance.now();
    const { status } = await caller.call(pathOf(METHOD), request);
    const tookMs = performance.now() - fromMs;
    if (status === null) return;
    // A call that began or ended beside another one is that one's too.
    parentPort?.postMessage({ doing: Math.max(before, Atomics.load(doing, 0)), tookMs });
    await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
  }
}

if (!isMainThread) await call(workerData);
