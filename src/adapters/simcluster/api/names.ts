import { labelFindings, qualifiedKeys } from "../../../core/pods/judge/label-findings.ts";
import { inside } from "../../../core/pods/judge/place.ts";
import { SYNTAX } from "../../../core/pods/judge/syntax.ts";
import type { JsonObject } from "../../../runtime/json.ts";
import { objectAt } from "../../../runtime/json.ts";
import type { NameRule } from "../objects/resource-kinds.ts";
import type { StatusCause } from "../objects/status-error.ts";
import { CAUSE } from "../objects/status-error.ts";
import { findingCause } from "./pod-causes.ts";

/** Returns the errors of a name. */
export function nameCauses(field: string, name: string, rule: NameRule): readonly StatusCause[] {
  return SYNTAX[rule].problems(name).map((problem) => CAUSE.invalid(field, name, problem));
}

/** Returns the errors of an object's labels, and of the keys of its annotations. */
export function labelCauses(metadata: JsonObject): readonly StatusCause[] {
  const at = inside(null, "metadata");
  return [
    ...labelFindings(objectAt(metadata, "labels"), inside(at, "labels")),
    ...qualifiedKeys(objectAt(metadata, "annotations"), inside(at, "annotations")),
  ].map(findingCause);
}
