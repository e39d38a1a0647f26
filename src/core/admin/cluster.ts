import type { Silence } from "../job/request/concerns.ts";
import type { ClusterCapacity, ClusterFlavor } from "../plan/model/snapshot.ts";
import type { Topology } from "../plan/model/topology.ts";
import type { GangSchedulerName } from "../pods/build/pod-group.ts";
import type { ChangeOutcome } from "./change-outcome.ts";

export type ClusterRecord = {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly flavors: readonly ClusterFlavor[];
  /** The levels of its nodes, coarse to fine. Omitted or empty: none. */
  readonly topology?: Topology;
  /** No gang is admitted to a cordoned cluster. */
  readonly cordoned: boolean;
  readonly simulated: boolean;
  /** A simulated cluster that takes no gangs, since a real one is registered. Omitted: false. */
  readonly retired?: boolean;
  readonly reachable: boolean;
  /** Omitted or null: it is reachable. */
  readonly silence?: Silence | null;
  /** Since when it answers again, while objects of gangs that have left it may be there. Omitted or null: none may. */
  readonly returningMs?: number | null;
  /** Since when nobody has adopted it after the database was restored. Omitted or null: it is adopted. */
  readonly unadoptedMs?: number | null;
  /** When the cluster's capacity was last recorded; null: never. */
  readonly observedMs: number | null;
  readonly version: number;
  readonly createTimeMs: number;
  /** Null until an observer has recorded it. */
  readonly capacity: ClusterCapacity | null;
  readonly gangScheduler: GangSchedulerName;
  /** The uid of its namespace `kube-system`, which tells it from every other cluster. Null: it has not told it yet. */
  readonly uid: string | null;
};

/** How a cluster is: see `ClusterState` of the API. Whether it is cordoned is another matter. */
export type ClusterStateName = (typeof CLUSTER_STATES)[number];

export const CLUSTER_STATES = ["ACTIVE", "UNREACHABLE", "UNUSABLE", "LOST", "RETURNING"] as const;

export function clusterState({
  reachable,
  silence,
  returningMs,
}: Pick<ClusterRecord, "reachable" | "silence" | "returningMs">): ClusterStateName {
  if (reachable) return typeof returningMs === "number" ? "RETURNING" : "ACTIVE";
  if (typeof silence?.unusable === "string") return "UNUSABLE";
  return typeof silence?.lostMs === "number" ? "LOST" : "UNREACHABLE";
}

/**
 * How a request to count a cluster as lost ended. `answers`: it does, so that nothing was changed; `state` says how.
 */
export type LossOutcome = ChangeOutcome<ClusterRecord> | { readonly kind: "answers"; readonly state: ClusterStateName };

/** How a registration ended. `retired`: the simulated clusters that take no gangs from now on. */
export type RegistrationOutcome =
  | (ChangeOutcome<ClusterRecord> & { readonly retired?: readonly string[] })
  | UidRefusal
  | SourceRefusal;

/** A cluster as a client sends it. */
export type SentCluster = Pick<ClusterRecord, "name" | "labels" | "flavors"> & {
  /** Omitted: none for a new cluster; an update leaves them as they are. */
  readonly topology?: Topology;
  /** Omitted: `none` for a new cluster; an update leaves it as it is. */
  readonly gangScheduler?: GangSchedulerName;
};

/** The longest kubeconfig, in bytes: room for a few certificates and tokens. */
export const KUBECONFIG_BYTES_MAX = 64 * 1024;

/** A value in a Secret of Kubernetes. */
export type SecretReference = {
  /** The registered cluster that has the Secret. Empty: the cluster in which Gangway runs. */
  readonly cluster: string;
  readonly namespace: string;
  readonly name: string;
  readonly key: string;
};

/** `the Secret ops/east of cluster hub`. */
export function secretText({ cluster, namespace, name }: SecretReference): string {
  return `the Secret ${namespace}/${name} of ${cluster === "" ? "the cluster of this service" : `cluster ${cluster}`}`;
}

