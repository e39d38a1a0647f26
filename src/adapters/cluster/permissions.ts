import type { SecretReference } from "../../core/admin/cluster.ts";
import type { GangScheduler } from "../../core/pods/build/pod-group.ts";
import { IDENTITY_NAMESPACE } from "./identity.ts";

/** A permission that Gangway needs in a cluster, in Kubernetes' terms. */
export type Permission = {
  /** Empty for the core group, and for a path. */
  readonly group: string;
  /** The resource, or a path of the server such as `/readyz`. */
  readonly resource: string;
  /** `log` of `pods/log`; empty for the resource itself. */
  readonly subresource: string;
  readonly verb: string;
  /** The only object that the permission is for. Omitted: all. */
  readonly name?: string;
  /** The only namespace that the permission is for. Omitted: all. */
  readonly namespace?: string;
  /** The purpose of the permission. */
  readonly need: string;
  /** What does not work without it. */
  readonly without: string;
  /** Needed only if the cluster has this gang scheduler. Omitted: always. */
  readonly scheduler?: GangScheduler;
};

type PermissionRule = Omit<Permission, "verb" | "subresource" | "group"> & {
  /** Omitted: the core group. */
  readonly group?: string;
  readonly subresource?: string;
  readonly verbs: readonly string[];
};

const SEEN = ["list", "watch"];
const OWNED = ["get", "list", "watch", "create", "patch", "delete"];
const MADE = ["get", "create", "patch"];
const ONCE = ["get", "create"];
const NO_GANG = "no gang runs there";
const NO_MPI = "MPIJobs do not start there";
const NO_WARNING = "`cluster check` does not warn of them";
const QUEUEING = "to find other queueing systems";
const LAUNCHERS = "to let launchers of MPIJobs reach their workers";

function podGroups(group: string, scheduler: GangScheduler): PermissionRule {
  return {
    group,
    resource: "podgroups",
    verbs: OWNED,
    need: `to group pods for ${scheduler}`,
    without: NO_GANG,
    scheduler,
  };
}

const RULES: readonly PermissionRule[] = [
  { resource: "nodes", verbs: SEEN, need: "to know what room there is", without: "no gang is admitted there" },
  { resource: "pods", verbs: OWNED, need: "to run and follow the pods of jobs", without: NO_GANG },
  {
    resource: "pods",
    subresource: "log",
    verbs: ["get"],
    need: "to stream the logs of jobs",
    without: "logs cannot be read there, and no last lines of containers that fail are kept",
  },
  { resource: "services", verbs: OWNED, need: "to give pods their names", without: NO_GANG },
  {
    resource: "configmaps",
    verbs: OWNED,
    need: "to make the anchors that own a job's objects, and the hosts files of MPIJobs",
    without: NO_GANG,
  },
  {
    resource: "configmaps",
    subresource: "finalizers",
    verbs: ["update"],
    need: "to own objects where OwnerReferencesPermissionEnforcement is on",
    without: "no gang runs where that is on",
  },
  { resource: "serviceaccounts", verbs: MADE, need: "to give launchers of MPIJobs an account", without: NO_MPI },
  { group: "rbac.authorization.k8s.io", resource: "roles", verbs: MADE, need: LAUNCHERS, without: NO_MPI },
  { group: "rbac.authorization.k8s.io", resource: "rolebindings", verbs: MADE, need: LAUNCHERS, without: NO_MPI },
  // Kubernetes lets a subject grant only permissions that it has itself.
  { resource: "pods", subresource: "exec", verbs: ["create", "get"], need: LAUNCHERS, without: NO_MPI },
  {
    resource: "secrets",
    verbs: ["create"],
    need: "to give launchers of TrainJobs keys of their own",
    without: "TrainJobs whose runtime has the policy for MPI do not start there",
  },
  {
    resource: "persistentvolumeclaims",
    verbs: ONCE,
    need: "to make the volumes of JobSets and TrainJobs",
    without: "JobSets and TrainJobs with volumeClaimPolicies do not start there",
  },
  {
    resource: "namespaces",
    verbs: ["create"],
    need: "to make namespaces on first use",
    without: "jobs start only in namespaces that are there",
  },
  {
    resource: "namespaces",
    name: IDENTITY_NAMESPACE,
    verbs: ["get"],
    need: "to tell this cluster from others by the uid of that namespace",
    without: "nobody notices that a cluster is registered twice, or that another one has its address",
  },
  {
    resource: "/readyz",
    verbs: ["get"],
    need: "to ask whether the API server is ready",
    without:
      "its namespace kube-system is asked for instead, so a server that is about to stop counts as one that answers",
  },
  {
    resource: "events",
    verbs: ["create"],
    need: "to write events of jobs to the cluster if that is configured",
    without: "`GANGWAY_CLUSTER_EVENTS` has no effect there",
  },
  podGroups("scheduling.volcano.sh", "volcano"),
  podGroups("scheduling.x-k8s.io", "scheduler-plugins"),
  {
    group: "admissionregistration.k8s.io",
    resource: "mutatingwebhookconfigurations",
    verbs: ["list"],
    need: QUEUEING,
    without: NO_WARNING,
  },
  {
    group: "admissionregistration.k8s.io",
    resource: "validatingwebhookconfigurations",
    verbs: ["list"],
    need: QUEUEING,
    without: NO_WARNING,
  },
];

/** All permissions that this adapter uses in each cluster. `deploy/cluster-rbac.yaml` grants exactly these. */
export const PERMISSIONS: readonly Permission[] = RULES.flatMap(({ verbs, group = "", subresource = "", ...rule }) =>
  verbs.map((verb) => ({ ...rule, group, subresource, verb })),
);

/** A Secret of a cluster that holds the kubeconfig of another one. */
export type ServedSecret = Pick<SecretReference, "namespace" | "name">;

/**
 * The permission to read such a Secret, which is given for each one apart. Callers who may check the cluster with the
 * Secret need not know the other one.
 */
export function secretPermission({ namespace, name }: ServedSecret): Permission {
  return {
    group: "",
    resource: "secrets",
    subresource: "",
    verb: "get",
    namespace,
    name,
    need: "to read the kubeconfig of another cluster",
    without: "that cluster is left out, or keeps the kubeconfig of before until it expires",
  };
}
