/** The rules for the claim that an ephemeral volume makes. Source: `ValidatePersistentVolumeClaimSpec`. */
import { arrayAt, canonicalJson, isJsonObject, type JsonObject, objectAt, stringAt } from "../../../../runtime/json.ts";
import { labelFindings, qualifiedKeys } from "../label-findings.ts";
import { inside, type PodPlace } from "../place.ts";
import { evenEmpty, type ObjectRule, oneOf, required, type TypeRules, text, unsupported } from "../rule.ts";
import { isAbsent } from "../set.ts";
import { SYNTAX } from "../syntax.ts";
import { amountOf } from "./resource-rules.ts";

const ACCESS_MODES = ["ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"];

const MODES: ObjectRule = {
  says: `accessModes must be of ${ACCESS_MODES.join(", ")}, and ReadWriteOncePod alone`,
  judge: (spec, place, { findings }) => {
    const at = inside(place, "accessModes");
    const modes = arrayAt(spec, "accessModes").map((mode) => (typeof mode === "string" ? mode : ""));
    for (const mode of modes) if (!ACCESS_MODES.includes(mode)) findings.add(unsupported(at, mode, ACCESS_MODES));
    const others = modes.some((mode) => mode !== "ReadWriteOncePod" && ACCESS_MODES.includes(mode));
    if (!others || !modes.includes("ReadWriteOncePod")) return;
    const detail = "may not use ReadWriteOncePod with other access modes";
    findings.add({ kind: "forbidden", place: at, detail });
  },
};

const STORAGE: ObjectRule = {
  says: "resources.requests.storage must be more than 0",
  judge: (spec, place, { findings }) => {
    const requests = objectAt(objectAt(spec, "resources"), "requests");
    const resources = inside(place, "resources");
    const at = {
      place: inside(inside(resources, "requests"), { key: "storage" }),
      field: inside(resources, { key: "storage" }),
    };
    if (!Object.hasOwn(requests, "storage")) findings.add({ kind: "required", ...at, detail: "" });
    else if (amountOf(requests["storage"]) <= 0n) {
      const value = String(requests["storage"] ?? 0);
      findings.add({ kind: "invalid", ...at, value, detail: "must be greater than zero" });
    }
  },
};

const SOURCE: ObjectRule = {
  says: "without an apiGroup, its kind must be PersistentVolumeClaim",
  judge: (source, place, { findings }) => {
    const kind = stringAt(source, "kind") ?? "";
    if (stringAt(source, "apiGroup") || kind === "PersistentVolumeClaim") return;
    const detail = "must be 'PersistentVolumeClaim' when referencing the default apiGroup";
    findings.add({ kind: "invalid", place, value: kind, detail });
  },
};

const SOURCES: ObjectRule = {
  says: "dataSource must be the same as dataSourceRef, and absent if that has a namespace",
  judge: (spec, place, { findings }) => {
    const { dataSource, dataSourceRef } = spec;
    if (!isJsonObject(dataSource) || !isJsonObject(dataSourceRef)) return;
    const at = inside(place, "dataSource");
    const value = "spec.dataSource";
    if (stringAt(dataSourceRef, "namespace")) {
      const detail = "may not be specified when dataSourceRef.namespace is specified";
      findings.add({ kind: "invalid", place: at, field: place, value, detail });
    } else if (identity(dataSource) !== identity(dataSourceRef)) {
      findings.add({ kind: "invalid", place: at, field: place, value, detail: "must match dataSourceRef" });
    }
  },
};

function identity({ apiGroup, kind, name }: JsonObject): string {
  return canonicalJson([apiGroup ?? null, kind ?? "", name ?? ""]);
}

const METADATA: ObjectRule = {
  says: "metadata must have only labels and annotations",
  judge: (template, place, { findings }) => {
    const metadata = objectAt(template, "metadata");
    const at = inside(place, "metadata");
    for (const finding of labelFindings(objectAt(metadata, "labels"), inside(at, "labels"))) findings.add(finding);
    for (const finding of qualifiedKeys(objectAt(metadata, "annotations"), inside(at, "annotations"))) {
      findings.add(finding);
    }
    for (const name of OTHER_METADATA) {
      if (isAbsent(metadata[name])) continue;
      findings.add({ kind: "forbidden", place: inside(at, name) satisfies PodPlace, detail: "cannot be set" });
    }
  },
};

const OTHER_METADATA = ["name", "generateName", "namespace", "finalizers", "ownerReferences"];
const REFERENCE = { name: required(), kind: required(), apiGroup: text(SYNTAX.subdomain) };

export const CLAIM_RULES: TypeRules = {
  PersistentVolumeClaimTemplate: { members: { spec: required() }, whole: [METADATA] },
  PersistentVolumeClaimSpec: {
    members: {
      accessModes: required(undefined, "at least 1 access mode is required"),
      storageClassName: text(SYNTAX.subdomain),
      volumeAttributesClassName: text(SYNTAX.subdomain),
      volumeMode: evenEmpty(oneOf("Block", "Filesystem")),
    },
    whole: [MODES, STORAGE, SOURCES],
  },
  TypedLocalObjectReference: { members: REFERENCE, whole: [SOURCE] },
  TypedObjectReference: { members: { ...REFERENCE, namespace: text(SYNTAX.label) }, whole: [SOURCE] },
};
