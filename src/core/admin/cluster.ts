import type { ClusterCapacity, ClusterFlavor } from "../plan/snapshot.ts";
import type { GangSchedulerName } from "../pods/pod-group.ts";

export type ClusterRecord = {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly flavors: readonly ClusterFlavor[];
  /** No gang is admitted to a cordoned cluster. */
  readonly cordoned: boolean;
  readonly simulated: boolean;
  readonly reachable: boolean;
  /** When the cluster's capacity was last recorded; null: never. */
  readonly observedMs: number | null;
  readonly version: number;
  readonly createTimeMs: number;
  /** Null until an observer has recorded it. */
  readonly capacity: ClusterCapacity | null;
  readonly gangScheduler: GangSchedulerName;
};

/** A cluster as a client sends it. */
export type SentCluster = Pick<ClusterRecord, "name" | "labels" | "flavors"> & {
  /** Omitted: `none` for a new cluster; an update leaves it as it is. */
  readonly gangScheduler?: GangSchedulerName;
};

/** The longest kubeconfig, in bytes: room for a few certificates and tokens. */
export const KUBECONFIG_BYTES_MAX = 64 * 1024;

/** How to reach a cluster, as a client sends it: the text of a kubeconfig, or a file on the server. */
export type SentCredentials = {
  readonly kubeconfig:
    | { readonly kind: "text"; readonly text: string }
    | { readonly kind: "path"; readonly path: string };
  /** Empty: the current context of the kubeconfig. */
  readonly context: string;
};

export type CredentialsRefusal =
  /** Each problem names an error in the kubeconfig, and never quotes a credential. */
  | { readonly kind: "refusedCredentials"; readonly problems: readonly string[] }
  /** The server has no key to encrypt the credentials with. */
  | { readonly kind: "noKey" };

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
  /** Errors first. */
  readonly findings: readonly ClusterFinding[];
};
