import type { GangwayClient } from "../../../src/cli/rpc/client.ts";
import { JobService } from "../../../src/gen/gangway/v1/job_service_pb.ts";
import { AllocationStatus, ResourceManager } from "../../../src/gen/gangway/v1/resource_manager_pb.ts";
import { waitForCount, waitUntil } from "../../support/bounded.ts";
import { POOL, suspendedJob } from "./known-service.ts";
import { paced } from "./paced.ts";

/** What a steady tenant waits for. `watch`: from the begin of a submit until its watch shows the job. */
export const STEADY_KINDS = ["submit", "watch", "get", "list", "allocate", "release", "log"] as const;
export type SteadyKind = (typeof STEADY_KINDS)[number];

/** How long each took, in milliseconds. */
export type SteadyTimes = Readonly<Record<SteadyKind, readonly number[]>>;

const { createJob, getJob, listJobs, watchJobs, streamJobLogs } = JobService.method;
const LISTED = 20;
const { allocateResource, releaseResource } = ResourceManager.method;

/**
 * A tenant that submits, reads and lists jobs, takes and gives back tokens and reads logs at a steady rate, and watches
 * its jobs.
 */
export class SteadyTenant {
  readonly #client: GangwayClient;
  readonly #namespace: string;
  readonly #shownMs = new Map<string, number>();
  #made = 0;

  constructor(client: GangwayClient, namespace: string) {
    this.#client = client;
    this.#namespace = namespace;
  }

  /** Watches until the signal is aborted. Resolves once the watch has begun. */
  async watch(signal: AbortSignal): Promise<void> {
    let begun = false;
    const run = async () => {
      const filter = { namespace: this.#namespace };
      for await (const { type, job } of this.#client.stream(watchJobs, { filter }, signal)) {
        begun ||= job === undefined && type !== undefined;
        if (job !== undefined) this.#shownMs.set(job.metadata?.name ?? "", performance.now());
      }
    };
    let failure: unknown = null;
    run().catch((error: unknown) => {
      if (!signal.aborted) failure = error;
    });
    await waitUntil("the watch has begun", () => {
      if (failure !== null) throw failure;
      return begun;
    });
  }

  /** Makes so many calls of each kind a second. Throws if one fails. */
  async run(of: { readonly perSecond: number; readonly seconds: number }): Promise<SteadyTimes> {
    const times: Record<SteadyKind, number[]> = {
      submit: [],
      watch: [],
      get: [],
      list: [],
      allocate: [],
      release: [],
      log: [],
    };
    const calls: Promise<void>[] = [];
    const submittedMs = new Map<string, number>();
    await paced(of, () => {
      this.#made += 1;
      const name = `steady-${this.#made}`;
      submittedMs.set(name, performance.now());
      calls.push(this.#job(name, times), this.#token(name, times));
      // They are awaited at the end, all together.
      for (const one of calls.slice(-2)) one.catch(() => undefined);
      return true;
    });
    await Promise.all(calls);
    const names = [...submittedMs.keys()];
    const shown = () => names.filter((name) => this.#shownMs.has(name)).length;
    await waitForCount("jobs shown", async () => shown(), { wanted: names.length });
    for (const [name, fromMs] of submittedMs) times.watch.push((this.#shownMs.get(name) ?? Number.NaN) - fromMs);
    this.#shownMs.clear();
    return times;
  }

  async #timed(times: number[], call: () => Promise<unknown>): Promise<void> {
    const startMs = performance.now();
    await call();
    times.push(performance.now() - startMs);
  }

  async #job(name: string, times: Record<SteadyKind, number[]>): Promise<void> {
    const which = { namespace: this.#namespace, name };
    await this.#timed(times.submit, () => this.#submit(name));
    await this.#timed(times.get, () => this.#client.call(getJob, which));
    await this.#timed(times.list, () =>
      this.#client.call(listJobs, { filter: { namespace: this.#namespace }, pageSize: LISTED }),
    );
    await this.#timed(times.log, () => this.#log(name));
  }

  async #submit(name: string): Promise<void> {
    await this.#client.call(createJob, suspendedJob(this.#namespace, name));
  }

  /** The job has no pods: the service looks for them, and says so. */
  async #log(name: string): Promise<void> {
    const messages = this.#client.stream(streamJobLogs, { namespace: this.#namespace, name }, NEVER);
    await messages[Symbol.asyncIterator]()
      .next()
      .catch((error: { readonly details?: string }) => {
        if (!String(error.details).includes("pod")) throw error;
      });
  }

  async #token(name: string, times: Record<SteadyKind, number[]>): Promise<void> {
    const names = { resourceNamespace: POOL, allocationToken: name };
    await this.#timed(times.allocate, async () => {
      const { status } = await this.#client.call(allocateResource, names);
      if (status !== AllocationStatus.GRANTED) throw new Error(`the service answered status ${status}`);
    });
    await this.#timed(times.release, async () => {
      await this.#client.call(releaseResource, names);
    });
  }
}

const NEVER = new AbortController().signal;
