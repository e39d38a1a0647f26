import { replicaName } from "../core/job/names.ts";
import type { FieldError, FieldNote, SentJob, SentSpec } from "../core/job/sent.ts";
import { checkSent, ignoredMembers } from "../core/kinds/check-sent.ts";
import { refusedKind } from "../core/kinds/from-manifest.ts";
import type { Kind } from "../core/kinds/kind.ts";
import { kindOf } from "../core/kinds/registry.ts";
import { checkInputs } from "../core/pods/inputs.ts";
import { SUFFIX_LENGTH } from "./new-job.ts";
import { type PathStep, requestPath } from "./request-path.ts";

const POD_NAME_CHARS_MAX = 63;
const CLUSTER_NAME = /^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$/;
const FLAVOR_NAME = /^[a-z0-9]([-a-z0-9.]*[a-z0-9])?(\/[a-z0-9]([-a-z0-9.]*[a-z0-9])?)*$/;
const FLAVOR_CHARS_MAX = 128;

/** What is wrong with a job's kind, its replicas, what its kind takes, its policies and its placement; templates aside. */
export function checkSpec(sent: SentJob): readonly FieldNote[] {
  const { spec } = sent;
  const kind = kindOf(spec.kind);
  if (kind === undefined) {
    const message = refusedKind(spec.kind) ?? "is not served";
    return [{ field: requestPath(["spec", "kind"]), message }, ...checkPlacement(spec)];
  }
  return [...checkByKind(kind, spec), ...checkPodNames(sent), ...checkPlacement(spec), ...checkJobInputs(spec)];
}

/** What a job says that changes nothing. */
export function ignoredSpec({ spec }: SentJob): readonly FieldNote[] {
  const kind = kindOf(spec.kind);
  return kind === undefined ? [] : ignoredMembers(kind, spec).map((error) => toNote(error, spec));
}

/** Names that every object has from birth never name a replica type or a member of a kind spec. */
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
    .map(({ name, steps }) => ({ field: requestPath(steps), message: `${name} is a reserved name` }));
  const checked = checkSent(kind, { ...spec, replicaSpecs: own(replicaSpecs), kindSpec: own(kindSpec) });
  return [...inherited, ...checked.map((error) => toNote(error, spec))];
}

function own<T>(map: Readonly<Record<string, T>>): Record<string, T> {
  return Object.fromEntries(Object.entries(map).filter(([name]) => !isInherited(name)));
}

/** The checks of kinds name fields as manifests do, `spec.replicaSpecs.Worker.replicas`; role names may hold dots themselves. */
export function toNote(
  { path, message }: FieldError,
  { replicaSpecs }: { readonly replicaSpecs: Readonly<Record<string, unknown>> },
): FieldNote {
  const role = Object.keys(replicaSpecs).find((name) => {
    const prefix = `spec.replicaSpecs.${name}`;
    return path === prefix || path.startsWith(`${prefix}.`);
  });
  if (role === undefined) return { field: requestPath(path.split(".")), message };
  const rest = path.slice(`spec.replicaSpecs.${role}.`.length);
  const steps: PathStep[] = ["spec", "replicaSpecs", role, ...(rest === "" ? [] : rest.split("."))];
  return { field: requestPath(steps), message };
}

/** Pods are found by their names, so none may need shortening. */
export function checkPodNames({
  name,
  generateName,
  spec,
}: Pick<SentJob, "name" | "generateName"> & { readonly spec: Pick<SentSpec, "replicaSpecs"> }): readonly FieldNote[] {
  const base = name === "" ? generateName + "x".repeat(SUFFIX_LENGTH) : name;
  const lengths = Object.entries(spec.replicaSpecs).map(([role, { replicas = 1 }]) => {
    const suffix = replicaName("", role, Math.max(0, replicas - 1));
    return { suffix, length: base.length + suffix.length };
  });
  const longest = lengths.sort((a, b) => b.length - a.length)[0];
  if (longest === undefined || longest.length <= POD_NAME_CHARS_MAX) return [];
  const message = `is too long: with "${longest.suffix}" its pods' names have ${longest.length} characters, more than ${POD_NAME_CHARS_MAX}`;
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
    .map(({ steps }) => ({ field: requestPath(steps), message: "must be the name of a cluster" }));
  const models = (placement?.gpuModels ?? [])
    .map((name, at) => ({ name, steps: ["spec", "placement", "gpuModels", at] }))
    .filter(({ name }) => name.length > FLAVOR_CHARS_MAX || !FLAVOR_NAME.test(name))
    .map(({ steps }) => ({ field: requestPath(steps), message: "must be a flavor such as h100 or gpu/h100" }));
  return [...clusters, ...models];
}
