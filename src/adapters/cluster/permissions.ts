import type { GangScheduler } from "../../core/pods/build/pod-group.ts";
import { IDENTITY_NAMESPACE } from "./identity.ts";

/** A permission that Gangway needs in a cluster, in Kubernetes' terms. */
export type Permission = {
  /** Empty for the core group. */
  readonly group: string;
  readonly resource: string;
  /** `log` of `pods/log`; empty for the resource itself. */
  readonly subresource: string;
  readonly verb: string;
  /** The only object that the permission is for. Omitted: all. */
  readonly name?: string;
  /** The purpose of the permission. */
  readonly need: string;
  /** Needed only if the cluster has this gang scheduler. Omitted: always. */
  readonly scheduler?: GangScheduler;
};

type PermissionRule = Omit<Permission, "verb" | "subresource"> & {
  readonly subresource?: string;
  readonly verbs: readonly string[];
};

const SEEN = ["list", "watch"];
const OWNED = ["get", "list", "watch", "create", "patch", "delete"];
const MADE = ["get", "create", "patch"];

function podGroups(group: string, scheduler: GangScheduler): PermissionRule {
  return { group, resource: "podgroups", verbs: OWNED, need: `to group pods for ${scheduler}`, scheduler };
}

const RULES: readonly PermissionRule[] = [
  { group: "", resource: "nodes", verbs: SEEN, need: "to know what room there is" },
  { group: "", resource: "pods", verbs: OWNED, need: "to run and follow the pods of jobs" },
  { group: "", resource: "pods", subresource: "log", verbs: ["get"], need: "to stream the logs of jobs" },
  { group: "", resource: "services", verbs: OWNED, need: "to give pods their names" },
  {
    group: "",
    resource: "configmaps",
    verbs: OWNED,
    need: "to make the anchors that own a job's objects, and the hosts files of MPIJobs",
  },
  {
    group: "",
    resource: "configmaps",
    subresource: "finalizers",
    verbs: ["update"],
    need: "to own objects where OwnerReferencesPermissionEnforcement is on",
  },
  { group: "", resource: "serviceaccounts", verbs: MADE, need: "to give the launchers of MPIJobs an account" },
  { group: "rbac.authorization.k8s.io", resource: "roles", verbs: MADE, need: "to let launchers reach their workers" },
  {
    group: "rbac.authorization.k8s.io",
    resource: "rolebindings",
    verbs: MADE,
    need: "to let launchers reach their workers",
  },
  // Kubernetes lets a subject grant only permissions that it has itself.
  {
    group: "",
    resource: "pods",
    subresource: "exec",
    verbs: ["create", "get"],
    need: "to let launchers of MPIJobs run commands in their workers",
  },
  { group: "", resource: "namespaces", verbs: ["create"], need: "to make namespaces on first use" },
  {
    group: "",
    resource: "namespaces",
    name: IDENTITY_NAMESPACE,
    verbs: ["get"],
    need: "to tell this cluster from others by the uid of that namespace",
  },
  {
    group: "",
    resource: "events",
    verbs: ["create"],
    need: "to write events of jobs to the cluster if that is configured",
  },
  podGroups("scheduling.volcano.sh", "volcano"),
  podGroups("scheduling.x-k8s.io", "scheduler-plugins"),
  {
    group: "admissionregistration.k8s.io",
    resource: "mutatingwebhookconfigurations",
    verbs: ["list"],
    need: "to find other queueing systems",
  },
  {
    group: "admissionregistration.k8s.io",
    resource: "validatingwebhookconfigurations",
    verbs: ["list"],
    need: "to find other queueing systems",
  },
];

/** All permissions that this adapter uses. `deploy/cluster-rbac.yaml` grants exactly these. */
export const PERMISSIONS: readonly Permission[] = RULES.flatMap(({ verbs, subresource = "", ...rule }) =>
  verbs.map((verb) => ({ ...rule, subresource, verb })),
);
