import { isJsonObject, type Json, type JsonObject, objectAt, stringAt } from "../../runtime/json.ts";
import { NoteList } from "../job/notes.ts";
import type { FieldError } from "../job/sent.ts";
import { type NameHelp, nameHelp } from "./nearest-name.ts";
import { containersOf, isSet, PROBES, partAt, partsAt, volumesOf } from "./policy/pod-parts.ts";
import { fieldsOf } from "./template-fields.ts";
import { checkContainers } from "./validate-containers.ts";

/** The errors and warnings about a template. Paths start at the template, such as `spec.containers[0].image`. */
export type TemplateFindings = { readonly errors: readonly FieldError[]; readonly warnings: readonly FieldError[] };

/** Members of a pod spec that no policy allows: they would take the pod out of the hands of its scheduler. */
const FORBIDDEN = ["nodeName", "schedulingGates", "schedulingGroup", "ephemeralContainers"];

/** Metadata that Kubernetes and Gangway set. A finalizer would keep the pods of a job, and so the job, for ever. */
const OTHER_METADATA: ReadonlySet<string> = new Set(
  `name generateName namespace finalizers ownerReferences creationTimestamp uid resourceVersion selfLink generation
  deletionTimestamp deletionGracePeriodSeconds managedFields`.split(/\s+/),
);

/** A pod that is deleted may take an hour to save its state. Its job holds its tokens for so long. */
const GRACE_SECONDS_MAX = 3600;

/** The deepest level that is checked. Real templates are less deep. */
const DEPTH_MAX = 12;
const NAME_SHOWN_MAX = 80;
const PATH_SHOWN_MAX = 200;

/**
 * Checks a PodTemplateSpec without a cluster. Errors: members that Kubernetes would refuse or that Gangway forbids.
 * Warnings: members that Kubernetes does not know and would drop, with the probable name. Never throws, whatever the
 * JSON holds.
 */
export function checkTemplate(template: JsonObject): TemplateFindings {
  const found: FindingLists = { errors: new NoteList(), warnings: new NoteList(), help: nameHelp() };
  walk(found, { value: template, type: "Template", path: "", depth: 0 });
  const spec = objectAt(template, "spec");
  for (const check of SPEC_CHECKS) found.errors.addAll(check(spec));
  return { errors: found.errors.list(ofTemplate), warnings: found.warnings.list(ofTemplate) };
}

type FindingLists = {
  readonly errors: NoteList<FieldError>;
  readonly warnings: NoteList<FieldError>;
  readonly help: NameHelp;
};

const ofTemplate = (rest: Omit<FieldError, "path">): FieldError => ({ path: "", ...rest });
type TemplateObject = {
  readonly value: JsonObject;
  readonly type: string;
  readonly path: string;
  readonly depth: number;
};

const DROPPED = "is dropped: pods keep only the labels and annotations of a template's metadata";

function walk(findings: FindingLists, { value, type, path, depth }: TemplateObject): void {
  const fields = fieldsOf(type);
  if (fields === undefined || depth > DEPTH_MAX) return;
  for (const [name, inner] of Object.entries(value)) {
    const at = path === "" ? name : `${path}.${name}`;
    const shape = fields.get(name);
    if (shape === undefined) {
      const meant = () => findings.help(name.slice(0, NAME_SHOWN_MAX), fields.keys());
      findings.warnings.addAll(unknownMember({ name, inner, type, path: at }, meant));
    } else if (shape !== null && isSet(inner)) {
      descend(findings, { inner, list: shape.list, type: shape.type, path: at, depth: depth + 1 });
    }
  }
}

type UnknownMember = {
  readonly name: string;
  readonly inner: Json | undefined;
  readonly type: string;
  readonly path: string;
};

/** Tools write metadata that is null, such as `creationTimestamp`. No user means it. */
function unknownMember({ name, inner, type, path }: UnknownMember, meant: () => string | null): readonly FieldError[] {
  if (type === "Metadata" && OTHER_METADATA.has(name)) return isSet(inner) ? [{ path, message: DROPPED }] : [];
  const shown = name.slice(0, NAME_SHOWN_MAX);
  const near = meant();
  const message = near === null ? `unknown field ${shown}` : `unknown field ${shown}: did you mean ${near}?`;
  return [{ path: path.slice(0, PATH_SHOWN_MAX), message }];
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
    findings.errors.add(() => ({ path, message: list ? "must be a list" : "must be an object" }));
    return;
  }
  const items: readonly Json[] = Array.isArray(inner) ? inner : [inner];
  for (const [index, item] of items.entries()) {
    const at = list ? `${path}[${index}]` : path;
    if (isJsonObject(item)) walk(findings, { value: item, type, path: at, depth });
    else findings.errors.add(() => ({ path: at, message: "must be an object" }));
  }
}

const SPEC_CHECKS = [checkForbidden, checkNodeFields, checkHostPaths, checkGrace, checkContainers];

function checkForbidden(spec: JsonObject): readonly FieldError[] {
  return FORBIDDEN.filter((name) => isSet(spec[name]) && spec[name] !== "").map((name) => ({
    path: `spec.${name}`,
    message: "is not allowed",
  }));
}

/** The only field of nodes that Kubernetes matches is their name. */
function checkNodeFields(spec: JsonObject): readonly FieldError[] {
  const affinity = partAt(partAt({ path: "spec", value: spec }, "affinity"), "nodeAffinity");
  const required = partAt(affinity, "requiredDuringSchedulingIgnoredDuringExecution");
  const preferred = partsAt(affinity, "preferredDuringSchedulingIgnoredDuringExecution");
  return [...partsAt(required, "nodeSelectorTerms"), ...preferred.map((one) => partAt(one, "preference"))]
    .filter((term) => partsAt(term, "matchFields").length > 0)
    .map(({ path }) => ({
      path: `${path}.matchFields`,
      message:
        "is not allowed, because it chooses a node by its name; use matchExpressions, which match labels of nodes",
    }));
}

function checkHostPaths(spec: JsonObject): readonly FieldError[] {
  return volumesOf(spec)
    .map((volume) => partAt(volume, "hostPath"))
    .filter(({ value }) => stringAt(value, "path")?.split(/[\\/]/).includes(".."))
    .map(({ path }) => ({ path: `${path}.path`, message: "must not have a segment .." }));
}

/** The grace of a pod, and the one of a probe, which counts in its place when the probe fails. */
function checkGrace(spec: JsonObject): readonly FieldError[] {
  const probes = containersOf(spec).flatMap((container) => PROBES.map((probe) => partAt(container, probe)));
  return [{ path: "spec", value: spec }, ...probes]
    .map(({ path, value }) => ({ path: `${path}.${GRACE}`, seconds: value[GRACE] }))
    .filter(({ seconds }) => isSet(seconds) && !isGrace(seconds))
    .map(({ path }) => ({ path, message: `must be a whole number of seconds from 0 to ${GRACE_SECONDS_MAX}` }));
}

const GRACE = "terminationGracePeriodSeconds";

function isGrace(seconds: Json | undefined): boolean {
  return typeof seconds === "number" && Number.isInteger(seconds) && seconds >= 0 && seconds <= GRACE_SECONDS_MAX;
}
