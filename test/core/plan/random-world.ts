import type { Job } from "../../../src/core/job/job.ts";
import type { TopologyWish } from "../../../src/core/job/placement/topology-wish.ts";
import { firstMembers } from "../../../src/core/job/roles.ts";
import type { Admission } from "../../../src/core/job/status.ts";
import type { PlanGang } from "../../../src/core/plan/model/plan-gang.ts";
import {
  DEFAULT_POLICY,
  FAIR_SHARING_STRATEGIES,
  type QueuePolicy,
} from "../../../src/core/plan/model/queue-policy.ts";
import type {
  BoundMember,
  HeldByCaller,
  NodeCapacity,
  PlanCluster,
  PlanQueue,
  PlanSnapshot,
} from "../../../src/core/plan/model/snapshot.ts";
import type { PoolLimit } from "../../../src/core/quota/counters.ts";
import type { RecordedSum } from "../../../src/core/quota/grant-book.ts";
import type { JsonObject } from "../../../src/runtime/json.ts";
import { seededRandom } from "../../support/random.ts";
import { admission, amounts, flavor, job, NOW, node, planGang, pool, queue, snapshot, sumsOf } from "./plan-world.ts";

export const MODELS = ["h100", "a100"] as const;
export const QUEUES = ["root", "left", "right", "below", "alone"];
const PARENTS: Readonly<Record<string, string | null>> = { left: "root", right: "root", below: "left" };

/** Draws random parts of worlds. The same seed draws the same ones. */
export class Draw {
  readonly #random: () => number;

  constructor(seed: number) {
    this.#random = seededRandom(seed);
  }

