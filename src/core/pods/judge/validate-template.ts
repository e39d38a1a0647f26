import { type Json, type JsonObject, objectAt, stringAt } from "../../../runtime/json.ts";
import { NoteList } from "../../job/request/notes.ts";
import type { FieldError, TemplateFindings } from "../../job/request/sent.ts";
import { nameHelp } from "../nearest-name.ts";
import { containersOf, isSet, PROBES, partAt, partsAt, volumesOf } from "../pod-parts.ts";
import { FindingList } from "./finding.ts";
import { walkObject } from "./judge-value.ts";
import { inside, type PodPlace, placeText } from "./place.ts";
import { membersOf, TEMPLATE_TYPE } from "./pod-types.ts";
import { findingErrors } from "./words.ts";

/** Members of a pod spec that no policy allows: they would take the pod out of the hands of its scheduler. */
const FORBIDDEN = ["nodeName", "schedulingGates", "schedulingGroup", "ephemeralContainers"];

/** Metadata that Kubernetes and Gangway set. A finalizer would keep the pods of a job, and so the job, for ever. */
const OTHER_METADATA: ReadonlySet<string> = new Set(
  `name generateName namespace finalizers ownerReferences creationTimestamp uid resourceVersion selfLink generation
  deletionTimestamp deletionGracePeriodSeconds managedFields`.split(/\s+/),
);

/** A pod that is deleted may take an hour to save its state. Its job holds its tokens for so long. */
const GRACE_SECONDS_MAX = 3600;

const NAME_SHOWN_MAX = 80;
const PATH_SHOWN_MAX = 200;

/**
 * Checks the types of a PodTemplateSpec, and what Gangway forbids in it. Errors: members of a wrong type, or that
 * Gangway forbids. Warnings: members that Kubernetes does not know and would drop, with the probable name. `podErrors`
 * judges the rest, on the pods that the template makes. Never throws, whatever the JSON holds.
 */
export function checkTemplate(template: JsonObject): TemplateFindings {
  const errors = new NoteList<FieldError>();
  const warnings = new NoteList<FieldError>();
  const help = nameHelp();
  const findings = new FindingList();
  const unknown = (name: string, inner: Json | undefined, type: string, place: PodPlace) => {
    const meant = () => help(name.slice(0, NAME_SHOWN_MAX), membersOf(type).keys());
    const note = unknownMember({ name, inner, type, place: inside(place, name) }, meant);
    if (note !== null) warnings.add(note);
  };
  walkObject({ findings, unknown }, template, TEMPLATE_TYPE, null);
  errors.addAll(findingErrors(findings));
  const spec = objectAt(template, "spec");
  for (const check of SPEC_CHECKS) errors.addAll(check(spec));
  return { errors: errors.list(ofTemplate), warnings: warnings.list(ofTemplate) };
}

const ofTemplate = (rest: Omit<FieldError, "path">): FieldError => ({ path: "", ...rest });

const DROPPED = "is dropped: pods keep only the labels and annotations of a template's metadata";

type UnknownMember = {
  readonly name: string;
  readonly inner: Json | undefined;
  readonly type: string;
  readonly place: PodPlace;
};

/**
 * Returns what makes the warning about a member. Null: there is none. Tools write metadata that is null, such as
 * `creationTimestamp`. No user means it.
 */
function unknownMember(
  { name, inner, type, place }: UnknownMember,
  meant: () => string | null,
): (() => FieldError) | null {
  if (type === "ObjectMeta" && OTHER_METADATA.has(name)) {
    return isSet(inner) ? () => ({ path: placeText(place), message: DROPPED }) : null;
  }
  return () => {
    const shown = name.slice(0, NAME_SHOWN_MAX);
    const near = meant();
    const message = near === null ? `unknown field ${shown}` : `unknown field ${shown}: did you mean ${near}?`;
    return { path: placeText(place).slice(0, PATH_SHOWN_MAX), message };
  };
}

const SPEC_CHECKS = [checkForbidden, checkNodeFields, checkHostPaths, checkGrace];

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
