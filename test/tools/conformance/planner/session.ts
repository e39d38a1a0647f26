import { ofRole } from "../../../../src/core/job/flavor-labels.ts";
import { FleetState } from "../../../../src/core/plan/fleet-state.ts";
import type { Ask } from "../../../../src/core/plan/model/ask.ts";
import type { PlanGang } from "../../../../src/core/plan/model/plan-gang.ts";
import type { PlannedAdmission } from "../../../../src/core/plan/model/plan-types.ts";
import type { QueuePolicy } from "../../../../src/core/plan/model/queue-policy.ts";
import type { NodeCapacity, PlanCluster, PlanQueue } from "../../../../src/core/plan/model/snapshot.ts";
import { contentHash } from "../../../../src/runtime/content-hash.ts";
import { type CaseConfig, type CaseGang, type CaseQueue, quotaStateOf } from "./world.ts";

type SessionQueue = CaseQueue & {
  readonly flavorGroups?: readonly { readonly resources: readonly string[]; readonly flavors: readonly string[] }[];
  readonly fungibility?: {
    readonly whenCanBorrow: string;
    readonly whenCanPreempt: string;
    readonly preference: string | null;
  };
};

type PodSet = {
  readonly name: string;
  readonly count: number;
  readonly minCount?: number;
  readonly requests: Readonly<Record<string, number>>;
};

type SessionGang = CaseGang & { readonly pods: readonly PodSet[] };

type SessionFlavor = {
  readonly name: string;
  readonly nodeLabels: Readonly<Record<string, string>>;
  readonly taints: readonly { readonly key: string; readonly value?: string; readonly effect: string }[];
  readonly tolerations: readonly object[];
};

type SessionCase = {
  readonly config: CaseConfig & { readonly partialAdmission?: boolean };
  readonly features?: readonly string[];
  readonly input: {
    readonly queues: readonly SessionQueue[];
    readonly flavors: readonly SessionFlavor[];
    readonly gangs: readonly SessionGang[];
  };
};

const CLUSTER = "all";
/** So many thousandths of a resource that room on nodes never matters. */
const PLENTY = 2 ** 52;

/**
 * One cycle of the planner on one cluster, where all flavors have nodes with room for everything. A cycle of Kueue
 * looks at the first gang of each queue alone, as a cycle here does in a strict queue.
 */
export function runSession({ config, features = [], input }: SessionCase): object {
  const state = new FleetState();
  const quota = quotaStateOf(input, config);
  const resources = resourcesOf(input);
  for (const queue of input.queues) {
    const made = planQueue(quota.queues.get(queue.name) as PlanQueue, queue);
    state.apply({ kind: "queue", name: queue.name, version: 1, queue: made });
    for (const { flavor: pool } of made.quotas) {
      const limits = { pool, quota: null, projectDefault: null, namespaceDefault: null };
      state.apply({ kind: "pool", name: pool, version: 1, pool: limits });
      const scope = { kind: "queue", pool, queue: queue.name } as const;
      state.apply({ kind: "sum", scope, version: 1, used: quota.sumOf(scope) });
    }
  }
  const { capacity, ...facts } = clusterOf(input, resources);
  state.apply({ kind: "cluster", name: CLUSTER, version: 1, facts });
  const changes = (capacity?.nodes ?? []).map((node) => {
    const key = { kind: "node", name: node.name } as const;
    return { key, entry: { ...key, node, members: [] } };
  });
  state.apply({ kind: "capacity", cluster: CLUSTER, epoch: 1, since: null, sequence: 1, changes });
  const isPartial = !features.includes("partialAdmission:false");
  for (const gang of input.gangs) {
    state.apply({ kind: "gang", uid: gang.id, version: 1, gang: planGang(gang, isPartial) });
  }
  const plan = state.round(0, { admissionsMax: Number.POSITIVE_INFINITY, cyclesMax: 1 });
  const victims = plan.preemptions.flatMap((one) => one.victims);
  const preempted = victims.map(({ jobUid: id, reason }) => ({ id, reason }));
  const admitted = plan.admissions.map((planned) => admittedOf(planned, input.gangs));
  return { admitted: admitted.sort(byId), preempted: preempted.sort(byId) };
}

