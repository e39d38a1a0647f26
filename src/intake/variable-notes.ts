/** Tells users which of their environment variables Gangway sets too, and which of the two values pods get. */
import type { Job } from "../core/job/job.ts";
import { replicaName } from "../core/job/names.ts";
import { NoteList } from "../core/job/request/notes.ts";
import type { FieldNote, SentJob } from "../core/job/request/sent.ts";
import { type ClusterSpec, isService, type Kind } from "../core/kinds/kind.ts";
import { kindOfJob, type Registry } from "../core/kinds/registry.ts";
import { ENV_PREFIX, environmentOf, podVariables, type Variables } from "../core/pods/variables.ts";
import { gangOf } from "../core/reconcile/objects/build-objects.ts";
import {
  arrayAt,
  canonicalJson,
  isJsonObject,
  type Json,
  type JsonObject,
  objectAt,
  stringAt,
} from "../runtime/json.ts";
import { requestPath } from "./request-path.ts";

/** Notes about variables that both a template and Gangway set, and whose values differ. */
type VariableNotes = {
  /** Pods get Gangway's values. */
  readonly ignored: readonly FieldNote[];
  /** Pods get the template's values. */
  readonly kept: readonly FieldNote[];
};

/** Values are cut in messages. Some kinds name all members in one. */
const VALUE_SHOWN_MAX = 80;
const VALUES_SHOWN_MAX = 2;
/** No pod is made of these images. */
const BUILD = { installation: "", clusterDomain: "", initImage: "", kubectlImage: "" };

/**
 * Finds them in a job that was made from what was sent. Asks the kind only about replica types whose templates set
 * variables, and about others than the first member only if it sets one of these names.
 */
export function variableNotes(sent: SentJob, job: Job, kinds: Registry): VariableNotes {
  const kind = kindOfJob(kinds, job);
  const found: Found = { ignored: new NoteList(), kept: new NoteList() };
  for (const [role, { template = {} }] of Object.entries(isService(kind) ? {} : sent.spec.replicaSpecs)) {
    const own = ownVariables(objectAt(template, "spec"), requestPath(["spec", "replicaSpecs", role, "template"]));
    const pods = own.length === 0 ? null : firstAndLast(job, kind, kind.roleName(role));
    if (pods !== null) noteAll(found, own, { kind, ...pods });
  }
  const rest = (of: Omit<FieldNote, "field">): FieldNote => ({ field: "", ...of });
  return { ignored: found.ignored.list(rest), kept: found.kept.list(rest) };
}

type Found = { readonly ignored: NoteList<FieldNote>; readonly kept: NoteList<FieldNote> };
type OfRole = { readonly kind: Kind; readonly first: GivenPod; readonly others: () => readonly GivenPod[] };

function noteAll(found: Found, own: readonly OwnVariable[], { kind, first, others }: OfRole): void {
  const shared = own.filter((variable) => isShared(variable, first));
  if (shared.length === 0) return;
  const pods = [first, ...others()];
  for (const variable of shared) note(found, variable, { kind, pods });
}

/** What Gangway and the kind give to one pod of a replica type. */
type GivenPod = {
  readonly env: ClusterSpec["env"];
  readonly defaultEnv: ClusterSpec["env"];
  /** The template that the platform's settings have shaped. */
  readonly template: JsonObject;
  readonly facts: () => Variables;
};

/** True if the kind sets a variable of that name. Those of Gangway itself share a prefix. */
function isShared(own: OwnVariable, pod: GivenPod): boolean {
  if (stringAt(own.variable, "name")?.startsWith(ENV_PREFIX)) return true;
  return [pod.env, pod.defaultEnv].some((env) => variableOf(own, listOf(own, env)) !== undefined);
}

type OwnVariable = {
  readonly list: "containers" | "initContainers";
  readonly container: string;
  readonly variable: JsonObject;
  readonly field: string;
};

function ownVariables(podSpec: JsonObject, at: string): readonly OwnVariable[] {
  return (["containers", "initContainers"] as const).flatMap((list) =>
    arrayAt(podSpec, list).flatMap((container, place) =>
      arrayAt(container, "env").flatMap((variable, index) => {
        const field = `${at}.spec.${list}[${place}].env[${index}]`;
        const name = stringAt(container, "name") ?? "";
        return isJsonObject(variable) ? [{ list, container: name, variable, field }] : [];
      }),
    ),
  );
}

