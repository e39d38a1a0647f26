/** Runs grown jobs, and compares what the worker's steps cost with what they may cost. */
import { fromBinary } from "@bufbuild/protobuf";
import type { SimCluster } from "../../../../src/adapters/simcluster/sim-cluster.ts";
import { CreateJobRequestSchema, CreateJobResponseSchema } from "../../../../src/gen/gangway/v1/job_service_pb.ts";
import { minOf } from "../../../../src/runtime/lists.ts";
import { waitUntil } from "../../../support/bounded.ts";
import { type Caller, framed } from "../caller.ts";
import { encode } from "../plan.ts";
import type { Subject } from "../subject.ts";
import { methodNamed, pathOf } from "../surface.ts";
import { type Tree, treeOf } from "../tree.ts";
import { type Cost, cpuProblem } from "./judge.ts";
import type { CostInput } from "./plan.ts";
import { smallJob } from "./requests.ts";
import type { Slowdown } from "./slowdown.ts";

export type StepsJudged = { readonly steps: number; readonly problem: string | null };

const CREATE = methodNamed("JobService.CreateJob");
const DELETE = methodNamed("JobService.DeleteJob");
const LIVE = ["WAITING", "ADMITTED", "STARTING", "SUSPENDED", "RESTARTING"];
/**
 * The steps that a job needs until its pods run: one makes them, and others see each change of them. A step for each
 * change is not made, because changes that come together share one.
 */
const STEPS = 4;
const REPEATS_MAX = 6;
const BASE_RUNS = 5;
/** A job takes more steps where its pods' changes come one by one, as on a busy machine. */
const NOISE_FACTOR = 1.3;
const WAIT = { maxMs: 5_000 };
/**
 * A job that asks for what no node has waits for ever, and builds no pod; pods that ask for what a cluster lacks never
 * run. After so long without a change of either, nothing more comes.
 */
const SETTLED_MS = 1_000;
/** How often, and for how long, the service is watched while it has nothing to do. */
const IDLE_LOOKS = 4;
const IDLE_MS = 500;

/** What a job cost until its pods ran, and how large they were. */
type JobRun = { readonly cost: Cost; readonly podBytes: number; readonly pods: number };

type Parts = {
  readonly subject: Subject;
  readonly caller: Caller;
  readonly clusters: readonly SimCluster[];
  readonly slowdown: Slowdown;
};

export class StepMeter {
  readonly #of: Parts;
  /** The cost of each pod of the smallest job. */
  #base: JobRun | null = null;
  /** The CPU time of the service's own loops for each millisecond. */
  #idleShare = 0;

  constructor(of: Parts) {
    this.#of = of;
  }

  async judge(input: CostInput): Promise<StepsJudged> {
    if (this.#base === null) await this.#learn();
    let problem: string | null = null;
    let steps = 0;
    for (let time = 0; time < REPEATS_MAX; time += 1) {
      const run = await this.#run(input.request);
      steps += 1;
      problem = run === null ? null : this.#problem(run);
      // Noise only adds.
      if (problem === null) break;
    }
    return { steps, problem };
  }

  /** Each pod costs calls of the cluster, however small it is. */
  #problem(run: JobRun): string | null {
    if (this.#base === null) return "the smallest job does not run";
    const { cost, pods } = this.#base;
    const base = { ...cost, cpuMs: cost.cpuMs * NOISE_FACTOR * Math.max(1, run.pods / pods) };
    const problem = cpuProblem(base, run.cost, run.podBytes, STEPS);
    return problem === null ? null : `${run.pods} pods of together ${problem}`;
  }

  async #learn(): Promise<void> {
    this.#idleShare = await this.#idle();
    const runs: JobRun[] = [];
    for (let time = 0; time < BASE_RUNS; time += 1) {
      const run = await this.#run(encode(CREATE, { job: smallJob() }));
      if (run !== null) runs.push(run);
    }
    this.#base = runs.toSorted((a, b) => a.cost.cpuMs - b.cost.cpuMs)[Math.floor(runs.length / 2)] ?? null;
  }

