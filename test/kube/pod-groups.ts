import type { JsonObject } from "../../src/runtime/json.ts";

/**
 * The smallest definition of PodGroups that is compatible with gang schedulers: any spec, and a status subresource.
 */
export function podGroupDefinition(group: string, version: string): JsonObject {
  const free = { type: "object", "x-kubernetes-preserve-unknown-fields": true };
  return {
    apiVersion: "apiextensions.k8s.io/v1",
    kind: "CustomResourceDefinition",
    metadata: {
      name: `podgroups.${group}`,
      // Groups below k8s.io are protected: a definition there must name its approval.
      annotations: { "api-approved.kubernetes.io": "https://github.com/kubernetes-sigs/scheduler-plugins/pull/50" },
    },
    spec: {
      group,
      scope: "Namespaced",
      names: { kind: "PodGroup", listKind: "PodGroupList", plural: "podgroups", singular: "podgroup" },
      versions: [
        {
          name: version,
          served: true,
          storage: true,
          subresources: { status: {} },
          schema: { openAPIV3Schema: { type: "object", properties: { spec: free, status: free } } },
        },
      ],
    },
  };
}
