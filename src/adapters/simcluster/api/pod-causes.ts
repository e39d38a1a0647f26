/** Says in the words of kube-apiserver what is wrong with a pod. */
import { type Finding, FindingList } from "../../../core/pods/judge/finding.ts";
import { judgePod } from "../../../core/pods/judge/judge-pod.ts";
import { walkObject } from "../../../core/pods/judge/judge-value.ts";
import { inside, kubernetesField, type PodPlace } from "../../../core/pods/judge/place.ts";
import { type Json, type JsonObject, objectAt } from "../../../runtime/json.ts";
import { CAUSE, type StatusCause } from "../objects/status-error.ts";

/** Everything that the validation of pods refuses. */
export function podCauses(pod: JsonObject): readonly StatusCause[] {
  return judgePod(pod).kept.map(findingCause);
}

/** A finding as an entry of a Status. */
export function findingCause(finding: Finding): StatusCause {
  const { kind, value, detail } = finding;
  const field = kubernetesField(finding.field ?? finding.place);
  switch (kind) {
    case "required":
      return CAUSE.required(field, detail);
    case "forbidden":
      return CAUSE.forbidden(field, detail);
    case "duplicate":
      return CAUSE.duplicate(field, String(value));
    case "notFound":
      return CAUSE.notFound(field, String(value), detail);
    case "unsupported":
      return {
        reason: "FieldValueNotSupported",
        message: `Unsupported value: ${JSON.stringify(value)}: ${detail}`,
        field,
      };
    case "tooLong":
      return { reason: "FieldValueTooLong", message: `Too long: ${detail}`, field };
    case "tooMany":
      return { reason: "FieldValueTooMany", message: `Too many: ${String(value)}: ${detail}`, field };
    case "type":
    case "invalid":
      return CAUSE.invalid(field, value, detail);
  }
}

/** The decoder's words about the first value of a wrong type. Null: it takes the pod. */
export function podTypeProblem(pod: JsonObject): string | null {
  const findings = new FindingList();
  for (const [member, type] of [
    ["metadata", "ObjectMeta"],
    ["spec", "PodSpec"],
  ] as const) {
    walkObject({ findings }, objectAt(pod, member), type, inside(null, member));
  }
  const [first] = findings.kept;
  return first === undefined ? null : typeProblem(first);
}

const QUANTITY_PROBLEM = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";

function typeProblem({ place, holder = "", value, detail }: Finding): string {
  if (detail === "quantity") return QUANTITY_PROBLEM;
  const found = jsonType(value as Json, detail);
  if (detail === "intOrString") return `json: cannot unmarshal ${found} into Go value of type int32`;
  const member = `${holder}.${memberPath(place)}`;
  return `json: cannot unmarshal ${found} into Go struct field ${member} of type ${goType(detail)}`;
}

/** The members on the way to a value, without items of lists and keys of maps. */
function memberPath(place: PodPlace): string {
  const names: string[] = [];
  for (let at = place; at !== null; at = at.up) if (typeof at.step === "string") names.push(at.step);
  return names.reverse().join(".");
}

function goType(type: string): string {
  if (type === "{quantity}") return "v1.ResourceList";
  if (type.startsWith("[")) return `[]${goType(type.slice(1, -1))}`;
  if (type.startsWith("{")) return `map[string]${goType(type.slice(1, -1))}`;
  if (type === "boolean") return "bool";
  return /^[A-Z]/.test(type) ? `v1.${type}` : type;
}

function jsonType(value: Json, wanted: string): string {
  if (Array.isArray(value)) return "array";
  if (typeof value === "boolean") return "bool";
  return typeof value === "number" && wanted.startsWith("int") ? `number ${value}` : typeof value;
}