  /** The least of several looks: noise only adds. */
  async #idle(): Promise<number> {
    const { subject } = this.#of;
    const shares: number[] = [];
    for (let look = 0; look < IDLE_LOOKS; look += 1) {
      const before = await subject.meter();
      await new Promise((resolve) => setTimeout(resolve, IDLE_MS));
      shares.push(((await subject.meter()).cpuMs - before.cpuMs) / IDLE_MS);
    }
    return minOf(shares);
  }

  /** Null: the job did not run to where its pods are made. */
  async #run(request: Buffer): Promise<JobRun | null> {
    const { subject, caller } = this.#of;
    const created = await caller.call(pathOf(CREATE), framed(unsuspended(request)));
    const [message] = created.messages;
    if (message === undefined) return null;
    const { metadata } = fromBinary(CreateJobResponseSchema, message).job ?? {};
    if (metadata === undefined) return null;
    const before = await subject.meter();
    const phase = async () => {
      // A service that ends has no database any more.
      const [row] = await subject.query(`select phase from jobs where uid = '${metadata.uid}'`).catch(() => []);
      return String(row?.["phase"] ?? "gone");
    };
    const startMs = performance.now();
    const pods = await this.#settled(metadata.uid, phase);
    const idleMs = (performance.now() - startMs) * this.#idleShare;
    const after = await subject.meter().catch(() => null);
    if (after === null || subject.hasEnded) return null;
    await caller.call(pathOf(DELETE), framed(encode(DELETE, { namespace: metadata.namespace, name: metadata.name })));
    const slowdown = await this.#of.slowdown.now();
    const podBytes = JSON.stringify(pods).length;
    const cost = { cpuMs: (after.cpuMs - before.cpuMs - idleMs) / slowdown, memoryBytes: 0 };
    return pods.length === 0 ? null : { cost, podBytes, pods: pods.length };
  }

  /** Waits until the job runs, has ended, or does not go on. Returns its pods. */
  async #settled(uid: string, phase: () => Promise<string>): Promise<readonly unknown[]> {
    const { subject } = this.#of;
    let pods: readonly unknown[] = [];
    let seen = "";
    let sinceMs = performance.now();
    await waitUntil(
      "the job runs, has ended, or does not go on",
      async () => {
        const now = await phase();
        pods = await this.#podsOf(uid);
        if (`${now} ${pods.length}` !== seen) sinceMs = performance.now();
        seen = `${now} ${pods.length}`;
        return subject.hasEnded || !LIVE.includes(now) || performance.now() - sinceMs > SETTLED_MS;
      },
      WAIT,
    ).catch(() => undefined);
    return pods;
  }

  async #podsOf(uid: string): Promise<readonly unknown[]> {
    const selector = encodeURIComponent(`gangway.dev/job-uid=${uid}`);
    const lists = await Promise.all(
      this.#of.clusters.map(async ({ url }) => {
        const response = await fetch(`${url}/api/v1/pods?labelSelector=${selector}`);
        return ((await response.json()) as { items?: unknown[] }).items ?? [];
      }),
    );
    return lists.flat();
  }
}

/** The same job, which may run: its pods start at once, never end by themselves, and leave at once. */
function unsuspended(request: Buffer): Buffer {
  const tree = treeOf(fromBinary(CreateJobRequestSchema, request)) as { job?: Sent };
  const { job } = tree;
  if (job?.spec?.runPolicy !== undefined) job.spec.runPolicy["suspend"] = false;
  for (const spec of Object.values(job?.spec?.replicaSpecs ?? {})) {
    const metadata = spec.template?.metadata;
    if (typeof metadata?.annotations === "object") Object.assign(metadata.annotations, AT_ONCE);
  }
  return encode(CREATE, tree as Tree);
}

type Sent = {
  readonly spec?: {
    readonly runPolicy?: Tree;
    readonly replicaSpecs?: Readonly<
      Record<string, { readonly template?: { readonly metadata?: { annotations?: Tree } } }>
    >;
  };
};

const AT_ONCE = {
  "sim.gangway.dev/pull": "1ms",
  "sim.gangway.dev/start": "1ms",
  "sim.gangway.dev/run": "forever",
  "sim.gangway.dev/termination-grace": "1ms",
};
