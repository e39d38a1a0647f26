import {
  arrayAt,
  isJsonObject,
  type Json,
  type JsonObject,
  objectAt,
  stringAt,
  stringMapAt,
} from "../../runtime/json.ts";
import { inputText } from "./inputs.ts";
import { POD_ANNOTATION } from "./pod-annotations.ts";

/** What a pod is told of itself, by name: `JobName`, `Attempt`, … */
export type Variables = Readonly<Record<string, string>>;

/** Which pod it is: one start of one replica of a job. */
export type PodIdentity = {
  readonly job: { readonly uid: string; readonly name: string; readonly namespace: string; readonly project: string };
  readonly admission: number;
  readonly attempt: number;
  readonly role: string;
  readonly index: number;
  readonly podName: string;
};

/** What placeholders are filled in with. */
export type Known = {
  readonly variables: Variables;
  /** Of the job. */
  readonly annotations?: Readonly<Record<string, string>>;
  /** Of the job, by name. */
  readonly inputs?: JsonObject;
};

const ENV_PREFIX = "GANGWAY_";
/** Flyte's spelling: `{{ .Namespace }}` or `{{ $Namespace }}`, in any case, with any room; `{{ .Inputs.NAME }}`, `{{ .Annotations.KEY }}`. */
const PLACEHOLDER = /\{\{\s*[.$]([A-Za-z]+)(?:\.([^}\s]+))?\s*\}\}/g;

/** What every pod is told of itself. */
export const VARIABLES = [
  "JobName",
  "JobUid",
  "Namespace",
  "Project",
  "Admission",
  "Attempt",
  "ReplicaType",
  "ReplicaIndex",
  "PodName",
  "PerRetryUniqueKey",
] as const;

/** Places of a pod's data, by the annotation of its template that each comes from. Flyte's names. */
export const PLACES = {
  Input: POD_ANNOTATION.inputs,
  InputPrefix: POD_ANNOTATION.inputs,
  OutputPrefix: POD_ANNOTATION.outputs,
  RawOutputDataPrefix: POD_ANNOTATION.outputs,
} as const;

export function podVariables(pod: PodIdentity): Readonly<Record<(typeof VARIABLES)[number], string>> {
  const { job, admission, attempt, role, index, podName } = pod;
  return {
    JobName: job.name,
    JobUid: job.uid,
    Namespace: job.namespace,
    Project: job.project,
    Admission: String(admission),
    Attempt: String(attempt),
    ReplicaType: role,
    ReplicaIndex: String(index),
    PodName: podName,
    PerRetryUniqueKey: `${job.uid}_${admission}_${role}_${index}_${attempt}`.replace(/[^A-Za-z0-9_]+/g, "_"),
  };
}

/**
 * Where the data of a pod is, for placeholders: what its template's annotations name, filled in themselves. Raw outputs have a place of their
 * own for each attempt. Nothing where the template names no place.
 */
export function placesOf(template: JsonObject, known: Known): Variables {
  const annotations = stringMapAt(objectAt(template, "metadata"), "annotations");
  const at = (annotation: string) => render((annotations[annotation] ?? "").trim(), known);
  const named = Object.entries(PLACES).map(([name, annotation]): [string, string] => [name, at(annotation)]);
  const places = Object.fromEntries(named.filter(([, place]) => place !== ""));
  const { RawOutputDataPrefix: raw } = places;
  const own = known.variables["PerRetryUniqueKey"] ?? "";
  return raw === undefined ? places : { ...places, RawOutputDataPrefix: `${raw.replace(/\/+$/, "")}/${own}` };
}

/**
 * Text with its placeholders filled in: variables by name, `{{ .Inputs.NAME }}` by the job's inputs, `{{ .Annotations.KEY }}` by its
 * annotations, empty where it has none of that key. What is no placeholder of ours stays as it is: other programs have templates too.
 */
export function render(text: string, known: Known): string {
  const byName = new Map(Object.entries(known.variables).map(([name, value]) => [name.toLowerCase(), value]));
  return text.replace(PLACEHOLDER, (whole, name: string, key: string | undefined) => {
    const word = name.toLowerCase();
    return (key === undefined ? byName.get(word) : valueAt(word, key, known)) ?? whole;
  });
}

/** What stands under a key of the job's; undefined where nothing does. */
function valueAt(word: string, key: string, { annotations = {}, inputs = {} }: Known): string | undefined {
  if (word === "inputs") return Object.hasOwn(inputs, key) ? inputText(inputs[key]) : undefined;
  if (word !== "annotations") return undefined;
  return Object.hasOwn(annotations, key) ? annotations[key] : "";
}

/** The placeholders of a text, ours and others', as they are written. */
export function placeholdersOf(text: string): readonly { readonly name: string; readonly key: string | undefined }[] {
  return [...text.matchAll(PLACEHOLDER)].map(([, name = "", key]) => ({ name, key }));
}

/** A container's `command` and `args` with placeholders filled in; members that it has not stay away. */
export function renderContainer(container: JsonObject, known: Known): JsonObject {
  const filled = (list: readonly Json[]) => list.map((one) => (typeof one === "string" ? render(one, known) : one));
  const members = ["command", "args"].filter((member) => Array.isArray(container[member]));
  return Object.fromEntries(members.map((member) => [member, filled(arrayAt(container, member))]));
}

/** The variables as environment, `GANGWAY_JOB_NAME` and so on, but for those that a container sets itself. */
export function variableEnv(container: JsonObject, variables: Variables): readonly JsonObject[] {
  return missingEnv(
    container,
    Object.entries(variables).map(([name, value]) => ({ name: ENV_PREFIX + snakeCase(name), value })),
  );
}

/** Those variables of a list that a container does not set itself. */
export function missingEnv(container: JsonObject, env: readonly JsonObject[]): readonly JsonObject[] {
  const own = new Set(
    arrayAt(container, "env")
      .filter(isJsonObject)
      .map((one) => stringAt(one, "name")),
  );
  return env.filter((one) => !own.has(stringAt(one, "name")));
}

function snakeCase(name: string): string {
  return name.replace(/([a-z])([A-Z])/g, "$1_$2").toUpperCase();
}
