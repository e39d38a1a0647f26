/** A random fleet for `npm run bench -- plan`: clusters, nodes, queues, and gangs that run or wait. */
import type { FlavorLabels } from "../../../src/core/job/flavor-labels.ts";
import type { Change } from "../../../src/core/plan/facts/changes.ts";
import type { Ask } from "../../../src/core/plan/model/ask.ts";
import type { EntryChange } from "../../../src/core/plan/model/capacity-entry.ts";
import type { NodeLabels } from "../../../src/core/plan/model/node-labels.ts";
import type { PlanGang } from "../../../src/core/plan/model/plan-gang.ts";
import type { PlannedPreemption } from "../../../src/core/plan/model/preemption.ts";
import {
  DEFAULT_POLICY,
  FAIR_SHARING_STRATEGIES,
  type QueuePolicy,
} from "../../../src/core/plan/model/queue-policy.ts";
import type { BoundMember, NodeCapacity, PlanQueue } from "../../../src/core/plan/model/snapshot.ts";
import { HOSTNAME_LABEL, type Topology } from "../../../src/core/plan/model/topology.ts";
import type { Resources } from "../../../src/core/pods/resources.ts";
import type { Scope } from "../../../src/core/quota/counters.ts";
import { scopeKey } from "../../../src/core/quota/scopes.ts";
import { seededRandom } from "../../support/random.ts";

export type FleetSize = {
  readonly gangs: number;
  readonly nodes: number;
  readonly clusters: number;
  readonly asks: number;
  readonly queues: number;
  /** That of every queue, which then has a weight, too. True: they share fairly, and preempt. */
  readonly policies?: boolean | QueuePolicy;
  /** True: the nodes are in racks and blocks, which are levels of their clusters. Omitted: false. */
  readonly levels?: boolean;
  /** True: a third of the asks need one rack for all pods. Omitted: false. */
  readonly wishes?: boolean;
};

export const GPU = "nvidia.com/gpu";
export const MODELS = ["h100", "a100", "l40s", "v100"];
const GPUS_PER_NODE = 8;
const LEVELS: Topology = [
  { name: "block", label: "example.com/block" },
  { name: "rack", label: "example.com/rack" },
  { name: "host", label: HOSTNAME_LABEL },
];
const NODES_PER_RACK = 16;
const NODES_PER_BLOCK = 128;

/** Preempts within the queue and across queues, in a tree that shares fairly. */
const POLICY: QueuePolicy = {
  ...DEFAULT_POLICY,
  fairSharing: FAIR_SHARING_STRATEGIES,
  withinQueue: "LOWER_PRIORITY",
  reclaimWithinTree: "ANY",
};

/** Members by role. */
type Counts = Readonly<Record<string, number>>;

type FleetNode = {
  readonly cluster: string;
  readonly name: string;
  readonly model: string;
  /** Those of its rack and block. */
  readonly levels: NodeLabels;
  readonly allocatable: Resources;
  free: Record<string, number>;
  members: BoundMember[];
  sequence: number;
};

type Place = { readonly cluster: string; readonly flavorLabels?: FlavorLabels };

type PendingPod = {
  readonly gang: PlanGang;
  readonly admission: number;
  readonly role: string;
  readonly index: number;
  readonly to: Place;
};

/** The facts that a store would have of a fleet, and the pods that run in it. */
export class Fleet {
  readonly random: () => number;
  readonly asks: readonly { readonly hash: string; readonly ask: Ask }[];
  readonly queues: readonly PlanQueue[];
  readonly clusterNames: readonly string[];
  readonly nodes: readonly FleetNode[];
  readonly gangs = new Map<string, PlanGang>();
  readonly counters = new Map<string, number>();
  readonly #topology: Topology;
  readonly #byPlace = new Map<string, FleetNode[]>();
  readonly #sums = new Map<string, { readonly scope: Scope; used: number; version: number }>();
  readonly #nodesOf = new Map<string, FleetNode[]>();
  readonly #sequences = new Map<string, number>();
  /** The pods of admitted gangs that no node takes. The planner may have placed others than the fleet did. */
  #pending: PendingPod[] = [];
  #gangsMade = 0;

