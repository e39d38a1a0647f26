import { arrayAt, isJsonObject, type JsonObject, objectAt, stringAt, stringMapAt } from "../../runtime/json.ts";
import { preferOfNodes, prefersOfNodes, requireOfNodes } from "./build-affinity.ts";
import { withTolerations } from "./gpu-selectors.ts";
import type { PodConfig } from "./pod-config.ts";

/**
 * The platform's tolerations for a pod: first for the resources that it requests or limits, then for interruptible
 * pods, then for all pods. Source: Flyte's `GetPodTolerations`.
 */
export function platformTolerations(
  interruptible: boolean,
  resources: readonly JsonObject[],
  config: Pick<PodConfig, "resourceTolerations" | "interruptibleTolerations" | "defaultTolerations">,
): readonly JsonObject[] {
  const names = resources.flatMap((one) => ["limits", "requests"].flatMap((list) => Object.keys(objectAt(one, list))));
  return [
    ...[...new Set(names)].sort().flatMap((name) => config.resourceTolerations[name] ?? []),
    ...(interruptible ? config.interruptibleTolerations : []),
    ...config.defaultTolerations,
  ];
}

/**
 * Restricts a pod to interruptible nodes, or to others. The platform's requirements join every term of the affinity.
 */
export function requireInterruptible(
  interruptible: boolean,
  podSpec: JsonObject,
  config: Pick<PodConfig, "interruptibleNodeSelectorRequirement" | "nonInterruptibleNodeSelectorRequirement">,
): JsonObject {
  const demand = interruptible
    ? config.interruptibleNodeSelectorRequirement
    : config.nonInterruptibleNodeSelectorRequirement;
  if (demand === undefined) return podSpec;
  return { ...podSpec, affinity: requireOfNodes(objectAt(podSpec, "affinity"), [demand]) };
}

/**
 * Adds the platform's defaults to a pod. Values of the pod stay, except node labels of interruptible nodes, and host
 * networking if the platform decides it. Source: Flyte's `UpdatePod`.
 */
export function updatePod(
  podSpec: JsonObject,
  of: {
    readonly interruptible: boolean;
    readonly serviceAccount: string;
    readonly resources: readonly JsonObject[];
    readonly config: PodConfig;
  },
): JsonObject {
  const { interruptible, serviceAccount, resources, config } = of;
  const nodeSelector = {
    ...config.defaultNodeSelector,
    ...stringMapAt(podSpec, "nodeSelector"),
    ...(interruptible ? config.interruptibleNodeSelector : {}),
  };
  const updated: JsonObject = {
    ...podSpec,
    restartPolicy: stringAt(podSpec, "restartPolicy") || "Never",
    ...withTolerations(podSpec, platformTolerations(interruptible, resources, config), "first"),
    ...unlessSet(podSpec, "serviceAccountName", serviceAccount),
    ...unlessSet(podSpec, "schedulerName", config.schedulerName),
    ...(Object.keys(nodeSelector).length === 0 ? {} : { nodeSelector }),
    ...unlessThere(podSpec, "affinity", config.defaultAffinity),
    ...unlessThere(podSpec, "securityContext", config.defaultPodSecurityContext),
    ...unlessThere(podSpec, "dnsConfig", config.defaultPodDNSConfig),
    ...(config.enableHostNetworkingPod === undefined ? {} : { hostNetwork: config.enableHostNetworkingPod }),
  };
  return preferNodes(requireInterruptible(interruptible, updated, config), config);
}

/** Adds the platform's wishes of nodes to those of the pod, each once. */
function preferNodes(podSpec: JsonObject, { preferredNodes }: Pick<PodConfig, "preferredNodes">): JsonObject {
  const own = objectAt(podSpec, "affinity");
  const affinity = preferredNodes.reduce<JsonObject>((wished, { weight, matchExpressions }) => {
    return prefersOfNodes(wished, weight, matchExpressions) ? wished : preferOfNodes(wished, weight, matchExpressions);
  }, own);
  return affinity === own ? podSpec : { ...podSpec, affinity };
}

/** The resources of every container of a pod spec. */
export function resourcesOf(podSpec: JsonObject): readonly JsonObject[] {
  return arrayAt(podSpec, "containers").map((container) => objectAt(container, "resources"));
}

function unlessSet(podSpec: JsonObject, member: string, value: string): JsonObject {
  return value === "" || stringAt(podSpec, member) ? {} : { [member]: value };
}

function unlessThere(podSpec: JsonObject, member: string, value: JsonObject | undefined): JsonObject {
  return value === undefined || isJsonObject(podSpec[member]) ? {} : { [member]: value };
}
