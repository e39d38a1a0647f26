/** Worlds that are made so that the premises of one law hold. */
import type { QueueSettings } from "../../../src/core/admin/queue.ts";
import type { SentJob } from "../../../src/core/job/request/sent.ts";
import {
  DEFAULT_POLICY,
  FAIR_SHARING_STRATEGIES,
  type QueuePolicy,
} from "../../../src/core/plan/model/queue-policy.ts";
import { pick } from "../../support/random.ts";
import type { LedgerView } from "./ledger-view.ts";
import { quotasOf } from "./random-policies.ts";
import { type Asked, boundMs, requireFairShares, requireOwnQuota } from "./share-laws.ts";
import { GPU, type WorldOptions } from "./world.ts";

export const POOL = "gpu/h100";
/** The ticks with faults. */
export const FAULTY_TICKS = 14;

/** How often a gang of a stream is preempted at most. */
const PREEMPTIONS_MAX = 1;

export type LawWorld = Pick<WorldOptions, "queues" | "clusters"> & {
  readonly law: string;
  /** The jobs that are submitted at a tick, also after the faults. */
  readonly arrivals: (tick: number) => readonly SentJob[];
  readonly ends: AtRest | OnceAdmitted;
};

/** Its jobs never end, so that it comes to rest after the faults. Then it is judged. */
type AtRest = { readonly kind: "atRest"; readonly judge: (view: LedgerView) => void };

/** One job must be admitted within a bound after the faults, although others never stop to come. */
type OnceAdmitted = {
  readonly kind: "onceAdmitted";
  readonly job: string;
  readonly boundMs: number;
  readonly tickMs: number;
};

/** One of the worlds, each as often as the others. */
export function lawWorld(random: () => number, seed: number): LawWorld {
  return [fairShares, ownQuota, boarding][seed % 3]?.(random) as LawWorld;
}

/** Nobody is protected, not even for a moment after a preemption. */
const UNPROTECTED: QueuePolicy = {
  ...DEFAULT_POLICY,
  minRuntimePreemptMs: 0,
  minRuntimeReclaimMs: 0,
};

/** Queues without a quota share that of their root by weights. Their gangs come one queue after the other. */
function fairShares(random: () => number): LawWorld {
  const { clusters, total, gpus } = divisible(random);
  const weight = () => pick(random, [1, 1, 2, 3]);
  const root = queueOf("all", null, total, { fairSharing: FAIR_SHARING_STRATEGIES });
  const below = (name: string, parent: string) =>
    queueOf(name, parent, 0, { reclaimWithinTree: "ANY", weight: weight() });
  const inner = [below("team", "all"), below("small", "team"), below("other", "team")];
  const flat = [below("default", "all"), below("third", "all")].slice(0, random() < 0.5 ? 1 : 2);
  const leaves = shuffled(
    random,
    [...flat, ...inner.slice(1)].map(({ name }) => name),
  );
  const demand = new Map(leaves.map((leaf) => [leaf, random() < 0.7 ? total : gpus * upTo(random, total / gpus)]));
  const asked: Asked = { pool: POOL, demand, gpus };
  return {
    law: "shares come to weights",
    clusters,
    queues: [root, ...flat, ...inner],
    arrivals: inAnyOrder(
      random,
      [...demand].flatMap(([queue, of]) => runningOn(of / gpus, { queue, gpus })),
    ),
    ends: { kind: "atRest", judge: (view) => requireFairShares(view, asked) },
  };
}

/** A queue comes last, with its own quota in use by others, and reclaims it from whomever. */
function ownQuota(random: () => number): LawWorld {
  const { clusters, total, gpus } = divisible(random);
  const own = gpus * upTo(random, total / gpus - 1);
  const others = gpus * upTo(random, (total - own) / gpus);
  const fairSharing = random() < 0.5 ? FAIR_SHARING_STRATEGIES : null;
  const parent = pick(random, ["all", "team"]);
  const queues = [
    queueOf("all", null, total - own - others, { fairSharing }),
    queueOf("team", "all", 0, anyPolicy(random)),
    queueOf("default", "all", others, anyPolicy(random)),
    queueOf("other", "team", 0, anyPolicy(random)),
    queueOf("owner", parent, own, { ...anyPolicy(random), reclaimWithinTree: "ANY" }),
  ];
  const demand = new Map([["owner", own + gpus]]);
  const first = ["default", "other"].flatMap((queue) => runningOn(0.75 * (total / gpus), { queue, gpus }));
  const last = runningOn((own + gpus) / gpus, { queue: "owner", gpus });
  const [before, after] = [inAnyOrder(random, withPriorities(random, first)), withPriorities(random, last)];
  const from = FAULTY_TICKS - 4;
  return {
    law: "a queue gets its own quota back",
    clusters,
    queues,
    arrivals: (tick) => [...before(tick), ...(tick === from ? after : [])],
    ends: { kind: "atRest", judge: (view) => requireOwnQuota(view, { pool: POOL, demand }, "owner") },
  };
}

/**
 * A gang that needs a whole cluster waits beside streams of gangs that end soon and never stop to come. None is
 * preempted so often that it does not end.
 */
