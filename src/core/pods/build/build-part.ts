import { type JsonObject, objectAt, stringAt, stringMapAt } from "../../../runtime/json.ts";
import { LABEL } from "../../job/labels.ts";
import { admissionLabels, type Ownership } from "./build-labels.ts";

/**
 * The manifest of an object that a kind returns from `objects`. Of its metadata only the name counts, and of a volume
 * claim the labels and annotations too. Adds the job's namespace, labels, and the version of the record that it was
 * made from.
 */
export function buildPart(ownership: Ownership, part: JsonObject, jobVersion: number): JsonObject {
  const metadata = objectAt(part, "metadata");
  const kind = stringAt(part, "kind") ?? "";
  const own = kind === "PersistentVolumeClaim" ? metadata : {};
  return {
    ...part,
    metadata: {
      name: metadata["name"],
      namespace: ownership.job.namespace,
      labels: { ...stringMapAt(own, "labels"), ...admissionLabels(ownership), [LABEL.part]: kind.toLowerCase() },
      annotations: { ...stringMapAt(own, "annotations"), [LABEL.jobVersion]: String(jobVersion) },
    },
  };
}