/** The first member of a replica type, and on demand the second and the last. Null: it has none, or the kind fails. */
function firstAndLast(job: Job, kind: Kind, role: string) {
  const members = Object.fromEntries(
    Object.entries(job.spec.replicaSpecs).map(([name, { replicas }]) => [name, replicas]),
  );
  const last = (members[role] ?? 0) - 1;
  const target = { job, kind, admission: { number: 1, cluster: "", members, flavorLabels: {} }, build: BUILD };
  const gang = gangOf(target);
  const template = objectAt({ template: job.spec.replicaSpecs[role]?.template }, "template");
  const podOf = (index: number): GivenPod | null => {
    const podName = replicaName(job.name, role, index);
    const facts = () => podVariables({ job, admission: 1, attempt: 1, role, index, podName });
    try {
      const { env, defaultEnv = {} } = kind.clusterSpec({ ...gang, role, index });
      return { env, defaultEnv, template, facts };
    } catch {
      return null;
    }
  };
  const first = last < 0 ? null : podOf(0);
  const indexes = [...new Set([1, last])].filter((index) => index > 0 && index <= last);
  return first && { first, others: () => indexes.map(podOf).filter((pod) => pod !== null) };
}

function note(
  found: Found,
  own: OwnVariable,
  { kind, pods }: { readonly kind: Kind; readonly pods: readonly GivenPod[] },
): void {
  const { field, variable } = own;
  const differ = (of: (pod: GivenPod) => JsonObject | undefined) => {
    const values = pods.map(of).filter((value) => value !== undefined);
    return values.some((value) => valueKey(value) !== valueKey(variable)) ? values : null;
  };
  const ofKind = differ((pod) => variableOf(own, listOf(own, pod.env)));
  const ofPlatform = ofKind ?? differ((pod) => variableOf(own, shapedEnv(own, pod)));
  if (ofPlatform !== null) {
    const who = ofKind === null ? "the platform" : `the kind ${kind.name}`;
    found.ignored.add(() => {
      return { field, message: `is ignored: ${who} sets ${valuesText(ofPlatform)}, not ${valueText(variable)}` };
    });
    return;
  }
  const otherwise = differ((pod) => {
    return variableOf(own, [...listOf(own, pod.defaultEnv), ...environmentOf(pod.facts())]);
  });
  if (otherwise === null) return;
  found.kept.add(() => {
    return { field, message: `keeps ${valueText(variable)}, in place of Gangway's ${valuesText(otherwise)}` };
  });
}

/** What a kind gives to the variable's container. Init containers of templates get nothing. */
function listOf({ list, container }: OwnVariable, env: ClusterSpec["env"]): readonly JsonObject[] {
  return list === "containers" && Object.hasOwn(env, container) ? (env[container] ?? []) : [];
}

/** The environment of the variable's container in the template that the platform's settings have shaped. */
function shapedEnv({ list, container }: OwnVariable, { template }: GivenPod): readonly Json[] {
  const shaped = arrayAt(objectAt(template, "spec"), list).find((one) => stringAt(one, "name") === container);
  return arrayAt(shaped, "env");
}

/** The last one counts. */
function variableOf({ variable }: OwnVariable, env: readonly Json[]): JsonObject | undefined {
  return env.filter(isJsonObject).findLast((one) => stringAt(one, "name") === stringAt(variable, "name"));
}

function valueKey({ value = "", valueFrom = null }: JsonObject): string {
  return canonicalJson({ value: value ?? "", valueFrom });
}

/** `MASTER_PORT=29500`, or `TOKEN from secretKeyRef`. */
function valueText(variable: JsonObject): string {
  const name = (stringAt(variable, "name") ?? "").slice(0, VALUE_SHOWN_MAX);
  const [source] = Object.keys(objectAt(variable, "valueFrom"));
  if (source !== undefined) return `${name} from ${source.slice(0, VALUE_SHOWN_MAX)}`;
  const value = String(variable["value"] ?? "");
  return `${name}=${value.length > VALUE_SHOWN_MAX ? `${value.slice(0, VALUE_SHOWN_MAX)}…` : value}`;
}

function valuesText(values: readonly JsonObject[]): string {
  const texts = [...new Set(values.map(valueText))];
  const more = texts.length > VALUES_SHOWN_MAX ? " and so on" : "";
  return `${texts.slice(0, VALUES_SHOWN_MAX).join(", ")}${more}`;
}
