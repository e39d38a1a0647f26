import type { OnClusterLost } from "../job/spec.ts";
import { BASELINE_DEFAULT, type PodPolicy, type PodPolicyDefault } from "../pods/policy/pod-policy.ts";
import type { ChangeOutcome } from "./change-outcome.ts";

export type NamespaceRecord = {
  readonly name: string;
  readonly project: string;
  readonly defaultQueue: string;
  /** Null: an admin has set none. */
  readonly podPolicy: PodPolicy | null;
  /** Whether the last lines of containers that fail are kept with their jobs. */
  readonly keepFailureLogs: boolean;
  /** Whether gangs that ran in a cluster wait for it while it is lost, or move. */
  readonly onClusterLost: OnClusterLost;
  readonly version: number;
  readonly createTimeMs: number;
};

/** The part of a namespace that administrators set. */
export type NamespaceSettings = Pick<NamespaceRecord, "name" | "project" | "defaultQueue"> & {
  /** Omitted: none for a new namespace; an update leaves it as it is. */
  readonly podPolicy?: PodPolicy;
  /** Omitted: true for a new namespace; an update leaves it as it is. */
  readonly keepFailureLogs?: boolean;
  /** Omitted: `MOVE` for a new namespace; an update leaves it as it is. */
  readonly onClusterLost?: OnClusterLost;
};

/** The settings that a change asks for. */
export type NamespaceChange = NamespaceSettings & {
  /** True: the default queue must exist, because the admin has named it. Omitted: it may be made later. */
  readonly namesQueue?: boolean;
};

export type NamespaceOutcome =
  | ChangeOutcome<NamespaceRecord>
  /** The change names a default queue that does not exist. */
  | { readonly kind: "unknownQueue"; readonly name: string };

/** Kubernetes keeps names that begin so for its own namespaces: `kube-system`, `kube-public`, `kube-node-lease`. */
const SYSTEM_PREFIX = "kube-";

/**
 * Tells the namespaces in which no job may run. Their service accounts and secrets rule the cluster, and `own` are the
 * namespaces in which Gangway itself runs, with the credentials of all clusters.
 */
export function reservedNamespaces(own: readonly string[]): (namespace: string) => boolean {
  return (namespace) => namespace.startsWith(SYSTEM_PREFIX) || own.includes(namespace);
}

/** The settings of an installation for all its namespaces. */
export type NamespaceRules = {
  /** The pod policy of namespaces whose admin has set no level. */
  readonly podPolicyDefault: PodPolicyDefault;
  /** True for namespaces of the system, which no job may use. */
  readonly isReserved: (namespace: string) => boolean;
};

/** The rules of an installation that sets none. */
export const NAMESPACE_RULES: NamespaceRules = {
  podPolicyDefault: BASELINE_DEFAULT,
  isReserved: reservedNamespaces(["gangway"]),
};
