import { arrayAt, type JsonObject, objectAt } from "../../runtime/json.ts";
import type { FieldError } from "../job/sent.ts";

/** What a container may ask for: Kubernetes' own resources, and others by a name with a domain. */
const OF_CONTAINERS = /^(cpu|memory|ephemeral-storage|hugepages-.+|(?!kubernetes\.io\/|requests\.)[^/]+\/[^/]+)$/;

/**
 * Names of resources that no container can have. Looked at once the platform has shaped a template: it may know some names that Kubernetes
 * does not, such as `gpu`.
 */
export function checkResourceNames(podSpec: JsonObject): readonly FieldError[] {
  return (["containers", "initContainers"] as const).flatMap((list) =>
    arrayAt(podSpec, list).flatMap((container, index) =>
      (["limits", "requests"] as const).flatMap((member) =>
        Object.keys(objectAt(objectAt(container, "resources"), member))
          .filter((name) => !OF_CONTAINERS.test(name))
          .map((name) => ({
            path: `spec.${list}[${index}].resources.${member}[${JSON.stringify(name.slice(0, 80))}]`,
            message:
              "is no resource of containers: cpu, memory, ephemeral-storage, hugepages-SIZE, or with a domain like nvidia.com/gpu",
          })),
      ),
    ),
  );
}