  constructor(size: FleetSize) {
    this.random = seededRandom(7);
    this.#topology = size.levels ? LEVELS : [];
    this.asks = Array.from({ length: size.asks }, (_, at) => ({ hash: `ask-${at}`, ask: this.#ask(at, size) }));
    this.queues = this.#makeQueues(size);
    this.clusterNames = Array.from({ length: size.clusters }, (_, at) => `cluster-${at}`);
    this.nodes = Array.from({ length: size.nodes }, (_, at) => this.#makeNode(at, size));
    for (const name of this.clusterNames) this.counters.set(name, 0);
    for (const node of this.nodes) {
      const place = `${node.cluster} ${node.model}`;
      this.#byPlace.set(place, [...(this.#byPlace.get(place) ?? []), node]);
    }
  }

  upTo(max: number): number {
    return Math.floor(this.random() * (max + 1));
  }

  of<T>(values: readonly T[]): T {
    return values[this.upTo(values.length - 1)] as T;
  }

  /** A new gang that waits in a random queue. */
  newGang(): PlanGang {
    const { hash, ask } = this.of(this.asks);
    const at = this.#gangsMade;
    this.#gangsMade += 1;
    const leaves = this.queues.filter(({ parent }) => parent !== null);
    const gang: PlanGang = {
      uid: `00000000-0000-7000-8000-${at.toString(16).padStart(12, "0")}`,
      namespace: `team-${this.upTo(99)}`,
      name: `job-${at}`,
      project: `project-${this.upTo(19)}`,
      queue: this.of(leaves).name,
      priority: this.of([0, 0, 0, 100]),
      createTimeMs: 1_700_000_000_000 + at,
      version: 1,
      generation: 1,
      askHash: hash,
      ask,
      suspended: false,
      awaitsResult: null,
      backoff: null,
      waitsSinceMs: 1_700_000_000_000 + at,
      waits: true,
      ends: false,
      admissions: [],
      lastAdmission: 0,
    };
    this.gangs.set(gang.uid, gang);
    return gang;
  }

  /** Records an admission, or the growth of one, and puts its pods on nodes. Returns the changes that follow. */
  admit(
    gang: PlanGang,
    to: {
      readonly cluster: string;
      readonly flavors: Readonly<Record<string, string>>;
      readonly flavorLabels: FlavorLabels;
      readonly members: Readonly<Record<string, number>>;
      readonly amounts: readonly { readonly pool: string; readonly amount: number }[];
    },
  ): readonly Change[] {
    const before = gang.admissions.at(-1) ?? null;
    const number = before?.number ?? gang.lastAdmission + 1;
    const used = this.#bind(gang, number, { ...to, from: before?.members ?? {} });
    const live = { number, admitTimeMs: 0, state: "live" as const, tokensReleasedMs: null, goneMs: null };
    const { cluster, flavors, flavorLabels, members } = to;
    const admissions = [{ ...live, cluster, flavors, flavorLabels, members }];
    const { nomination: _, ...others } = gang;
    const after = { ...others, version: gang.version + 1, waits: false, admissions, lastAdmission: number };
    this.gangs.set(gang.uid, after);
    this.counters.set(cluster, (this.counters.get(cluster) ?? 0) + 1);
    const sums = to.amounts.flatMap(({ pool, amount }) => this.#charge(gang, pool, amount));
    return [gangChange(after), ...sums, this.clusterChange(cluster), ...this.capacityChanges(used)];
  }

  /** Records a reservation. */
  reserve({ planned, reservation }: PlannedPreemption): readonly Change[] {
    const gang = this.gangs.get(planned.jobUid);
    if (gang === undefined || reservation === undefined) return [];
    const { cluster, flavors, members } = planned;
    const { sinceMs, keepsQuota, awaits: victims } = reservation;
    const since = sinceMs ?? gang.createTimeMs;
    const nominee = { cluster: cluster ?? "", flavors, members, generation: gang.generation, victims };
    const nomination = { ...nominee, reservation: { sinceMs: since, keepsQuota }, sinceMs: since };
    return this.#replace({ ...gang, nomination });
  }

  /** Ends a reservation. */
  withdraw(jobUid: string): readonly Change[] {
    const gang = this.gangs.get(jobUid);
    if (gang === undefined) return [];
    const { nomination: _, ...others } = gang;
    return this.#replace(others);
  }

  #replace(gang: PlanGang): readonly Change[] {
    const after = { ...gang, version: gang.version + 1 };
    this.gangs.set(gang.uid, after);
    return [gangChange(after)];
  }

  /** Ends a gang that runs. Returns the changes that follow. */
  end(gang: PlanGang): readonly Change[] {
    const live = gang.admissions.at(-1);
    const nodes = this.#nodesOf.get(gang.uid) ?? [];
    this.#nodesOf.delete(gang.uid);
    this.gangs.delete(gang.uid);
    for (const node of new Set(nodes)) {
      const mine = node.members.filter(({ jobUid }) => jobUid === gang.uid);
      node.members = node.members.filter(({ jobUid }) => jobUid !== gang.uid);
      for (const { role } of mine) moveFree(node, requestsOf(gang.ask, role), 1);
    }
    this.#pending = this.#pending.filter((pod) => pod.gang.uid !== gang.uid);
    const bound = this.#bindPending(new Set(nodes.map(({ cluster }) => cluster)));
    const sums = Object.entries(live?.flavors ?? {}).flatMap(([resource, pool]) => {
      return this.#charge(gang, pool, -unitsOf(gang.ask, live?.members ?? {}, resource));
    });
    const gone: Change = { kind: "gang", uid: gang.uid, version: gang.version + 1, gang: null };
    return [gone, ...sums, ...this.capacityChanges([...new Set([...nodes, ...bound])])];
  }

  clusterChange(name: string): Change {
    const flavors = MODELS.map((model) => ({ name: `gpu/${model}`, resource: GPU, nodeLabels: { gpu: model } }));
    const admissionCounter = this.counters.get(name) ?? 0;
    const topology = this.#topology.length === 0 ? {} : { topology: this.#topology };
    const facts = { name, labels: {}, flavors, ...topology, cordoned: false, reachable: true, admissionCounter };
    return { kind: "cluster", name, version: admissionCounter + 1, facts };
  }

  /** The differences that an observer would record for these nodes. */
  capacityChanges(nodes: readonly FleetNode[]): readonly Change[] {
    return nodes.map((node) => {
      const since = this.#sequences.get(node.cluster) ?? 1;
      const sequence = since + 1;
      this.#sequences.set(node.cluster, sequence);
      return { kind: "capacity", cluster: node.cluster, epoch: 1, since, sequence, changes: [entryOf(node)] };
    });
  }

  /** Everything that the store has, as a planner loads it. */
  load(): readonly Change[] {
    const lists = this.clusterNames.map((cluster): Change => {
      const changes = this.nodes.filter((node) => node.cluster === cluster).map(entryOf);
      const sequence = this.#sequences.get(cluster) ?? 1;
      return { kind: "capacity", cluster, epoch: 1, since: null, sequence, changes };
    });
    return [
      ...this.queues.map((queue): Change => ({ kind: "queue", name: queue.name, version: 1, queue })),
      ...MODELS.map((model): Change => {
        const pool = { pool: `gpu/${model}`, quota: null, projectDefault: null, namespaceDefault: null };
        return { kind: "pool", name: pool.pool, version: 1, pool };
      }),
      ...[...this.#sums.values()].map((sum): Change => ({ kind: "sum", ...sum })),
      ...this.clusterNames.map((name) => this.clusterChange(name)),
      ...lists,
      ...[...this.gangs.values()].map(gangChange),
    ];
  }

  /** The GPUs of nodes that are in use, and all of them. */
  gpus(): { readonly used: number; readonly all: number } {
    const sum = (amountOf: (node: FleetNode) => number) =>
      this.nodes.reduce((total, node) => total + amountOf(node), 0);
    const all = sum(({ allocatable }) => allocatable[GPU] ?? 0) / 1000;
    return { used: all - sum(({ free }) => free[GPU] ?? 0) / 1000, all };
  }

  /** Puts the members after those in `from` on nodes. Those that no node takes wait until others leave. */
  #bind(gang: PlanGang, admission: number, to: Place & { readonly members: Counts; readonly from: Counts }) {
    const used: FleetNode[] = [];
    for (const { role } of gang.ask.roles) {
      for (let index = to.from[role] ?? 0; index < (to.members[role] ?? 0); index++) {
        const pod = { gang, admission, role, index, to };
        const node = this.#bindPod(pod);
        if (node === null) this.#pending.push(pod);
        else used.push(node);
      }
    }
    return [...new Set(used)];
  }

  /** Puts pods that wait for a node in some clusters on those that take them now. */
  #bindPending(clusters: ReadonlySet<string>): readonly FleetNode[] {
    const bound: FleetNode[] = [];
    this.#pending = this.#pending.filter((pod) => {
      const node = clusters.has(pod.to.cluster) ? this.#bindPod(pod) : null;
      if (node !== null) bound.push(node);
      return node === null;
    });
    return bound;
  }

  #bindPod({ gang, admission, role, index, to }: PendingPod): FleetNode | null {
    const requests = requestsOf(gang.ask, role);
    const node = this.#find(to, requests);
    if (node === null) return null;
    moveFree(node, requests, -1);
    node.members = [...node.members, { jobUid: gang.uid, admission, role: role.toLowerCase(), index }];
    const nodes = this.#nodesOf.get(gang.uid) ?? [];
    nodes.push(node);
    this.#nodesOf.set(gang.uid, nodes);
    return node;
  }