/** How to reach a cluster, as a client sends it: the text of a kubeconfig, a file on the server, or a Secret. */
export type SentCredentials = {
  readonly kubeconfig:
    | { readonly kind: "text"; readonly text: string }
    | { readonly kind: "path"; readonly path: string }
    | ({ readonly kind: "secret" } & SecretReference);
  /** Empty: the current context of the kubeconfig. */
  readonly context: string;
};

export type CredentialsRefusal =
  /** Each problem names an error in the kubeconfig, and never quotes a credential. */
  | { readonly kind: "refusedCredentials"; readonly problems: readonly string[] }
  /** The Secret that should hold the kubeconfig cannot be read. */
  | { readonly kind: "unreadSecret"; readonly problem: string }
  | SourceRefusal
  /** The server has no key to encrypt the credentials with. */
  | { readonly kind: "noKey" };

/** Why a cluster's kubeconfig cannot be in a Secret of the cluster that the reference names. */
export type SourceRefusal =
  | { readonly kind: "unknownSource"; readonly source: string }
  /** `why`: the end of a sentence that begins with the source. */
  | { readonly kind: "refusedSource"; readonly source: string; readonly why: string };

/** A cluster whose kubeconfig is in a Secret, or the cluster that has the Secret, as `judgeSource` sees it. */
export type KnownSource = {
  readonly name: string;
  readonly simulated: boolean;
  /** The cluster whose Secret holds its kubeconfig. Null: its kubeconfig is in no Secret. */
  readonly source: string | null;
};

/**
 * Decides whether a cluster's kubeconfig may be in a Secret of `source`; empty: of the cluster where Gangway runs. One
 * Secret never leads to another, so no circle of clusters waits for each other. `known`: the source, and the clusters
 * whose kubeconfigs are in Secrets of `cluster`.
 */
export function judgeSource(
  { cluster, source }: { readonly cluster: string; readonly source: string },
  known: readonly KnownSource[],
): SourceRefusal | null {
  const refused = (why: string) => ({ kind: "refusedSource", source, why }) as const;
  if (source === cluster) return refused("cannot have the Secret with its own kubeconfig");
  const found = known.find(({ name }) => name === source);
  if (source !== "" && found === undefined) return { kind: "unknownSource", source };
  if (found?.simulated === true) return refused("is simulated: name a real cluster");
  if (found !== undefined && found.source !== null) return refused("has its own kubeconfig in a Secret, too");
  const dependent = known.find((one) => one.source === cluster);
  if (dependent === undefined) return null;
  return refused(`cannot serve ${cluster}, which has the Secret with the kubeconfig of cluster ${dependent.name}`);
}

/** Why a cluster cannot have the uid that its API server tells. */
export type UidRefusal =
  /** `as`: the cluster that has this uid. */
  | { readonly kind: "sameCluster"; readonly uid: string; readonly as: string }
  /** `registered`: the uid that the cluster has. */
  | { readonly kind: "otherCluster"; readonly uid: string; readonly registered: string };

/** Says what is wrong and what to do, after the cluster's name. */
export function describeUidRefusal(refusal: UidRefusal): string {
  const { uid } = refusal;
  if (refusal.kind === "sameCluster") {
    return (
      `is the same Kubernetes cluster as ${refusal.as}: the uid of its namespace kube-system is ${uid}. ` +
      `A cluster has one name: use ${refusal.as}, or remove one of the two`
    );
  }
  return (
    `is another Kubernetes cluster than the registered one: the uid of the namespace kube-system is ${uid}, and was ` +
    `${refusal.registered}. Register it under another name, or forget the registered one if that is gone for good`
  );
}

export type ClusterFinding = {
  readonly severity: "ERROR" | "WARNING";
  /** CamelCase: `Unreachable`, `MissingPermission`, `OtherQueueingSystem`, `ClockSkew`, … */
  readonly code: string;
  readonly message: string;
};

/** The result of a check whether a cluster can serve Gangway. */
export type ClusterCheck = {
  /** Empty if the API server did not answer. */
  readonly kubernetesVersion: string;
  /** How far the cluster's clock is ahead of this process's, to about a second; null if the cluster did not say. */
  readonly clockSkewMs: number | null;
  /** The uid of the namespace `kube-system`. Null: it could not be read. */
  readonly uid: string | null;
  /** Errors first. */
  readonly findings: readonly ClusterFinding[];
};
