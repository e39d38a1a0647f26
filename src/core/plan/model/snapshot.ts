import type { JsonObject } from "../../../runtime/json.ts";
import type { NodeFacts } from "../../pods/node-match.ts";
import type { Resources } from "../../pods/resources.ts";
import type { PoolLimit } from "../../quota/counters.ts";
import type { Freeze } from "../../quota/freeze.ts";
import type { RecordedSum } from "../../quota/grant-book.ts";
import type { PlanGang } from "./plan-gang.ts";
import type { QueuePolicy } from "./queue-policy.ts";
import type { StopPolicy } from "./queue-stop.ts";
import type { Topology } from "./topology.ts";

/** A node of a cluster. Free is allocatable less the requests of all non-terminal pods on it, of Gangway or others. */
export type NodeCapacity = NodeFacts & {
  readonly allocatable: Resources;
  readonly free: Resources;
  /** The names of its ports that those pods take. Omitted: none. */
  readonly hostPorts?: readonly string[];
  /** Why it is unschedulable. Omitted: it takes pods, or an older version recorded it. */
  readonly trouble?: NodeTrouble;
};

/** Why a node takes no new pods. No plan reads it: it is shown to people. */
export type NodeTrouble = {
  readonly cordoned?: true;
  /** It is being deleted. */
  readonly leaving?: true;
  /** Its condition Ready in the cluster's words, which are cut. Omitted: it is ready. */
  readonly notReady?: {
    readonly reason: string;
    readonly message: string;
    /** Omitted: not known. */
    readonly sinceMs?: number;
  };
};

/** A member whose pod the observer saw bound to a node. The node's `free` already excludes its requests. */
export type BoundMember = {
  readonly jobUid: string;
  readonly admission: number;
  readonly role: string;
  readonly index: number;
};

/** A pod of others that is not bound yet: it will take capacity on some node that allows it. */
export type UnboundPod = {
  readonly podSpec: JsonObject;
  readonly requests: Resources;
  /** As in a `PodClass`. */
  readonly hostPorts?: readonly string[];
};

/** A cluster's compact capacity, as its observer last recorded it. */
export type ClusterCapacity = {
  readonly nodes: readonly NodeCapacity[];
  readonly seen: readonly BoundMember[];
  readonly unbound: readonly UnboundPod[];
};

/** A flavor in one cluster: the resource that it counts and the labels of its nodes. */
export type ClusterFlavor = {
  /** The pool, e.g. `gpu/h100`. */
  readonly name: string;
  /** The extended resource, e.g. `nvidia.com/gpu`. */
  readonly resource: string;
  readonly nodeLabels: Readonly<Record<string, string>>;
  /** The levels of its nodes. Omitted: those of the cluster. */
  readonly topology?: Topology;
};

export type PlanCluster = {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly flavors: readonly ClusterFlavor[];
  /** Omitted: it has no levels. */
  readonly topology?: Topology;
  readonly cordoned: boolean;
  /** True: no program runs there. Omitted: false. */
  readonly simulated?: boolean;
  /** True: a simulated cluster that takes no gangs, since a real one is registered. Omitted: false. */
  readonly retired?: boolean;
  /** False until an observer has completed a list, and while the cluster has not answered for its grace time. */
  readonly reachable: boolean;
  /** True: it answers again, and counts as not reachable until what was left there is deleted. Omitted: false. */
  readonly returning?: boolean;
  /** True: the database was restored, and not every cluster is adopted since. Omitted: false. */
  readonly restored?: boolean;
  /** True: it is not reachable because it refuses this service. Omitted: false. */
  readonly unusable?: boolean;
  /** Guards the record of an admission: every admission to this cluster raises it. */
  readonly admissionCounter: number;
  /** Null until an observer has recorded it. */
  readonly capacity: ClusterCapacity | null;
};

/** How much of a flavor a queue may use. The plan tries flavors in the order of a queue's quotas. */
export type FlavorQuota = {
  readonly flavor: string;
  readonly resource: string;
  readonly nominal: number;
  /** How much more the queue has until a time, and that time. Omitted: nothing. */
  readonly granted?: number;
  readonly grantedUntilMs?: number;
  /**
   * How much more the queue may use of the quotas above it. Omitted: all that those have left. A root cannot borrow.
   */
  readonly borrowingLimit?: number;
  /** How much of its nominal quota others may use while it does not. Omitted: all. */
  readonly lendingLimit?: number;
};

export type QueueStrategy = "STRICT_FIFO" | "BEST_EFFORT_FIFO";

export type PlanQueue = {
  readonly name: string;
  /** Null: the queue is the root of a tree. */
  readonly parent: string | null;
  readonly strategy: QueueStrategy;
  /** Omitted: `NONE`. */
  readonly stopPolicy?: StopPolicy;
  /** Who has frozen the queue itself. Omitted or null: nobody. */
  readonly freeze?: Freeze | null;
  /** How many jobs of the queue and those below it may be admitted at the same time. Null or omitted: any number. */
  readonly maxRunningJobs?: number | null;
  /** Omitted: `DEFAULT_POLICY`. */
  readonly policy?: QueuePolicy;
  /** For a policy with ageing, the values of all priority classes, the lowest first. Omitted: there is no class. */
  readonly classValues?: readonly number[];
  /** For a policy with a budget of preemptions, those that its gangs have caused lately. Omitted: there were none. */
  readonly preempted?: readonly PastPreemption[];
  readonly quotas: readonly FlavorQuota[];
};

/** The amount of a pool that an external caller holds under one project, namespace and queue. */
export type HeldByCaller = {
  readonly caller: string;
  readonly pool: string;
  readonly project: string;
  readonly namespace: string;
  readonly queue: string | null;
  readonly amount: number;
};

/** Everything that a plan depends on, besides the time. One transaction reads it from the database. */
export type PlanSnapshot = {
  readonly quotaEpoch: number;
  /** Jobs in phase WAITING whose cancellation or deletion was not requested. */
  readonly waiting: readonly PlanGang[];
  /** Jobs with a live admission. They may grow, and their members take capacity also while no node shows them. */
  readonly admitted: readonly PlanGang[];
  readonly queues: readonly PlanQueue[];
  /** The pools of the domain that gangs are charged in. A pool that is not listed allows nothing. */
  readonly pools: readonly PoolLimit[];
  /** The use that the ledger counts at each scope; for a queue, that of its own allocations. */
  readonly sums: readonly RecordedSum[];
  /** Some of the external callers that hold tokens of these pools, for messages. The sums include their tokens. */
  readonly callers: readonly HeldByCaller[];
  readonly clusters: readonly PlanCluster[];
};

/** The jobs that were preempted for gangs of a queue at one time. */
export type PastPreemption = { readonly atMs: number; readonly victims: number };

/** A cluster's record, without its capacity. */
export type ClusterFacts = Omit<PlanCluster, "capacity">;
