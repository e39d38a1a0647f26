import type { JsonObject } from "../../runtime/json.ts";
import type { Job } from "../job/job.ts";
import type { NodeFacts } from "../pods/node-match.ts";
import type { Resources } from "../pods/resources.ts";
import type { PoolLimit } from "../quota/counters.ts";
import type { RecordedSum } from "../quota/grant-book.ts";

/** A node of a cluster with what is left of it: allocatable less the requests of all non-terminal pods on it, ours or not. */
export type NodeCapacity = NodeFacts & { readonly allocatable: Resources; readonly free: Resources };

/** A member of an admission that the observer saw bound to a node: its requests are part of what the node has not free. */
export type SeenMember = {
  readonly jobUid: string;
  readonly admission: number;
  readonly role: string;
  readonly index: number;
};

/** A pod that is neither ours nor bound yet: it will take room on some node that allows it. */
export type UnboundPod = { readonly podSpec: JsonObject; readonly requests: Resources };

/** A cluster's compact capacity, as its observer last recorded it. */
export type ClusterCapacity = {
  readonly nodes: readonly NodeCapacity[];
  readonly seen: readonly SeenMember[];
  readonly unbound: readonly UnboundPod[];
};

/** What a flavor is in one cluster: which resource it counts and which labels its nodes carry. */
export type ClusterFlavor = {
  /** The pool, e.g. `gpu/h100`. */
  readonly name: string;
  /** The extended resource, e.g. `nvidia.com/gpu`. */
  readonly resource: string;
  readonly nodeLabels: Readonly<Record<string, string>>;
};

export type PlanCluster = {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly flavors: readonly ClusterFlavor[];
  readonly cordoned: boolean;
  /** False while no observer of it has completed a list, or it has not answered for its grace. */
  readonly reachable: boolean;
  /** Guards the record that admits: another planner's admission to this cluster raises it. */
  readonly admissionCounter: number;
  /** Null until an observer has recorded it. */
  readonly capacity: ClusterCapacity | null;
};

/** So much of a flavor a queue may use; the order of a queue's quotas is the order in which flavors are tried. */
export type FlavorQuota = {
  readonly flavor: string;
  readonly resource: string;
  readonly nominal: number;
  /** How much more it may use of what queues above it have; absent: all of that. Of a root nothing, whatever is said. */
  readonly borrowingLimit?: number;
  /** How much of its nominal others may use while it does not; absent: all. */
  readonly lendingLimit?: number;
};

export type QueueStrategy = "STRICT_FIFO" | "BEST_EFFORT_FIFO";

export type PlanQueue = {
  readonly name: string;
  /** Null: it stands at the root of a tree. */
  readonly parent: string | null;
  readonly strategy: QueueStrategy;
  readonly quotas: readonly FlavorQuota[];
};

/** What an external caller holds in one place of a pool. */
export type HeldByCaller = {
  readonly caller: string;
  readonly pool: string;
  readonly project: string;
  readonly namespace: string;
  readonly queue: string | null;
  readonly amount: number;
};

/** Everything that a plan is made from, read from the database alone in one transaction. */
export type PlanSnapshot = {
  readonly quotaEpoch: number;
  /** Jobs in phase WAITING without a delete or cancel. */
  readonly waiting: readonly Job[];
  /** The highest number that an admission of each waiting job ever had, by uid, also once it has left the record; absent: 0. */
  readonly lastAdmissions: Readonly<Record<string, number>>;
  /** Jobs with a live admission: their members are charged where the observer does not see them, and may grow. */
  readonly admitted: readonly Job[];
  readonly queues: readonly PlanQueue[];
  /** The pools of the domain that gangs are charged in; one that is not named here allows nothing. */
  readonly pools: readonly PoolLimit[];
  /** What the ledger says is used at each scope; of a queue by its own lines. */
  readonly sums: readonly RecordedSum[];
  /** Some of the external callers that hold tokens of these pools, to name them; what they hold is in the sums. */
  readonly callers: readonly HeldByCaller[];
  readonly clusters: readonly PlanCluster[];
};
