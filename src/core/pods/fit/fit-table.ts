/**
 * What Gangway makes of everything by which kube-scheduler or an API server places or refuses a pod. The planner and
 * `can-run` promise no more than this table says; the pages show it.
 */
import { arrayAt, isJsonObject, type Json, type JsonObject, objectAt, stringAt } from "../../../runtime/json.ts";

/**
 * `counted`: takes room that tokens and fit count. `judged`: decides which nodes are tried, or is refused at submit.
 * `warned`: is not looked at, and `can-run` and `submit` say so. `unused`: places and refuses no pod that is valid.
 */
type Treatment = "counted" | "judged" | "warned" | "unused";

/** A part of a pod that is not looked at. The path starts at the pod's spec. */
export type NotLookedAt = { readonly path: string; readonly what: string };

export type FitRow = {
  readonly treatment: Treatment;
  /** What is counted, judged or not looked at, for the pages. */
  readonly what: string;
  /** The parts of a pod that are not looked at. Omitted: there are none. */
  readonly find?: (podSpec: JsonObject) => readonly NotLookedAt[];
};

const UNUSED: FitRow = { treatment: "unused", what: "" };
const REFUSED: FitRow = { treatment: "judged", what: "refused at submit" };
const REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution";
const DEFAULT_SCHEDULER = "default-scheduler";
/** Every cluster has these priority classes. */
const SYSTEM_CLASS = "system-";

/** Each member of a PodSpec of Kubernetes 1.36. */
export const FIT_MEMBERS: Readonly<Record<string, FitRow>> = {
  activeDeadlineSeconds: UNUSED,
  affinity: {
    treatment: "judged",
    what: "required node affinity; not required affinity to pods and against pods, which is warned of",
    find: (podSpec) =>
      ["podAffinity", "podAntiAffinity"].flatMap((member) => {
        const terms = arrayAt(objectAt(objectAt(podSpec, "affinity"), member), REQUIRED);
        const what = "the pods beside which it may run, or must not";
        return terms.length === 0 ? [] : [{ path: `affinity.${member}.${REQUIRED}`, what }];
      }),
  },
  automountServiceAccountToken: UNUSED,
  containers: { treatment: "counted", what: "requests, or limits where there is no request; ports of the node" },
  dnsConfig: UNUSED,
  dnsPolicy: UNUSED,
  enableServiceLinks: UNUSED,
  ephemeralContainers: REFUSED,
  hostAliases: UNUSED,
  hostIPC: UNUSED,
  hostNetwork: { treatment: "counted", what: "makes every port of a container a port of the node" },
  hostPID: UNUSED,
  hostUsers: UNUSED,
  hostname: UNUSED,
  hostnameOverride: UNUSED,
  imagePullSecrets: UNUSED,
  initContainers: {
    treatment: "counted",
    what: "the largest one, if it requests more than the containers; sidecars (`restartPolicy: Always`) add up",
  },
  nodeName: REFUSED,
  nodeSelector: { treatment: "judged", what: "labels of nodes" },
  os: UNUSED,
  overhead: { treatment: "counted", what: "as the template says; see `runtimeClassName`" },
  preemptionPolicy: UNUSED,
  priority: UNUSED,
  priorityClassName: {
    treatment: "warned",
    what: "whether the cluster has the class, and which pods its scheduler preempts by it",
    find: (podSpec) => {
      const name = stringAt(podSpec, "priorityClassName") ?? "";
      return named(
        "priorityClassName",
        name.startsWith(SYSTEM_CLASS) ? "" : name,
        "whether the cluster has this class",
      );
    },
  },
  readinessGates: UNUSED,
  resourceClaims: {
    treatment: "warned",
    what: "devices of resource claims",
    find: (podSpec) => {
      const what = "the devices that it claims, and which nodes have them";
      return arrayAt(podSpec, "resourceClaims").length === 0 ? [] : [{ path: "resourceClaims", what }];
    },
  },
  resources: { treatment: "counted", what: "requests of cpu, memory and huge pages, in place of those of containers" },
  restartPolicy: UNUSED,
  runtimeClassName: {
    treatment: "warned",
    what: "whether the cluster has the class, and the overhead, node selector and tolerations that it adds",
    find: (podSpec) => {
      const what = "whether the cluster has this class, and the overhead and node selector that it adds";
      return named("runtimeClassName", stringAt(podSpec, "runtimeClassName"), what);
    },
  },
  schedulerName: {
    treatment: "warned",
    what: "whether the cluster runs this scheduler, and where it places pods",
    find: (podSpec) => {
      const name = stringAt(podSpec, "schedulerName");
      const what = "whether the cluster runs this scheduler, and where it places pods";
      return named("schedulerName", name === DEFAULT_SCHEDULER ? "" : name, what);
    },
  },
  schedulingGates: REFUSED,
  schedulingGroup: REFUSED,
  securityContext: UNUSED,
  serviceAccount: {
    treatment: "warned",
    what: "whether the namespace has the account",
    find: (podSpec) => account(podSpec, "serviceAccount"),
  },
  serviceAccountName: {
    treatment: "warned",
    what: "whether the namespace has the account",
    find: (podSpec) => account(podSpec, "serviceAccountName"),
  },
  setHostnameAsFQDN: UNUSED,
  shareProcessNamespace: UNUSED,
  subdomain: UNUSED,
  terminationGracePeriodSeconds: UNUSED,
  tolerations: { treatment: "judged", what: "taints of nodes" },
  topologySpreadConstraints: {
    treatment: "warned",
    what: "those with `whenUnsatisfiable: DoNotSchedule`, which is the default",
    find: (podSpec) =>
      arrayAt(podSpec, "topologySpreadConstraints").flatMap((one, at) => {
        const isPreferred = stringAt(one, "whenUnsatisfiable") === "ScheduleAnyway";
        const what = "how its pods must be spread over nodes";
        return isPreferred ? [] : [{ path: `topologySpreadConstraints[${at}]`, what }];
      }),
  },
  volumes: {
    treatment: "warned",
    what: "whether claims exist, on which nodes volumes can be used, and how many a node takes",
    find: (podSpec) => arrayAt(podSpec, "volumes").flatMap(claimIn),
  },
};

