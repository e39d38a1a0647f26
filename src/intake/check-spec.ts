import type { FieldError, FieldNote, SentJob, SentSpec } from "../core/job/request/sent.ts";
import { checkSent, ignoredMembers } from "../core/kinds/check-sent.ts";
import type { Kind } from "../core/kinds/kind.ts";
import { refusedKind } from "../core/kinds/manifest/from-manifest.ts";
import { podName } from "../core/kinds/pod-name.ts";
import type { Registry } from "../core/kinds/registry.ts";
import { ignoredWishes } from "../core/kinds/topology/sent-wishes.ts";
import { checkInputs } from "../core/pods/inputs.ts";
import { objectAt, stringAt } from "../runtime/json.ts";
import { wholeName } from "./new-job.ts";
import { type PathStep, requestPath } from "./request-path.ts";

const POD_NAME_CHARS_MAX = 63;
const CLUSTER_NAME = /^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$/;
const FLAVOR_NAME = /^[a-z0-9]([-a-z0-9.]*[a-z0-9])?(\/[a-z0-9]([-a-z0-9.]*[a-z0-9])?)*$/;
const FLAVOR_CHARS_MAX = 128;

/**
 * Checks a job's kind, replicas, kind spec, policies, placement and inputs. Does not check templates.
 */
export function checkSpec(sent: SentJob, kinds: Registry): readonly FieldNote[] {
  const { spec } = sent;
  const kind = kinds.kindOf(spec.kind);
  if (kind === undefined) {
    const message = refusedKind(spec.kind, kinds) ?? "is not served";
    return [{ field: requestPath(["spec", "kind"]), message }, ...checkPlacement(spec)];
  }
  const names = [...checkPodNames(sent, kind), ...checkServiceNames(sent, kind)];
  return [...checkByKind(kind, spec), ...names, ...checkPlacement(spec), ...checkJobInputs(spec)];
}

/** Returns warnings about fields that have no effect. */
export function ignoredSpec({ spec }: SentJob, kinds: Registry): readonly FieldNote[] {
  const kind = kinds.kindOf(spec.kind);
  if (kind === undefined) return [];
  const ignored = [...ignoredMembers(kind, spec), ...ignoredWishes(kind, spec)];
  return [...ignored.map((error) => toNote(error, spec)), ...ignoredRestarts(kind, spec)];
}

/** The restart policies of templates that differ from those of their replica types, which count. */
function ignoredRestarts({ defaults }: Kind, { replicaSpecs }: SentSpec): readonly FieldNote[] {
  return Object.entries(replicaSpecs).flatMap(([role, { template, restartPolicy = defaults.restartPolicy }]) => {
    const own = stringAt(objectAt(template, "spec"), "restartPolicy") ?? "";
    if (own === "" || own === restartPolicy) return [];
    const field = requestPath(["spec", "replicaSpecs", role, "template", "spec", "restartPolicy"]);
    return [{ field, message: `is ignored: the restart policy of the replica type counts, ${restartPolicy}` }];
  });
}

/** True for names that every object inherits. They cannot name a replica type or a field of a kind spec. */
function isInherited(name: string): boolean {
  return name in Object.prototype;
}

function checkByKind(kind: Kind, spec: SentSpec): readonly FieldNote[] {
  const { replicaSpecs, kindSpec = {} } = spec;
  const inherited: FieldNote[] = [
    ...Object.keys(replicaSpecs).map((role) => ({ name: role, steps: ["spec", "replicaSpecs", role] })),
    ...Object.keys(kindSpec).map((member) => ({ name: member, steps: ["spec", "kindSpec", member] })),
  ]
    .filter(({ name }) => isInherited(name))
    .map(({ name, steps }) => ({ field: requestPath(steps), message: `must not be named ${name}, which is reserved` }));
  const checked = checkSent(kind, { ...spec, replicaSpecs: own(replicaSpecs), kindSpec: own(kindSpec) });
  return [...inherited, ...checked.map((error) => toNote(error, spec))];
}

function own<T>(map: Readonly<Record<string, T>>): Record<string, T> {
  return Object.fromEntries(Object.entries(map).filter(([name]) => !isInherited(name)));
}

/** A name that is refused may contain dots; the names of replica types do not. */
const DOTS_TRIED_MAX = 8;
const ROLES = "spec.replicaSpecs.";