const byId = (a: { readonly id: string }, b: { readonly id: string }) => (a.id < b.id ? -1 : 1);

/** An admission with its flavors, in the form of the expectations. */
function admittedOf({ jobUid: id, members, flavors, allocations }: PlannedAdmission, gangs: readonly SessionGang[]) {
  const { queue, pods } = gangs.find((gang) => gang.id === id) as SessionGang;
  const shown = pods.map(({ name, requests }) => {
    const own = ofRole(flavors, name);
    const chosen = Object.keys(requests).flatMap((resource) => {
      const pool = (requests[resource] ?? 0) > 0 ? own[resource] : undefined;
      return pool === undefined ? [] : [[resource, pool.slice(0, pool.length - resource.length - 1)] as const];
    });
    return { name, count: members[name] ?? 0, flavors: Object.fromEntries(chosen) };
  });
  const uses = Object.fromEntries(allocations.map(({ pool, amount }) => [pool, amount]));
  return { id, queue, pods: shown, uses };
}

function resourcesOf({ queues, gangs }: SessionCase["input"]): readonly string[] {
  const ofQueues = queues.flatMap(({ flavorGroups = [] }) => flavorGroups.flatMap((group) => group.resources));
  const ofGangs = gangs.flatMap(({ pods }) => pods.flatMap(({ requests }) => Object.keys(requests)));
  return [...new Set([...ofQueues, ...ofGangs])];
}

/** The queue with its flavors in their order. Every queue is strict: see `runSession`. */
function planQueue(made: PlanQueue, { flavorGroups = [], fungibility }: SessionQueue): PlanQueue {
  const pools = flavorGroups.flatMap(({ resources, flavors }) =>
    flavors.flatMap((flavor) => resources.map((resource) => ({ flavor: `${flavor}/${resource}`, resource }))),
  );
  const known = new Map(made.quotas.map((quota) => [quota.flavor, quota]));
  const ordered = pools.map((pool) => known.get(pool.flavor) ?? { ...pool, nominal: 0 });
  const others = made.quotas.filter(({ flavor }) => !pools.some((pool) => pool.flavor === flavor));
  const policy = made.policy as QueuePolicy;
  return {
    ...made,
    strategy: "STRICT_FIFO",
    quotas: [...ordered, ...others],
    policy: fungibility === undefined ? policy : { ...policy, fungibility: fungibilityOf(fungibility) },
  };
}

function fungibilityOf(of: NonNullable<SessionQueue["fungibility"]>): QueuePolicy["fungibility"] {
  const search = (word: string) => (word === "TryNextFlavor" ? "TRY_NEXT_FLAVOR" : "MAY_STOP_SEARCH");
  const preferences = {
    PreemptionOverBorrowing: "PREEMPTION_OVER_BORROWING",
    BorrowingOverPreemption: "BORROWING_OVER_PREEMPTION",
  } as const;
  const preference = preferences[of.preference as keyof typeof preferences] ?? null;
  return { whenCanBorrow: search(of.whenCanBorrow), whenCanPreempt: search(of.whenCanPreempt), preference };
}

/**
 * Flavors of one group of resources are on different nodes, which a label for the group tells apart. Those of different
 * groups are on the same nodes: there is one for each choice of a flavor of every group.
 */
function clusterOf({ queues, flavors }: SessionCase["input"], resources: readonly string[]): PlanCluster {
  const room = Object.fromEntries([...resources, "pods"].map((resource) => [resource, PLENTY]));
  const groups = groupsOf(queues, flavors);
  const groupOf = (flavor: SessionFlavor) => groups.findIndex((group) => group.includes(flavor));
  const labelsOf = (flavor: SessionFlavor) => ({
    ...flavor.nodeLabels,
    [`flavor-${groupOf(flavor)}`]: flavor.name,
  });
  return {
    name: CLUSTER,
    labels: {},
    flavors: flavors.flatMap((flavor) =>
      resources.map((resource) => ({ name: `${flavor.name}/${resource}`, resource, nodeLabels: labelsOf(flavor) })),
    ),
    cordoned: false,
    reachable: true,
    admissionCounter: 0,
    capacity: {
      nodes: combinationsOf(groups).map((own): NodeCapacity => {
        // Kueue gives the pods of a flavor the flavor's tolerations.
        const taints = own.flatMap((flavor) => (flavor.tolerations.length > 0 ? [] : flavor.taints));
        const parts = { taints: taints.map((taint) => ({ value: "", ...taint })), unschedulable: false };
        const labels = Object.assign({}, ...own.map(labelsOf));
        return { name: own.map(({ name }) => name).join("-"), labels, ...parts, allocatable: room, free: room };
      }),
      seen: [],
      unbound: [],
    },
  };
}