/** What admission adds to a pod, or counts beside it. */
export const FIT_ADMISSION: Readonly<Record<string, FitRow>> = {
  "default tolerations": { treatment: "judged", what: "nodes that are not ready take no new gangs anyway" },
  "the port of a kind": { treatment: "counted", what: "the port that Gangway declares, if `hostNetwork` is true" },
  "init containers of a kind": { treatment: "counted", what: "as those of the template" },
  "a LimitRange of the namespace": { treatment: "warned", what: "on this page alone: is not looked at" },
  "a ResourceQuota of the namespace": {
    treatment: "warned",
    what: "on this page alone: is not looked at; a gang that it refuses waits, and `explain` says so",
  },
  "webhooks and policies of the cluster": { treatment: "warned", what: "on this page alone: are not looked at" },
};

/** Everything of a pod that is not looked at, in the order of the members' names. */
export function notLookedAt(podSpec: JsonObject): readonly NotLookedAt[] {
  return Object.values(FIT_MEMBERS).flatMap(({ find }) => find?.(podSpec) ?? []);
}

function named(path: string, name: string | undefined, what: string): readonly NotLookedAt[] {
  return name ? [{ path, what }] : [];
}

/** Each namespace has the account `default`. */
function account(podSpec: JsonObject, member: string): readonly NotLookedAt[] {
  const name = stringAt(podSpec, member);
  return named(member, name === "default" ? "" : name, "whether the namespace has this account");
}

/** Other volumes can be used on every node. */
function claimIn(volume: Json, at: number): readonly NotLookedAt[] {
  const claims = { persistentVolumeClaim: "whether this claim exists, and", ephemeral: "", csi: "" };
  return Object.entries(claims).flatMap(([member, exists]) => {
    if (!isJsonObject(objectAt({ volume }, "volume")[member])) return [];
    return [{ path: `volumes[${at}].${member}`, what: `${exists} on which nodes its volume can be used`.trim() }];
  });
}
