import { recordedScopes } from "../../../src/adapters/store/ledger/sums.ts";
import type { Job } from "../../../src/core/job/job.ts";
import type { TopologyWish } from "../../../src/core/job/placement/topology-wish.ts";
import type { ReplicaSpec } from "../../../src/core/job/spec.ts";
import type { Admission } from "../../../src/core/job/status.ts";
import type { Registry } from "../../../src/core/kinds/registry.ts";
import { type GangCounters, gangOf, type PlanGang } from "../../../src/core/plan/model/plan-gang.ts";
import type { NodeCapacity, PlanCluster, PlanQueue, PlanSnapshot } from "../../../src/core/plan/model/snapshot.ts";
import type { Resources } from "../../../src/core/pods/resources.ts";
import type { LedgerRow, PoolLimit } from "../../../src/core/quota/counters.ts";
import type { RecordedSum } from "../../../src/core/quota/grant-book.ts";
import { scopeKey } from "../../../src/core/quota/scopes.ts";
import type { JsonObject } from "../../../src/runtime/json.ts";
import { OWN_KINDS } from "../../support/kinds.ts";

export const NOW = 1_000_000;
/** The time for plans of these snapshots, and the kinds for simulations. */
export const AT = { kinds: OWN_KINDS, nowMs: NOW };

export type JobParts = {
  readonly name: string;
  readonly queue?: string;
  readonly priority?: number;
  readonly createTimeMs?: number;
  readonly minAvailable?: number;
  /** GPUs of each pod, and how many pods, by replica type. */
  readonly roles: Readonly<
    Record<
      string,
      {
        readonly replicas: number;
        readonly gpus?: number;
        readonly cpu?: number;
        readonly pod?: JsonObject;
        readonly topology?: TopologyWish;
      }
    >
  >;
  readonly topology?: TopologyWish;
  readonly gpuModels?: readonly string[];
  readonly clusters?: readonly string[];
  readonly clusterSelector?: Readonly<Record<string, string>>;
  readonly admissions?: readonly Admission[];
  readonly backoff?: Job["status"]["backoff"];
};

export function job(parts: JobParts): Job {
  const roles = Object.entries(parts.roles);
  const total = roles.reduce((sum, [, role]) => sum + role.replicas, 0);
  const replicaSpecs = roles.map(([role, { replicas, gpus = 0, cpu = 0, pod = {}, topology }]) => {
    const requests = { ...(gpus > 0 ? { "nvidia.com/gpu": gpus } : {}), ...(cpu > 0 ? { cpu } : {}) };
    const spec = { containers: [{ name: "main", image: "i", resources: { requests } }], ...pod };
    const wish = topology === undefined ? {} : { topology };
    return [role, { replicas, restartPolicy: "OnFailure", template: { spec }, ...wish } satisfies ReplicaSpec] as const;
  });
  return {
    uid: `uid-${parts.name}`,
    namespace: "ml",
    name: parts.name,
    project: "research",
    labels: {},
    annotations: {},
    createdBy: "anonymous",
    createTimeMs: parts.createTimeMs ?? 0,
    deleteTimeMs: null,
    cancel: null,
    version: 3,
    spec: {
      kind: "PyTorchJob",
      replicaSpecs: Object.fromEntries(replicaSpecs),
      runPolicy: {
        cleanPodPolicy: "Running",
        ttlSecondsAfterFinished: null,
        activeDeadlineSeconds: null,
        backoffLimit: null,
        systemBackoffLimit: 20,
        restartScope: "REPLICA",
        schedulingPolicy: {
          minAvailable: parts.minAvailable ?? total,
          queue: parts.queue ?? "q",
          scheduleTimeoutSeconds: 600,
        },
      },
      kindSpec: {},
      priority: parts.priority ?? 0,
      placement: {
        clusters: parts.clusters ?? [],
        clusterSelector: parts.clusterSelector ?? {},
        gpuModels: parts.gpuModels ?? [],
        ...(parts.topology === undefined ? {} : { topology: parts.topology }),
      },
    },
    status: {
      phase: parts.admissions?.some((admission) => admission.state === "live") ? "RUNNING" : "WAITING",
      conditions: [],
      replicaStatuses: {},
      startTimeMs: null,
      completionTimeMs: null,
      waiting: null,
      failure: null,
      attempts: { user: 0, system: 0, byReplica: {}, notBeforeMs: {}, restartsSeen: {} },
      backoff: parts.backoff ?? null,
    },
    admissions: parts.admissions ?? [],
  };
}

export function admission(parts: Partial<Admission> & { readonly cluster: string }): Admission {
  return {
    number: 1,
    admitTimeMs: 0,
    members: {},
    flavors: {},
    flavorLabels: {},
    state: "live",
    tokensReleasedMs: null,
    goneMs: null,
    belowMinSinceMs: null,
    ...parts,
  };
}

