/** The rules for variables, and for what they and files read from the pod and from other objects. */
import { type Json, objectAt, stringAt } from "../../../../runtime/json.ts";
import { formatQuantity, parseQuantity } from "../../quantity.ts";
import type { Findings } from "../finding.ts";
import { inside, type PodPlace } from "../place.ts";
import { type ObjectRule, required, type TypeRules, text, unsupported } from "../rule.ts";
import { isAbsent, isEmpty, setAmong } from "../set.ts";
import { SYNTAX } from "../syntax.ts";

const ENV_SOURCES = ["fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef", "fileKeyRef"];

const ENV_RULE: ObjectRule = {
  says: `must have a value or a \`valueFrom\`, which has exactly one of ${ENV_SOURCES.join(", ")}`,
  judge: (variable, place, { findings }) => {
    if (isAbsent(variable["valueFrom"])) return;
    const sources = setAmong(objectAt(variable, "valueFrom"), ENV_SOURCES);
    const at = inside(place, "valueFrom");
    const invalid = (detail: string) => findings.add({ kind: "invalid", place: at, value: "", detail });
    if (sources.length === 0) {
      invalid("must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`");
    } else if (!isEmpty(variable["value"])) {
      invalid("may not be specified when `value` is not empty");
    } else if (sources.length > 1) {
      invalid("may not have more than one field specified at a time");
    }
  },
};

const ENV_FROM_RULE: ObjectRule = {
  says: "must have exactly one of configMapRef, secretRef",
  judge: (source, place, { findings }) => {
    const count = setAmong(source, ["configMapRef", "secretRef"]).length;
    if (count === 1) return;
    const detail =
      count === 0
        ? "must specify one of: `configMapRef` or `secretRef`"
        : "may not have more than one field specified at a time";
    findings.add({ kind: "invalid", place, field: place?.up ?? place, value: "", detail });
  },
};

/** Fields of the pod that variables can have. */
const ENV_FIELDS = [
  "metadata.name",
  "metadata.namespace",
  "metadata.uid",
  "spec.nodeName",
  "spec.serviceAccountName",
  "status.hostIP",
  "status.hostIPs",
  "status.podIP",
  "status.podIPs",
];
/** Fields of the pod that files can have. */
const FILE_FIELDS = ["metadata.annotations", "metadata.labels", "metadata.name", "metadata.namespace", "metadata.uid"];

/** Judges a reference to a field of the pod: a file's, or a variable's. */
const FIELD_RULE: ObjectRule = {
  says:
    `must have a fieldPath: of a variable ${ENV_FIELDS.join(", ")}; of a file ${FILE_FIELDS.join(", ")}; ` +
    "of both metadata.labels['KEY'] and metadata.annotations['KEY']",
  judge: (reference, place, { findings }) => {
    const version = stringAt(reference, "apiVersion") || "v1";
    const path = stringAt(reference, "fieldPath") ?? "";
    const at = inside(place, "fieldPath");
    if (path === "") findings.add({ kind: "required", place: at, detail: "" });
    else if (version === "v1") judgeFieldPath(path, { place, isOfEnv: place?.up?.step === "valueFrom", findings });
    else {
      const detail = `error converting fieldPath: unsupported pod version: ${version}`;
      findings.add({ kind: "invalid", place: at, value: path, detail });
    }
  },
};

type FieldPlace = { readonly place: PodPlace; readonly isOfEnv: boolean; readonly findings: Findings };

function judgeFieldPath(path: string, { place, isOfEnv, findings }: FieldPlace): void {
  const at = inside(place, "fieldPath");
  const [, of, key] = /^(metadata\.labels|metadata\.annotations)\['(.*)'\]$/s.exec(path) ?? [];
  if (key !== undefined) {
    const { problems, allowed } = SYNTAX.labelKey;
    for (const detail of problems(of === "metadata.labels" ? key : key.toLowerCase())) {
      findings.add({ kind: "invalid", place: at, field: place, value: key, detail, allowed });
    }
    return;
  }
  const fields = isOfEnv ? ENV_FIELDS : FILE_FIELDS;
  // An older name of spec.nodeName.
  if (fields.includes(path) || (isOfEnv && path === "spec.host")) return;
  findings.add({ ...unsupported(at, path, fields), allowed: `must be one of ${fields.join(", ")}` });
}