function boarding(random: () => number): LawWorld {
  const reserveAfterMs = pick(random, [1_000, 5_000]);
  const fairSharing = random() < 0.5 ? FAIR_SHARING_STRATEGIES : null;
  const policy = () => ({ ...anyPolicy(random), reserveAfterMs });
  const queues = [
    queueOf("all", null, 0, { fairSharing, maxPreemptions: PREEMPTIONS_MAX }),
    { ...queueOf("default", "all", 8, policy()), strategy: pick(random, ["STRICT_FIFO", "BEST_EFFORT_FIFO"] as const) },
    queueOf("stream", "all", 4, policy()),
  ];
  const clusters = [
    { name: "east", flavor: "h100", nodes: 2, gpus: 4 },
    { name: "west", flavor: "h100", nodes: 1, gpus: 4 },
  ];
  const large = { name: "large", queue: "default", pods: 4, gpus: 2, runMs: 5_000, priority: 1 };
  const runMsMax = pick(random, [5_000, 20_000]);
  const stream = (tick: number): readonly JobOf[] =>
    Array.from({ length: 1 + upTo(random, 2) }, (_, at) => ({
      name: `s${tick}-${at}`,
      queue: pick(random, ["default", "stream", "stream"]),
      pods: 1 + upTo(random, 1),
      gpus: pick(random, [1, 2]),
      runMs: pick(random, [1_000, runMsMax]),
      priority: upTo(random, large.priority),
    }));
  const [from, at] = [FAULTY_TICKS - 8, FAULTY_TICKS - 4];
  const older = Array.from({ length: at - from }, (_, tick) => stream(from + tick));
  const gpuMs = older.flat().reduce((sum, { pods, gpus, runMs }) => sum + pods * gpus * runMs, 0);
  const tickMs = 1_000;
  const olderMs = ((1 + PREEMPTIONS_MAX) * gpuMs) / 12;
  return {
    law: "a gang is admitted within a bound",
    clusters,
    queues,
    arrivals: (tick) => {
      if (tick < at) return (older[tick - from] ?? []).map(jobOf);
      return [...(tick === at ? [large] : []), ...stream(tick)].map(jobOf);
    },
    ends: {
      kind: "onceAdmitted",
      job: "large",
      boundMs: boundMs({ reserveAfterMs, olderMs, runMsMax, tickMs }),
      tickMs,
    },
  };
}

function upTo(random: () => number, max: number): number {
  return Math.floor(random() * (max + 1));
}

function shuffled<T>(random: () => number, items: readonly T[]): readonly T[] {
  const left = [...items];
  return items.map(() => left.splice(upTo(random, left.length - 1), 1)[0] as T);
}

/** Clusters that gangs of one size fill without a gap, wherever they run. */
function divisible(random: () => number) {
  const gpus = pick(random, [1, 2]);
  const east = { name: "east", flavor: "h100", nodes: 2, gpus: 4 };
  const west = { name: "west", flavor: "h100", nodes: 1, gpus: 2 * upTo(random, 1) + 2 };
  const clusters = random() < 0.5 ? [east] : [east, west];
  return { clusters, gpus, total: clusters.reduce((sum, of) => sum + of.nodes * of.gpus, 0) };
}

/** Any policy under which nobody is protected. */
function anyPolicy(random: () => number): Partial<QueuePolicy> {
  const reclaimWithinTree = pick(random, ["NEVER", "LOWER_PRIORITY", "ANY"] as const);
  const borrows = reclaimWithinTree !== "NEVER" && random() < 0.5;
  return {
    withinQueue: pick(random, ["NEVER", "LOWER_PRIORITY", "LOWER_OR_NEWER_EQUAL_PRIORITY"] as const),
    reclaimWithinTree,
    borrowWithin: { policy: borrows ? "LOWER_PRIORITY" : "NEVER", maxPriority: null },
    reserveAfterMs: pick(random, [0, 5_000]),
    weight: pick(random, [1, 2]),
  };
}

function queueOf(name: string, parent: string | null, nominal: number, policy: Partial<QueuePolicy>): QueueSettings {
  const quotas = quotasOf({ h100: nominal });
  return { name, parent, strategy: "BEST_EFFORT_FIFO", quotas, policy: { ...UNPROTECTED, ...policy } };
}

/** Jobs of one gang each that run until something undoes them. Each pod has one GPU. */
function runningOn(count: number, { queue, gpus }: { readonly queue: string; readonly gpus: number }) {
  const of = { queue, pods: gpus, gpus: 1, runMs: 100_000_000, priority: 0 };
  return Array.from({ length: count }, (_, at) => jobOf({ ...of, name: `${queue}-${at}` }));
}

function withPriorities(random: () => number, jobs: readonly SentJob[]): readonly SentJob[] {
  return jobs.map((job) => ({ ...job, spec: { ...job.spec, priority: upTo(random, 2) } }));
}

/** Deals jobs out to the ticks with faults, but for the last few. */
function inAnyOrder(random: () => number, jobs: readonly SentJob[]): LawWorld["arrivals"] {
  const byTick = Map.groupBy(jobs, () => upTo(random, FAULTY_TICKS - 6));
  return (tick) => byTick.get(tick) ?? [];
}

type JobOf = {
  readonly name: string;
  readonly queue: string;
  readonly pods: number;
  /** Of each pod. */
  readonly gpus: number;
  readonly runMs: number;
  readonly priority: number;
};

function jobOf({ name, ...of }: JobOf): SentJob {
  const annotations = { "sim.gangway.dev/pull": "100ms", "sim.gangway.dev/run": `${of.runMs}ms` };
  const resources = { limits: { [GPU]: String(of.gpus) } };
  const template = { metadata: { annotations }, spec: { containers: [{ name: "main", image: "trainer", resources }] } };
  const schedulingPolicy = { minAvailable: of.pods, scheduleTimeoutSeconds: 20, queue: of.queue };
  const spec = {
    kind: "Job",
    priority: of.priority,
    replicaSpecs: { Worker: { replicas: of.pods, restartPolicy: "OnFailure" as const, template } },
    runPolicy: { cleanPodPolicy: "All" as const, schedulingPolicy },
  };
  return { namespace: "default", name, generateName: "", labels: {}, annotations: {}, spec };
}