  #find(to: Place, requests: Resources): FleetNode | null {
    const model = to.flavorLabels?.[GPU]?.["gpu"];
    const models = model === undefined ? MODELS : [model];
    for (const model of models) {
      for (const node of this.#byPlace.get(`${to.cluster} ${model}`) ?? []) {
        if (Object.entries(requests).every(([name, amount]) => (node.free[name] ?? 0) >= amount)) return node;
      }
    }
    return null;
  }

  #charge(gang: PlanGang, pool: string, amount: number): readonly Change[] {
    const scopes: readonly Scope[] = [
      { kind: "pool", pool },
      { kind: "queue", pool, queue: gang.queue },
    ];
    return scopes.map((scope) => {
      const sum = this.#sums.get(scopeKey(scope)) ?? { scope, used: 0, version: 0 };
      sum.used += amount;
      sum.version += 1;
      this.#sums.set(scopeKey(scope), sum);
      return { kind: "sum", ...sum };
    });
  }

  #ask(at: number, { wishes = false }: FleetSize): Ask {
    const gpus = this.of([1, 1, 2, 4, 8]);
    const main = {
      [GPU]: gpus * 1000,
      cpu: gpus * (4 + this.upTo(8)) * 1000,
      memory: (16 * 1024 + at) * 2 ** 20 * 1000,
      pods: 1000,
    };
    const replicas = this.of([1, 1, 1, 2, 4, 8, 16]);
    const hasLauncher = at % 3 === 0;
    const launcher = { cpu: 2000, memory: 4 * 2 ** 30 * 1000, pods: 1000 };
    const first = at % 4 === 0 ? Math.max(1, replicas >> 1) : replicas;
    const roles = [
      ...(hasLauncher ? [{ role: "Launcher", replicas: 1, first: 1, podClass: 0 }] : []),
      { role: "Worker", replicas, first, podClass: hasLauncher ? 1 : 0 },
    ];
    const podClasses = [...(hasLauncher ? [launcher] : []), main].map((requests) => ({ requests, scheduling: {} }));
    const gpuModels = at % 5 === 0 ? [this.of(MODELS)] : [];
    return {
      roles,
      podClasses,
      placement: { clusters: [], clusterSelector: {}, gpuModels },
      ...(wishes && at % 3 === 1 ? { topology: { required: "rack" } } : {}),
      elastic: false,
      service: false,
    };
  }

  #makeQueues({ queues, nodes, policies = false }: FleetSize): readonly PlanQueue[] {
    const policy = policies === true ? POLICY : policies;
    const policyOf = (at: number) => (policy ? { policy: { ...policy, weight: 1 + (at % 3) } } : {});
    const departments = Math.max(1, Math.round(queues / 50));
    const nominal = Math.max(1, Math.round((nodes * GPUS_PER_NODE) / MODELS.length / queues));
    const quotas = MODELS.map((model) => ({ flavor: `gpu/${model}`, resource: GPU, nominal }));
    const inner = Array.from({ length: departments }, (_, at) => `department-${at}`);
    return [
      { name: "fleet", parent: null, strategy: "BEST_EFFORT_FIFO", ...policyOf(0), quotas: [] },
      ...inner.map((name, at): PlanQueue => {
        return { name, parent: "fleet", strategy: "BEST_EFFORT_FIFO", ...policyOf(at), quotas: [] };
      }),
      ...Array.from({ length: queues }, (_, at): PlanQueue => {
        const strategy = at % 10 === 0 ? "STRICT_FIFO" : "BEST_EFFORT_FIFO";
        return { name: `queue-${at}`, parent: inner[at % departments] ?? null, strategy, ...policyOf(at), quotas };
      }),
    ];
  }

  #makeNode(at: number, { clusters, levels: hasLevels = false }: FleetSize): FleetNode {
    const cluster = `cluster-${at % clusters}`;
    const inCluster = Math.floor(at / clusters);
    const model = MODELS[inCluster % MODELS.length] ?? "";
    const ofModel = Math.floor(inCluster / MODELS.length);
    const levels: NodeLabels = hasLevels
      ? {
          "example.com/block": `${model}-${Math.floor(ofModel / NODES_PER_BLOCK)}`,
          "example.com/rack": String(Math.floor(ofModel / NODES_PER_RACK)),
        }
      : {};
    const allocatable = { [GPU]: GPUS_PER_NODE * 1000, cpu: 128_000, memory: 2 ** 41 * 1000, pods: 110_000 };
    return {
      cluster,
      name: `node-${at}`,
      model,
      levels,
      allocatable,
      free: { ...allocatable },
      members: [],
      sequence: 1,
    };
  }
}

function entryOf({ name, model, levels, allocatable, free, members }: FleetNode): EntryChange {
  const labels = { ...levels, gpu: model, "kubernetes.io/hostname": name, zone: `zone-${name.length % 3}` };
  const node: NodeCapacity = { name, labels, taints: [], unschedulable: false, allocatable, free: { ...free } };
  return { key: { kind: "node", name }, entry: { kind: "node", name, node, members } };
}

export function gangChange(gang: PlanGang): Change {
  return { kind: "gang", uid: gang.uid, version: gang.version, gang };
}

function requestsOf(ask: Ask, role: string): Resources {
  const found = ask.roles.find((one) => one.role === role);
  return ask.podClasses[found?.podClass ?? 0]?.requests ?? {};
}

function unitsOf(ask: Ask, members: Readonly<Record<string, number>>, resource: string): number {
  return Object.entries(members).reduce((sum, [role, count]) => {
    return sum + count * Math.ceil((requestsOf(ask, role)[resource] ?? 0) / 1000);
  }, 0);
}

function moveFree(node: FleetNode, requests: Resources, sign: 1 | -1): void {
  for (const [name, amount] of Object.entries(requests)) node.free[name] = (node.free[name] ?? 0) + sign * amount;
}
