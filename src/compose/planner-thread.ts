/**
 * Runs the planner's state in a thread of its own, with its own connection. So a large fleet delays no lease, no health
 * check and no call of this process.
 */
import { extname } from "node:path";
import { Worker } from "node:worker_threads";
import type { DatabaseConfig } from "../config/config.ts";
import { RoundStopped } from "../core/plan/model/round-bounds.ts";
import type { FleetPlanner } from "../planner/ports.ts";
import { ThreadCalls } from "../runtime/thread-calls.ts";
import { UnavailableError } from "../runtime/unavailable-error.ts";

/** The inputs of the thread. */
export type PlannerThreadData = {
  readonly server: DatabaseConfig;
  /** The modules that serve kinds of jobs beside Gangway's own, and the directory that they are relative to. */
  readonly plugins: readonly string[];
  readonly workingDirectory: string;
  readonly reservationsPerPool: number;
  /** Its first element is 1 once the lease is lost. */
  readonly stopped: Int32Array;
};

type ThreadOptions = Omit<PlannerThreadData, "stopped"> & {
  /** True: the lease is lost. */
  readonly isStopped: () => boolean;
};

/** While the thread works, it hears within this time that the lease is lost. */
const STOP_CHECK_MS = 10;

/** The planner of all gangs, in a thread that starts with the first decision and ends when the planner rests. */
export class PlannerThread implements FleetPlanner {
  readonly #options: ThreadOptions;
  readonly #stopped = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT));
  #worker: Worker | null = null;
  #calls: ThreadCalls | null = null;

  constructor(options: ThreadOptions) {
    this.#options = options;
  }

  decide: FleetPlanner["decide"] = (of) => this.#call("decide", of);

  reread: FleetPlanner["reread"] = (jobUids) => this.#call("reread", jobUids);

  sayAgain: FleetPlanner["sayAgain"] = (jobUids) => this.#call("sayAgain", jobUids);

  check: FleetPlanner["check"] = () => this.#call("check");

  rest(): void {
    void this.close();
  }

  async close(): Promise<void> {
    const [worker, calls] = [this.#worker, this.#calls];
    this.#worker = null;
    this.#calls = null;
    calls?.fail(new RoundStopped());
    await worker?.terminate();
  }

  async #call<Result>(name: string, ...given: readonly unknown[]): Promise<Result> {
    const { isStopped } = this.#options;
    const tell = () => Atomics.store(this.#stopped, 0, isStopped() ? 1 : 0);
    tell();
    const timer = setInterval(tell, STOP_CHECK_MS);
    try {
      return await this.#start().call<Result>(name, ...given);
    } finally {
      clearInterval(timer);
    }
  }

  /** The running thread, or a new one, also after one that has failed. */
  #start(): ThreadCalls {
    if (this.#calls !== null) return this.#calls;
    const { isStopped: _, ...data } = this.#options;
    const entry = new URL(`./planner-thread-main${extname(import.meta.url)}`, import.meta.url);
    const worker = new Worker(entry, { workerData: { ...data, stopped: this.#stopped } satisfies PlannerThreadData });
    worker.once("exit", () => {
      if (this.#worker === worker) [this.#worker, this.#calls] = [null, null];
    });
    this.#worker = worker;
    this.#calls = new ThreadCalls(worker, [RoundStopped, UnavailableError]);
    return this.#calls;
  }
}