/** The flavors that are in one group of resources of some queue, and those that are in none, each alone. */
function groupsOf(
  queues: readonly SessionQueue[],
  flavors: readonly SessionFlavor[],
): readonly (readonly SessionFlavor[])[] {
  let groups = flavors.map((flavor) => [flavor]);
  for (const { flavors: names } of queues.flatMap(({ flavorGroups = [] }) => flavorGroups)) {
    const isNamed = (group: readonly SessionFlavor[]) => group.some(({ name }) => names.includes(name));
    groups = [...groups.filter((group) => !isNamed(group)), groups.filter(isNamed).flat()];
  }
  return groups.filter((group) => group.length > 0);
}

/** Every choice of one flavor of each group. None if there is no group. */
function combinationsOf(groups: readonly (readonly SessionFlavor[])[]): readonly (readonly SessionFlavor[])[] {
  if (groups.length === 0) return [];
  return groups.reduce<readonly (readonly SessionFlavor[])[]>(
    (all, group) => all.flatMap((own) => group.map((flavor) => [...own, flavor])),
    [[]],
  );
}

function planGang(gang: SessionGang, isPartial: boolean): PlanGang {
  const { id: uid, queue, priority, createTime: createTimeMs, admitted } = gang;
  const ask = admitted === undefined ? askOf(gang.pods, isPartial) : askOf([usedBy(admitted.uses)], false);
  const live = admitted === undefined ? [] : [liveAdmission(admitted, ask)];
  return {
    uid,
    namespace: "namespace",
    name: uid,
    project: "project",
    queue,
    priority,
    createTimeMs,
    version: 1,
    generation: 1,
    askHash: contentHash(ask),
    ask,
    waits: admitted === undefined,
    ends: false,
    suspended: false,
    awaitsResult: null,
    backoff: null,
    waitsSinceMs: createTimeMs,
    admissions: live,
    lastAdmission: live.length,
  };
}

function usedBy(uses: Readonly<Record<string, number>>): PodSet {
  const requests = Object.entries(uses).map(([pool, amount]) => [resourceOf(pool), amount] as const);
  return { name: "main", count: 1, requests: Object.fromEntries(requests) };
}

function liveAdmission({ sinceMs, uses }: NonNullable<CaseGang["admitted"]>, ask: Ask): PlanGang["admissions"][number] {
  return {
    number: 1,
    admitTimeMs: sinceMs,
    cluster: CLUSTER,
    state: "live",
    members: Object.fromEntries(ask.roles.map(({ role, replicas }) => [role, replicas])),
    flavors: Object.fromEntries(Object.keys(uses).map((pool) => [resourceOf(pool), pool])),
    flavorLabels: {},
    tokensReleasedMs: null,
    goneMs: null,
  };
}

/** Requests count in thousandths, so that whole units of a resource are the case's amounts. */
function askOf(pods: readonly PodSet[], isPartial: boolean): Ask {
  return {
    roles: pods.map(({ name, count, minCount }, podClass) => {
      return { role: name, replicas: count, first: isPartial ? (minCount ?? count) : count, podClass };
    }),
    podClasses: pods.map(({ requests }) => {
      const amounts = Object.entries(requests).flatMap(([name, amount]) => (amount > 0 ? [[name, amount * 1000]] : []));
      return { requests: Object.fromEntries(amounts), scheduling: {} };
    }),
    placement: { clusters: [], clusterSelector: {}, gpuModels: [] },
    elastic: false,
    service: false,
  };
}

function resourceOf(pool: string): string {
  return pool.slice(pool.indexOf("/") + 1);
}
