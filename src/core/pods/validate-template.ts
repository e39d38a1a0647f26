import { arrayAt, isJsonObject, type Json, type JsonObject, objectAt } from "../../runtime/json.ts";
import type { FieldError } from "../job/sent.ts";
import { nearestName } from "./nearest-name.ts";
import { fieldsOf } from "./template-fields.ts";
import { checkContainers } from "./validate-containers.ts";

/** The errors and warnings about a template. Paths start at the template, such as `spec.containers[0].image`. */
export type TemplateFindings = { readonly errors: readonly FieldError[]; readonly warnings: readonly FieldError[] };

/** Members of a pod spec that would let the template choose its node or weaken its isolation. */
const FORBIDDEN = ["nodeName", "schedulingGates", "ephemeralContainers"];
const FORBIDDEN_IF_TRUE = ["hostNetwork", "hostPID", "hostIPC"];

/** The deepest level that is checked. Real templates are less deep. */
const DEPTH_MAX = 12;
const NAME_SHOWN_MAX = 80;

/**
 * Checks a PodTemplateSpec without a cluster. Errors: members that Kubernetes would refuse or that Gangway forbids.
 * Warnings: members that Kubernetes does not know and would drop, with the probable name. Never throws, whatever the
 * JSON holds.
 */
export function checkTemplate(template: JsonObject): TemplateFindings {
  const errors: FieldError[] = [];
  const warnings: FieldError[] = [];
  walk({ errors, warnings }, { value: template, type: "Template", path: "", depth: 0 });
  const spec = objectAt(template, "spec");
  errors.push(...checkForbidden(spec), ...checkContainers(spec));
  return { errors, warnings };
}

type FindingLists = { readonly errors: FieldError[]; readonly warnings: FieldError[] };
type TemplateObject = {
  readonly value: JsonObject;
  readonly type: string;
  readonly path: string;
  readonly depth: number;
};

function walk(findings: FindingLists, { value, type, path, depth }: TemplateObject): void {
  const fields = fieldsOf(type);
  if (fields === undefined || depth > DEPTH_MAX) return;
  for (const [name, inner] of Object.entries(value)) {
    const at = path === "" ? name : `${path}.${name}`;
    const shape = fields.get(name);
    if (shape === undefined)
      findings.warnings.push({ path: at.slice(0, 200), message: unknownMember(name, fields.keys()) });
    else if (shape !== null && inner !== null && inner !== undefined) {
      descend(findings, { inner, list: shape.list, type: shape.type, path: at, depth: depth + 1 });
    }
  }
}

type TemplateMember = {
  readonly inner: Json;
  readonly list: boolean;
  readonly type: string;
  readonly path: string;
  readonly depth: number;
};

function descend(findings: FindingLists, { inner, list, type, path, depth }: TemplateMember): void {
  if (list !== Array.isArray(inner)) {
    findings.errors.push({ path, message: list ? "must be a list" : "must be an object" });
    return;
  }
  const items: readonly Json[] = Array.isArray(inner) ? inner : [inner];
  for (const [index, item] of items.entries()) {
    const at = list ? `${path}[${index}]` : path;
    if (isJsonObject(item)) walk(findings, { value: item, type, path: at, depth });
    else findings.errors.push({ path: at, message: "must be an object" });
  }
}

function unknownMember(name: string, known: Iterable<string>): string {
  const near = nearestName(name.slice(0, NAME_SHOWN_MAX), known);
  const shown = name.slice(0, NAME_SHOWN_MAX);
  return near === null ? `unknown field ${shown}` : `unknown field ${shown}: did you mean ${near}?`;
}

function checkForbidden(spec: JsonObject): readonly FieldError[] {
  const set = (name: string) => spec[name] !== undefined && spec[name] !== null && spec[name] !== "";
  const names = [...FORBIDDEN.filter(set), ...FORBIDDEN_IF_TRUE.filter((name) => set(name) && spec[name] !== false)];
  const volumes = arrayAt(spec, "volumes").flatMap((volume, index) =>
    isJsonObject(volume) && volume["hostPath"] !== undefined && volume["hostPath"] !== null
      ? [`volumes[${index}].hostPath`]
      : [],
  );
  const privileged = ["containers", "initContainers"].flatMap((list) =>
    arrayAt(spec, list).flatMap((container, index) => {
      const context = objectAt(container, "securityContext");
      const isSet =
        context["privileged"] !== undefined && context["privileged"] !== null && context["privileged"] !== false;
      return isSet ? [`${list}[${index}].securityContext.privileged`] : [];
    }),
  );
  return [...names, ...volumes, ...privileged].map((name) => ({ path: `spec.${name}`, message: "is not allowed" }));
}