  /** An integer from 0 to `max`. */
  upTo(max: number): number {
    return Math.floor(this.#random() * (max + 1));
  }

  chance(part: number): boolean {
    return this.#random() < part;
  }

  of<T>(values: readonly T[]): T {
    return values[this.upTo(values.length - 1)] as T;
  }

  list<T>(count: number, make: (at: number) => T): T[] {
    return Array.from({ length: count }, (_, at) => make(at));
  }

  maybe(max: number): number | null {
    return this.chance(0.4) ? null : this.upTo(max);
  }
}

export function randomQueue(draw: Draw, name: string): PlanQueue {
  const strategy = draw.chance(0.3) ? ("STRICT_FIFO" as const) : ("BEST_EFFORT_FIFO" as const);
  const models = MODELS.filter(() => draw.chance(0.9));
  const made = queue(name, Object.fromEntries(models.map((one) => [one, draw.upTo(20)])), { strategy });
  const quotas = made.quotas.map((quota) => {
    const [borrowingLimit, lendingLimit] = [draw.maybe(6), draw.maybe(6)];
    const borrowed = borrowingLimit === null ? quota : { ...quota, borrowingLimit };
    return lendingLimit === null ? borrowed : { ...borrowed, lendingLimit };
  });
  return { name, parent: PARENTS[name] ?? null, strategy, quotas, policy: randomPolicy(draw) };
}

export function randomPolicy(draw: Draw): QueuePolicy {
  return {
    ...DEFAULT_POLICY,
    reserveAfterMs: 0,
    weight: draw.of([0, 1, 1, 2]),
    fairSharing: draw.chance(0.5) ? FAIR_SHARING_STRATEGIES : null,
    withinQueue: draw.of(["NEVER", "LOWER_PRIORITY", "LOWER_OR_NEWER_EQUAL_PRIORITY"]),
    reclaimWithinTree: draw.of(["NEVER", "LOWER_PRIORITY", "ANY"]),
    borrowWithin: { policy: draw.of(["NEVER", "LOWER_PRIORITY"]), maxPriority: draw.maybe(1) },
    minRuntimePreemptMs: draw.chance(0.2) ? draw.upTo(3) : null,
    minRuntimeReclaimMs: draw.chance(0.2) ? draw.upTo(3) : null,
    fungibility: {
      whenCanBorrow: draw.of(["MAY_STOP_SEARCH", "TRY_NEXT_FLAVOR"]),
      whenCanPreempt: draw.of(["MAY_STOP_SEARCH", "TRY_NEXT_FLAVOR"]),
      preference: draw.of([null, "PREEMPTION_OVER_BORROWING", "BORROWING_OVER_PREEMPTION"]),
    },
  };
}

export function randomPool(draw: Draw, name: string): PoolLimit {
  if (draw.chance(0.4)) return pool(name);
  return pool(name, { quota: draw.maybe(24), projectDefault: draw.maybe(20), namespaceDefault: draw.maybe(20) });
}

export function randomNode(draw: Draw, name: string): NodeCapacity {
  const isTainted = draw.chance(0.3);
  return node(name, draw.of(MODELS), {
    labels: { gpu: draw.of(MODELS), zone: draw.of(["a", "b"]) },
    unschedulable: draw.chance(0.1),
    taints: isTainted ? [{ key: "dedicated", value: "ml", effect: "NoSchedule" }] : [],
    allocatable: amounts(8, 16),
    free: amounts(draw.upTo(8), draw.upTo(16)),
  });
}

export function randomCluster(draw: Draw, name: string, nodesMax: number): PlanCluster {
  const nodes = draw.list(draw.upTo(nodesMax), (at) => randomNode(draw, `${name}-${at}`));
  const pods = draw.list(draw.chance(0.3) ? draw.upTo(3) : 0, () => {
    const podSpec: JsonObject = draw.of([{}, { nodeSelector: { zone: "b" } }]);
    return { podSpec, requests: { "nvidia.com/gpu": draw.upTo(4) * 1000, cpu: 1000, pods: 1000 } };
  });
  const isSimulated = draw.chance(0.2);
  return {
    ...(isSimulated ? { simulated: true, retired: draw.chance(0.3) } : {}),
    name,
    labels: draw.chance(0.5) ? { tier: "gold" } : {},
    flavors: MODELS.filter(() => draw.chance(0.9)).map(flavor),
    cordoned: draw.chance(0.1),
    reachable: draw.chance(0.9),
    admissionCounter: 7,
    capacity: draw.chance(0.05) ? null : { nodes, seen: [], unbound: pods },
  };
}

/** Pods of few kinds, so that many gangs have equal asks. */
const PODS: readonly JsonObject[] = [
  {},
  {},
  {},
  { nodeSelector: { zone: "b" } },
  { tolerations: [{ key: "dedicated", operator: "Exists" }] },
];

export type JobDraw = {
  readonly name: string;
  readonly clusters: readonly string[];
  readonly queues: readonly string[];
  /** True: all pods of a gang are alike, so that its fit is exact. */
  readonly alike: boolean;
};

export function randomJob(draw: Draw, of: JobDraw): Job {
  const main = { replicas: 1 + draw.upTo(3), gpus: draw.upTo(4), cpu: draw.upTo(3), pod: draw.of(PODS) };
  const other = of.alike ? { ...main, replicas: 1 } : { replicas: 1, gpus: draw.upTo(4), cpu: 1, pod: draw.of(PODS) };
  const roles = draw.chance(0.5) ? { Worker: main } : { PS: other, Worker: main };
  const total = main.replicas + ("PS" in roles ? other.replicas : 0);
  const backoff = { undone: 1, notBeforeMs: NOW + draw.upTo(2) * 5 - 5, lastCluster: draw.of(of.clusters) };
  const made = job({
    name: of.name,
    queue: draw.chance(0.05) ? "nowhere" : draw.of(of.queues),
    priority: draw.chance(0.3) ? 1 : 0,
    createTimeMs: draw.upTo(3),
    minAvailable: Math.max(1, total - (draw.chance(0.5) ? draw.upTo(3) : 0)),
    roles,
    gpuModels: draw.of([[], [], [], ["h100"], ["gpu/a100"]]),
    clusters: draw.chance(0.15) ? [draw.of(of.clusters)] : [],
    clusterSelector: draw.chance(0.1) ? { tier: "gold" } : {},
    backoff: draw.chance(0.15) ? backoff : null,
  });
  const isElastic = draw.chance(0.3);
  const spec = { ...made.spec, kind: "TFJob", kindSpec: isElastic ? { enableDynamicWorker: true } : {} };
  const suspend = draw.chance(0.05) ? { suspend: true } : {};
  return {
    ...made,
    namespace: draw.of(["ml", "nlp"]),
    project: draw.of(["vision", "speech"]),
    spec: { ...spec, runPolicy: { ...spec.runPolicy, ...suspend } },
    admissions: draw.chance(0.1) ? [oldAdmission(draw, of.clusters)] : [],
  };
}

/** The job, perhaps with more replica types whose pods request GPUs, some of them nodes of one model. */
export function withTypes(draw: Draw, one: Job): Job {
  const types = ["Chief", "Evaluator"].filter(() => draw.chance(0.6));
  const more = types.map((role) => {
    const model = draw.chance(0.3) ? { nodeSelector: { gpu: draw.of(MODELS) } } : {};
    const { spec } = job({
      name: "x",
      roles: { [role]: { replicas: 1 + draw.upTo(1), gpus: 1 + draw.upTo(2), pod: model } },
    });
    return [role, spec.replicaSpecs[role] as NonNullable<(typeof spec.replicaSpecs)[string]>] as const;
  });
  const replicaSpecs = { ...one.spec.replicaSpecs, ...Object.fromEntries(more) };
  const { schedulingPolicy } = one.spec.runPolicy;
  const added = more.reduce((sum, [, { replicas }]) => sum + replicas, 0);
  const minAvailable = schedulingPolicy.minAvailable + draw.upTo(added);
  const runPolicy = { ...one.spec.runPolicy, schedulingPolicy: { ...schedulingPolicy, minAvailable } };
  return { ...one, spec: { ...one.spec, replicaSpecs, runPolicy } };
}

function oldAdmission(draw: Draw, clusters: readonly string[]): Admission {
  const tokensReleasedMs = draw.chance(0.7) ? 5 : null;
  return admission({
    cluster: draw.of(clusters),
    state: "undone",
    tokensReleasedMs,
    goneMs: null,
    members: { Worker: 1 },
  });
}

/** The job with a live admission of some of its members. */
export function admittedJob(draw: Draw, one: Job, cluster: string): Job {
  const total = Object.values(one.spec.replicaSpecs).reduce((sum, { replicas }) => sum + replicas, 0);
  const members = firstMembers(one.spec, 1 + draw.upTo(total - 1));
  const model = draw.of(MODELS);
  const live = admission({
    number: 2,
    cluster,
    members,
    flavors: { "nvidia.com/gpu": `gpu/${model}` },
    flavorLabels: draw.chance(0.8) ? { "nvidia.com/gpu": { gpu: model } } : {},
  });
  const { admissions } = one;
  return { ...one, status: { ...one.status, phase: "RUNNING" }, admissions: [...admissions, live] };
}

/** The members of a job that some node shows. */
export function shownMembers(draw: Draw, one: Job): readonly BoundMember[] {
  const live = one.admissions.find(({ state }) => state === "live");
  return Object.entries(live?.members ?? {}).flatMap(([role, count]) =>
    Array.from({ length: count }, (_, index) => index)
      .filter(() => draw.chance(0.6))
      .map((index) => ({ jobUid: one.uid, admission: 2, role: role.toLowerCase(), index })),
  );
}

export function randomSums(draw: Draw): readonly RecordedSum[] {
  const rows = draw.list(draw.upTo(5), () => ({
    pool: `gpu/${draw.of(MODELS)}`,
    project: draw.of(["vision", "speech"]),
    namespace: draw.of(["ml", "nlp"]),
    queue: draw.of(QUEUES),
    amount: 1 + draw.upTo(5),
  }));
  return sumsOf(rows);
}

function randomCaller(draw: Draw, caller: string): HeldByCaller {
  const to = { project: draw.of(["vision", "speech"]), namespace: draw.of(["ml", "nlp"]), queue: draw.of(QUEUES) };
  return { caller, pool: `gpu/${draw.of(MODELS)}`, amount: 1 + draw.upTo(5), ...to };
}

export type WorldSize = { readonly jobs: number; readonly nodes: number; readonly alike: boolean };

/** A random snapshot. A job with a field selector keeps every node apart for a plan that groups nodes. */
export function randomSnapshot(seed: number, size: WorldSize): PlanSnapshot {
  const draw = new Draw(seed);
  const names = draw.list(1 + draw.upTo(2), (at) => ["east", "north", "west"][at] ?? "");
  const clusters = names.map((name) => randomCluster(draw, name, size.nodes));
  const of = { clusters: names, queues: QUEUES, alike: size.alike };
  const waiting = draw.list(1 + draw.upTo(size.jobs), (at) => randomJob(draw, { ...of, name: `w${at}` }));
  const admitted = draw.list(draw.upTo(4), (at) => {
    return admittedJob(draw, randomJob(draw, { ...of, name: `a${at}` }), draw.of(names));
  });
  return snapshot({
    waiting: [
      ...waiting.map((one) => laterGang(one, { more: draw.upTo(3), isService: draw.chance(0.04) })),
      planGang(byNameJob()),
    ],
    admitted,
    queues: QUEUES.map((name) => randomQueue(draw, name)).map((one) => ({ ...one, used: {} })),
    pools: MODELS.map((model) => randomPool(draw, `gpu/${model}`)),
    sums: randomSums(draw),
    callers: draw.list(draw.upTo(2), (at) => randomCaller(draw, `caller-${at}`)),
    clusters: clusters.map((one) => withSeen(draw, one, admitted)),
  });
}

/** A gang that had some admissions more than its job's record names. A service has no pods. */
function laterGang(one: Job, of: { readonly more: number; readonly isService: boolean }): PlanGang {
  const { more, isService } = of;
  const gang = planGang(one);
  const ask = isService ? { ...gang.ask, service: true } : gang.ask;
  const askHash = isService ? `service of ${gang.askHash}` : gang.askHash;
  return { ...gang, ask, askHash, lastAdmission: gang.lastAdmission + more, traceParent: `trace of ${gang.name}` };
}

/** Some jobs wish for levels, which some clusters lack: all pods together, or those of one type, or in slices. */
export function withWishes(draw: Draw, one: Job): Job {
  const level = () => draw.of(["rack", "rack", "block", "zone"]);
  const wish = (): TopologyWish => (draw.chance(0.7) ? { required: level() } : { preferred: level() });
  const { spec } = one;
  const replicaSpecs = Object.fromEntries(
    Object.entries(spec.replicaSpecs).map(([role, replica]) => {
      const slices = draw.chance(0.3) ? { slices: [{ level: "rack", size: replica.replicas }] } : {};
      const topology = { ...(draw.chance(0.3) ? wish() : {}), ...slices };
      return [role, Object.keys(topology).length === 0 ? replica : { ...replica, topology }];
    }),
  );
  const placement = draw.chance(0.4) ? { ...spec.placement, topology: wish() } : spec.placement;
  return { ...one, spec: { ...spec, replicaSpecs, placement } };
}

function withSeen(draw: Draw, one: PlanCluster, admitted: readonly Job[]): PlanCluster {
  if (one.capacity === null) return one;
  const here = admitted.filter(({ admissions }) => admissions.some(({ cluster }) => cluster === one.name));
  return { ...one, capacity: { ...one.capacity, seen: here.flatMap((running) => shownMembers(draw, running)) } };
}

function byNameJob(): Job {
  const matchFields = [{ key: "metadata.name", operator: "In", values: ["none"] }];
  const required = { nodeSelectorTerms: [{ matchFields }] };
  const affinity = { nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: required } };
  const made = job({ name: "by-name", queue: "nowhere", roles: { Worker: { replicas: 1, pod: { affinity } } } });
  return { ...made, createTimeMs: 99 };
}
