import { arrayAt, canonicalJson, isJsonObject, type Json, type JsonObject, objectAt } from "../../runtime/json.ts";
import { requireOfNodes } from "./build-affinity.ts";
import type { PodConfig } from "./pod-config.ts";

/** The GPUs that a pod requests: a model, and the size of a partition or whole GPUs. Empty members request nothing. */
export type GpuAccelerator = {
  readonly device: string;
  readonly partitionSize: string;
  readonly unpartitioned: boolean;
};

type GpuConfig = Pick<
  PodConfig,
  | "gpuResourceName"
  | "gpuDeviceNodeLabel"
  | "gpuPartitionSizeNodeLabel"
  | "gpuUnpartitionedNodeSelectorRequirement"
  | "gpuUnpartitionedToleration"
>;

/**
 * Restricts a pod to nodes with these GPUs, and makes it tolerate their taints. Does nothing if no container has a GPU
 * limit. Source: Flyte's `ApplyGPUNodeSelectors`.
 */
export function selectGpus(podSpec: JsonObject, accelerator: GpuAccelerator, config: GpuConfig): JsonObject {
  const usesGpus = arrayAt(podSpec, "containers").some((container) =>
    Object.hasOwn(objectAt(objectAt(container, "resources"), "limits"), config.gpuResourceName),
  );
  if (!usesGpus) return podSpec;
  const wanted = [deviceOf(accelerator, config), partitionOf(accelerator, config)];
  const demands = wanted.map(({ demand }) => demand).filter(isJsonObject);
  const tolerations = wanted.map(({ toleration }) => toleration).filter(isJsonObject);
  if (demands.length + tolerations.length === 0) return podSpec;
  return {
    ...podSpec,
    affinity: requireOfNodes(objectAt(podSpec, "affinity"), demands),
    ...withTolerations(podSpec, tolerations, "last"),
  };
}

type NodeDemand = { readonly demand?: JsonObject; readonly toleration?: JsonObject };

function deviceOf({ device }: GpuAccelerator, config: GpuConfig): NodeDemand {
  return device === "" ? {} : labelled(config.gpuDeviceNodeLabel, device);
}

function partitionOf({ partitionSize, unpartitioned }: GpuAccelerator, config: GpuConfig): NodeDemand {
  const label = config.gpuPartitionSizeNodeLabel;
  if (partitionSize !== "") return labelled(label, partitionSize);
  if (!unpartitioned) return {};
  const demand = config.gpuUnpartitionedNodeSelectorRequirement ?? { key: label, operator: "DoesNotExist" };
  const toleration = config.gpuUnpartitionedToleration;
  return toleration === undefined ? { demand } : { demand, toleration };
}

function labelled(key: string, value: string): NodeDemand {
  return {
    demand: { key, operator: "In", values: [value] },
    toleration: { key, operator: "Equal", value, effect: "NoSchedule" },
  };
}

/** The `tolerations` of a pod spec with missing ones added before or after its own. Empty if there are none. */
export function withTolerations(
  podSpec: JsonObject,
  added: readonly JsonObject[],
  where: "first" | "last",
): { readonly tolerations?: readonly Json[] } {
  const own = arrayAt(podSpec, "tolerations");
  const known = new Set(own.map(canonicalJson));
  const missing = added.filter((one) => {
    const text = canonicalJson(one);
    const isNew = !known.has(text);
    known.add(text);
    return isNew;
  });
  const tolerations = where === "first" ? [...missing, ...own] : [...own, ...missing];
  return tolerations.length === 0 ? {} : { tolerations };
}
