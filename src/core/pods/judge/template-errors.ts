import { type JsonObject, objectAt } from "../../../runtime/json.ts";
import type { FieldError } from "../../job/request/sent.ts";
import type { PodFindings } from "./finding.ts";
import { judgePod } from "./judge-pod.ts";
import { UNKNOWN_RESOURCE } from "./rules/resource-rules.ts";
import { findingErrors } from "./words.ts";

/** What is wrong with a template as the user wrote it. */
export function judgeTemplate(template: JsonObject): PodFindings {
  return judgePod({ ...template, metadata: { ...objectAt(template, "metadata"), name: "template" } });
}

/**
 * What the rules refuse in a template that has other errors, so that no pod can be built from it. Types are checked
 * before. A name of a resource may be one that the platform replaces.
 */
export function ruleErrors(template: JsonObject): readonly FieldError[] {
  const { kept, more } = judgeTemplate(template);
  const kinds = kept.filter(({ kind, allowed }) => kind !== "type" && allowed !== UNKNOWN_RESOURCE);
  return findingErrors({ kept: kinds, more });
}
