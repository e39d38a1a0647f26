import { type JsonObject, objectAt, stringAt } from "../../runtime/json.ts";
import type { PodConfig } from "../pods/pod-config.ts";
import { type ShapeOutcome, shapeTemplate } from "../pods/shape-template.ts";
import { defaultContainerOf } from "./containers.ts";
import type { Kind } from "./kind.ts";

/** Shapes the template of a replica type for the platform. The primary container is the kind's default container. */
export function shapeReplica(
  template: JsonObject,
  of: {
    readonly kind: Pick<Kind, "defaultContainer">;
    readonly namespace: string;
    readonly interruptible: boolean;
    readonly config: PodConfig;
  },
): ShapeOutcome {
  const { kind, ...shaping } = of;
  const primaryContainer = stringAt(defaultContainerOf(objectAt(template, "spec"), kind), "name") ?? "";
  return shapeTemplate(template, { ...shaping, primaryContainer });
}