const SIZES = ["1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei"];
const CONTAINER_FIELDS = ["limits.cpu", "limits.ephemeral-storage", "limits.memory"].flatMap((limit) => [
  limit,
  limit.replace("limits", "requests"),
]);
const HUGE_PAGES = /^(limits|requests)\.hugepages-/;

const RESOURCE_FIELD_RULE: ObjectRule = {
  says:
    "must have a resource: limits.NAME or requests.NAME of cpu, memory, ephemeral-storage or hugepages-SIZE; " +
    "of a file also a containerName; a divisor must be 1 or 1m of cpu, and 1 or one unit such as 1Mi of the others",
  judge: (reference, place, { findings }) => {
    const isOfEnv = place?.up?.step === "valueFrom";
    const resource = stringAt(reference, "resource") ?? "";
    const isKnown = CONTAINER_FIELDS.includes(resource) || HUGE_PAGES.test(resource);
    if (!isOfEnv && isEmpty(reference["containerName"])) {
      findings.add({ kind: "required", place: inside(place, "containerName"), detail: "" });
    } else if (resource === "") {
      findings.add({ kind: "required", place: inside(place, "resource"), detail: "" });
    } else if (!isKnown) {
      const named = [...CONTAINER_FIELDS].sort();
      const finding = unsupported(inside(place, "resource"), resource, named);
      findings.add({ ...finding, allowed: `must be one of ${named.join(", ")}` });
    }
    if (isKnown) judgeDivisor(reference["divisor"], resource, { place: inside(place, "divisor"), findings });
  },
};

function judgeDivisor(
  value: Json | undefined,
  resource: string,
  { place, findings }: { readonly place: PodPlace; readonly findings: Findings },
): void {
  const divisor = typeof value === "string" || typeof value === "number" ? parseQuantity(String(value)) : null;
  if (divisor === null || divisor.nano === 0n) return;
  const what = resource.split(".")[1] ?? "";
  const allowed = what === "cpu" ? ["1m", "1"] : SIZES;
  if (allowed.includes(formatQuantity(divisor))) return;
  const name = what.startsWith("hugepages-") ? "hugepages" : what.replace("ephemeral-", "local ephemeral ");
  const listed = what === "cpu" ? "1m and 1" : SIZES.join(", ");
  const detail = `only divisor's values ${listed} are supported with the ${name} resource`;
  findings.add({ kind: "invalid", place, value: resource, detail });
}

const FILE_KEY_RULE: ObjectRule = {
  says: "must name a volume of the pod that is an emptyDir",
  judge: (reference, place, { pod, findings }) => {
    const name = stringAt(reference, "volumeName") ?? "";
    if (name === "") return;
    const at = inside(place, "volumeName");
    const volume = pod.volumes.get(name);
    if (volume === undefined) {
      findings.add({ kind: "notFound", place: at, value: name, detail: "", allowed: "must be the name of a volume" });
    } else if (
      isAbsent(volume["emptyDir"]) &&
      Object.keys(volume).some((key) => key !== "name" && !isAbsent(volume[key]))
    ) {
      findings.add({ kind: "invalid", place: at, value: name, detail: "referenced volume must be of type emptyDir" });
    }
  },
};

const KEY_SELECTOR = {
  members: { name: required(text(SYNTAX.subdomain)), key: required(text(SYNTAX.configKey)) },
};
const ENV_SOURCE = { members: { name: required(text(SYNTAX.subdomainStart)) } };

export const ENV_RULES: TypeRules = {
  EnvVar: { members: { name: required(text(SYNTAX.variable)) }, whole: [ENV_RULE] },
  EnvFromSource: { members: { prefix: text(SYNTAX.variable) }, whole: [ENV_FROM_RULE] },
  ConfigMapEnvSource: ENV_SOURCE,
  SecretEnvSource: ENV_SOURCE,
  ConfigMapKeySelector: KEY_SELECTOR,
  SecretKeySelector: KEY_SELECTOR,
  FileKeySelector: {
    members: {
      key: required(text(SYNTAX.variable)),
      volumeName: required(text(SYNTAX.label)),
      path: required(text(SYNTAX.noUpwardPath)),
    },
    whole: [FILE_KEY_RULE],
  },
  ObjectFieldSelector: { whole: [FIELD_RULE] },
  ResourceFieldSelector: { whole: [RESOURCE_FIELD_RULE] },
};