export function amounts(gpus: number, cpu = 64): Resources {
  return { "nvidia.com/gpu": gpus * 1000, cpu: cpu * 1000, memory: 2 ** 38 * 1000, pods: 110_000 };
}

export function node(name: string, model: string, parts: Partial<NodeCapacity> = {}): NodeCapacity {
  return {
    name,
    labels: { gpu: model, zone: "a" },
    taints: [],
    unschedulable: false,
    allocatable: amounts(8),
    free: amounts(8),
    ...parts,
  };
}

export function nodes(count: number, model: string, parts: Partial<NodeCapacity> = {}): readonly NodeCapacity[] {
  return Array.from({ length: count }, (_, at) => node(`${model}-${at}`, model, parts));
}

export function flavor(model: string) {
  return { name: `gpu/${model}`, resource: "nvidia.com/gpu", nodeLabels: { gpu: model } };
}

export function cluster(
  name: string,
  parts: Partial<PlanCluster> & { readonly nodes?: readonly NodeCapacity[] } = {},
): PlanCluster {
  const { nodes: all = nodes(2, "h100"), ...rest } = parts;
  const models = [...new Set(all.map((one) => one.labels["gpu"] ?? ""))];
  return {
    name,
    labels: {},
    flavors: models.map(flavor),
    cordoned: false,
    reachable: true,
    admissionCounter: 7,
    capacity: { nodes: all, seen: [], unbound: [] },
    ...rest,
  };
}

export function queue(
  name: string,
  nominal: Readonly<Record<string, number>>,
  parts: Partial<PlanQueue & Used> = {},
): PlanQueue & Used {
  const quotas = Object.entries(nominal).map(([model, amount]) => ({
    flavor: `gpu/${model}`,
    resource: "nvidia.com/gpu",
    nominal: amount,
  }));
  return { name, parent: null, strategy: "BEST_EFFORT_FIFO", quotas, used: {}, ...parts };
}

/** The use by a queue's allocations, by pool. */
type Used = { readonly used: Readonly<Record<string, number>> };

export function pool(name: string, parts: Partial<PoolLimit> = {}): PoolLimit {
  return { pool: name, quota: null, projectDefault: null, namespaceDefault: null, ...parts };
}

/** The sums of some allocations, as the ledger records them. */
export function sumsOf(
  allocations: readonly Omit<LedgerRow, "leaseMs" | "token" | "holder" | "fence">[],
): readonly RecordedSum[] {
  const sums = new Map<string, RecordedSum>();
  for (const allocation of allocations) {
    for (const scope of recordedScopes(allocation)) {
      const used = (sums.get(scopeKey(scope))?.used ?? 0) + allocation.amount;
      sums.set(scopeKey(scope), { scope, used });
    }
  }
  return [...sums.values()];
}

/** The gang of a job that has had `lastAdmission` admissions. Omitted: those of its record. */
export function planGang(
  of: Job,
  { kinds = OWN_KINDS, ...given }: Partial<GangCounters> & { readonly kinds?: Registry } = {},
): PlanGang {
  const last = Math.max(given.lastAdmission ?? 0, ...of.admissions.map(({ number }) => number));
  return gangOf(of, kinds, { generation: given.generation ?? 1, lastAdmission: last });
}

/** Parts of a snapshot, with jobs in the place of gangs. */
export type SnapshotParts = Partial<Omit<PlanSnapshot, "queues" | "waiting" | "admitted">> & {
  readonly queues?: readonly (PlanQueue & Partial<Used>)[];
  readonly waiting?: readonly (Job | PlanGang)[];
  readonly admitted?: readonly (Job | PlanGang)[];
};

/** A snapshot in which pools have no limits or uses but those of queues, unless `parts` says so. */
export function snapshot({ waiting = [], admitted = [], ...parts }: SnapshotParts): PlanSnapshot {
  const gang = (one: Job | PlanGang) => ("spec" in one ? planGang(one) : one);
  const allocations = (parts.queues ?? []).flatMap(({ name, used = {} }) =>
    Object.entries(used).map(([of, amount]) => ({
      pool: of,
      project: "other",
      namespace: "other",
      queue: name,
      amount,
    })),
  );
  const flavors = new Set(["gpu/h100", "gpu/a100"]);
  for (const { quotas } of parts.queues ?? []) for (const { flavor: of } of quotas) flavors.add(of);
  return {
    quotaEpoch: 1,
    waiting: waiting.map(gang),
    admitted: admitted.map(gang),
    queues: [queue("q", { h100: 1000, a100: 1000 })],
    pools: [...flavors].map((of) => pool(of)),
    sums: sumsOf(allocations),
    callers: [],
    clusters: [cluster("east")],
    ...parts,
  };
}
