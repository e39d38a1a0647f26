import { type JsonObject, objectAt, stringAt } from "../../../runtime/json.ts";
import { LABEL } from "../../job/labels.ts";
import { admissionLabels, type Ownership } from "./build-labels.ts";

/**
 * The manifest of an object that a kind returns from `objects`. Of its metadata only the name counts. Adds the job's
 * namespace, labels, and the version of the record that it was made from.
 */
export function buildPart(ownership: Ownership, part: JsonObject, jobVersion: number): JsonObject {
  const { name } = objectAt(part, "metadata");
  const labels = { ...admissionLabels(ownership), [LABEL.part]: (stringAt(part, "kind") ?? "").toLowerCase() };
  const annotations = { [LABEL.jobVersion]: String(jobVersion) };
  return { ...part, metadata: { name, namespace: ownership.job.namespace, labels, annotations } };
}