/** The replica type that a path of a manifest is about. Undefined: none. Its cost does not depend on their number. */
function roleIn(path: string, replicaSpecs: Readonly<Record<string, unknown>>): string | undefined {
  if (!path.startsWith(ROLES)) return undefined;
  const rest = path.slice(ROLES.length);
  if (Object.hasOwn(replicaSpecs, rest)) return rest;
  let dot = rest.indexOf(".");
  for (let tried = 0; dot >= 0 && tried < DOTS_TRIED_MAX; tried++) {
    const role = rest.slice(0, dot);
    if (Object.hasOwn(replicaSpecs, role)) return role;
    dot = rest.indexOf(".", dot + 1);
  }
  return undefined;
}

/**
 * Converts a path of a manifest, `spec.replicaSpecs.Worker.replicas`, to a path of a request. Names of roles may
 * contain dots.
 */
export function toNote(
  { path, ...error }: FieldError,
  { replicaSpecs }: { readonly replicaSpecs: Readonly<Record<string, unknown>> },
): FieldNote {
  const role = roleIn(path, replicaSpecs);
  if (role === undefined) return { field: requestPath(path.split(".")), ...error };
  const rest = path.slice(ROLES.length + role.length + 1);
  const steps: PathStep[] = ["spec", "replicaSpecs", role, ...(rest === "" ? [] : rest.split("."))];
  return { field: requestPath(steps), ...error };
}

type NamedJob = Pick<SentJob, "name" | "generateName"> & { readonly spec: Pick<SentSpec, "replicaSpecs" | "kindSpec"> };

/** Refuses names of pods that would have to be shortened: pods are found by their names. */
export function checkPodNames({ name, generateName, spec }: NamedJob, kind: Kind): readonly FieldNote[] {
  const base = wholeName({ name, generateName });
  const unnamed = { name: "", spec: { kindSpec: spec.kindSpec ?? {}, replicaSpecs: {} } };
  const lengths = Object.entries(spec.replicaSpecs).map(([role, { replicas = 1 }]) => {
    const index = Math.max(0, replicas - 1);
    const suffix = podName({ job: unnamed, kind, role: kind.roleName(role), index });
    return { suffix, length: base.length + suffix.length };
  });
  const longest = lengths.sort((a, b) => b.length - a.length)[0];
  if (longest === undefined || longest.length <= POD_NAME_CHARS_MAX) return [];
  const message =
    `is too long: with "${longest.suffix}" a pod's name has ${longest.length} characters, ` +
    `and at most ${POD_NAME_CHARS_MAX} are allowed`;
  return [{ field: requestPath([name === "" ? "generateName" : "name"]), message }];
}

/** Refuses names of services that clusters before Kubernetes 1.36 refuse: there, they begin with a letter. */
function checkServiceNames({ name, generateName }: NamedJob, { defaultPort }: Kind): readonly FieldNote[] {
  const base = name || generateName;
  if (defaultPort === null || !/^[0-9]/.test(base)) return [];
  const message = `is "${base.slice(0, POD_NAME_CHARS_MAX)}": must begin with a letter, because services get this name`;
  return [{ field: requestPath([name === "" ? "generateName" : "name"]), message }];
}

function checkJobInputs({ inputs = {} }: SentSpec): readonly FieldNote[] {
  return checkInputs(inputs).map(({ path, message }) => ({
    field: requestPath(["spec", "inputs", ...(path === "" ? [] : [path])]),
    message,
  }));
}

function checkPlacement({ placement }: SentSpec): readonly FieldNote[] {
  const clusters = (placement?.clusters ?? [])
    .map((name, at) => ({ name, steps: ["spec", "placement", "clusters", at] }))
    .filter(({ name }) => !CLUSTER_NAME.test(name))
    .map(({ steps }) => ({
      field: requestPath(steps),
      message: "must be the name of a cluster: lower-case letters, digits, '-' and '.'",
    }));
  const models = (placement?.gpuModels ?? [])
    .map((name, at) => ({ name, steps: ["spec", "placement", "gpuModels", at] }))
    .filter(({ name }) => name.length > FLAVOR_CHARS_MAX || !FLAVOR_NAME.test(name))
    .map(({ steps }) => ({ field: requestPath(steps), message: "must be a flavor such as h100 or gpu/h100" }));
  return [...clusters, ...models];
}
