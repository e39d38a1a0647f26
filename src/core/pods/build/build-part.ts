import { type JsonObject, objectAt, stringAt, stringMapAt } from "../../../runtime/json.ts";
import { LABEL } from "../../job/labels.ts";
import { admissionLabels, type Ownership } from "./build-labels.ts";

/**
 * The manifest of an object that a kind returns from `objects`. Of its metadata the name, labels and annotations count.
 * Adds the job's namespace, labels, and the version of the record that it was made from.
 */
export function buildPart(ownership: Ownership, part: JsonObject, jobVersion: number): JsonObject {
  const metadata = objectAt(part, "metadata");
  const { name } = metadata;
  const kind = (stringAt(part, "kind") ?? "").toLowerCase();
  const labels = { ...stringMapAt(metadata, "labels"), ...admissionLabels(ownership), [LABEL.part]: kind };
  const annotations = { ...stringMapAt(metadata, "annotations"), [LABEL.jobVersion]: String(jobVersion) };
  return { ...part, metadata: { name, namespace: ownership.job.namespace, labels, annotations } };
}
