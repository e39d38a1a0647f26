/**
 * The facts about a pod that its program needs: environment variables, and placeholders in commands and arguments. They
 * let users write one template for all replicas and attempts.
 */
import { arrayAt, type Json, type JsonObject, objectAt, stringAt, stringMapAt } from "../../runtime/json.ts";
import { inputText } from "./inputs.ts";
import { placeholdersIn } from "./placeholders.ts";
import { POD_ANNOTATION } from "./pod-annotations.ts";
import { type TextMaker, WHOLE_TEXTS } from "./text-maker.ts";
import { withNamed } from "./with-named.ts";

/** Facts about a pod, by name: `JobName`, `Attempt`, … */
export type Variables = Readonly<Record<string, string>>;

/** Identifies one attempt of one replica of a job. */
type PodIdentity = {
  readonly job: { readonly uid: string; readonly name: string; readonly namespace: string; readonly project: string };
  readonly admission: number;
  /** Of the admission. Omitted: it has none, which programs see as 0. */
  readonly fence?: string | undefined;
  readonly attempt: number;
  readonly role: string;
  readonly index: number;
  readonly podName: string;
};

/** The values of placeholders, as texts or as what a `TextMaker` makes of them. */
export type PlaceholderValues<T = string> = {
  readonly variables: Readonly<Record<string, T>>;
  /** The annotations of the job. */
  readonly annotations?: Readonly<Record<string, string>>;
  /** The inputs of the job, by name. */
  readonly inputs?: JsonObject;
  readonly checkpoints?: CheckpointKeys<T>;
};

/** Begins the names of the variables that Gangway gives to pods. */
export const ENV_PREFIX = "GANGWAY_";

/** The variables of every pod. */
export const VARIABLES = [
  "JobName",
  "JobUid",
  "Namespace",
  "Project",
  "Admission",
  "Fence",
  "Attempt",
  "ReplicaType",
  "ReplicaIndex",
  "PodName",
  "PerRetryUniqueKey",
] as const;

/** The variables for a pod's data, each with the annotation that it comes from. Flyte's names. */
export const PLACES = {
  Input: POD_ANNOTATION.inputs,
  InputPrefix: POD_ANNOTATION.inputs,
  OutputPrefix: POD_ANNOTATION.outputs,
  RawOutputDataPrefix: POD_ANNOTATION.outputs,
  CheckpointOutputPrefix: POD_ANNOTATION.checkpoints,
  PrevCheckpointPrefix: POD_ANNOTATION.checkpoints,
  TaskTemplatePath: POD_ANNOTATION.taskTemplate,
} as const;

export function podVariables(pod: PodIdentity): Readonly<Record<(typeof VARIABLES)[number], string>> {
  const { job, admission, fence = "0", attempt, role, index, podName } = pod;
  return {
    JobName: job.name,
    JobUid: job.uid,
    Namespace: job.namespace,
    Project: job.project,
    Admission: String(admission),
    Fence: fence,
    Attempt: String(attempt),
    ReplicaType: role,
    ReplicaIndex: String(index),
    PodName: podName,
    PerRetryUniqueKey: `${job.uid}_${admission}_${role}_${index}_${attempt}`.replace(/[^A-Za-z0-9_]+/g, "_"),
  };
}

/** The words by which one attempt's checkpoints differ from others', and those of the attempt before. Null: none. */
type CheckpointKeys<T> = { readonly own: T; readonly previous: T | null };

/**
 * Attempts of a replica are counted across admissions. An attempt that starts again elsewhere, because it was
 * preempted, finds its own checkpoints.
 */
export function checkpointKeys<T>(
  { JobUid = "", ReplicaType = "", ReplicaIndex = "", Attempt = "1" }: Variables,
  maker: TextMaker<T>,
): CheckpointKeys<T> {
  const keyOf = (attempt: number) => maker.of(`${JobUid}_${ReplicaType}_${ReplicaIndex}_${attempt}`);
  const attempt = Number(Attempt);
  return { own: keyOf(attempt), previous: attempt > 1 ? keyOf(attempt - 1) : null };
}

/**
 * The places of a pod's data, from the annotations of its template, with their own placeholders filled in. Raw outputs
 * and checkpoints have a separate place for each attempt. Empty if the template names no place. The first attempt has
 * an empty place of earlier checkpoints.
 */
export function placesOf<T>(
  template: JsonObject,
  known: PlaceholderValues<T>,
  maker: TextMaker<T>,
): Readonly<Record<string, T>> {
  const annotations = stringMapAt(objectAt(template, "metadata"), "annotations");
  const rendered = renderer(known, maker);
  const at = (annotation: string) => rendered((annotations[annotation] ?? "").trim());
  const named = Object.entries(PLACES).map(([name, annotation]): [string, T] => [name, at(annotation)]);
  const places = Object.fromEntries(named.filter(([, place]) => !maker.isEmpty(place)));
  const below = (place: T, key: T) => maker.join([maker.withoutSlashes(place), maker.of("/"), key]);
  const { RawOutputDataPrefix: raw, CheckpointOutputPrefix: checkpoints } = places;
  const { own = maker.of(""), previous = null } = known.checkpoints ?? {};
  return {
    ...places,
    ...(raw === undefined
      ? {}
      : { RawOutputDataPrefix: below(raw, known.variables["PerRetryUniqueKey"] ?? maker.of("")) }),
    ...(checkpoints === undefined
      ? {}
      : {
          CheckpointOutputPrefix: below(checkpoints, own),
          PrevCheckpointPrefix: previous === null ? maker.of("") : below(checkpoints, previous),
        }),
  };
}

/**
 * Fills in the placeholders of a text: variables by name, `{{ .Inputs.NAME }}` from the job's inputs, `{{
 * .Annotations.KEY }}` from its annotations, or empty text if it has none of that key. Other placeholders stay, because
 * other programs have templates too.
 */
export function render(text: string, known: PlaceholderValues): string {
  return renderer(known, WHOLE_TEXTS)(text);
}

/** Fills in the placeholders of many texts. The value of each key is made once. */
export function renderer<T>(known: PlaceholderValues<T>, maker: TextMaker<T>): (text: string) => T {
  const byName = new Map(Object.entries(known.variables).map(([name, value]) => [name.toLowerCase(), value]));
  const byKey = new Map<string, T | undefined>();
  const filled = (word: string, key: string | undefined): T | undefined => {
    if (key === undefined) return byName.get(word);
    const place = `${word}.${key}`;
    if (byKey.has(place)) return byKey.get(place);
    const text = valueAt(word, key, known);
    const value = text === undefined ? undefined : maker.of(text);
    byKey.set(place, value);
    return value;
  };
  return (text) => {
    const pieces: T[] = [];
    let from = 0;
    for (const { at, end, name, key } of placeholdersIn(text)) {
      const value = filled(name.toLowerCase(), key);
      if (value === undefined) continue;
      pieces.push(maker.of(text.slice(from, at)), value);
      from = end;
    }
    return from === 0 ? maker.of(text) : maker.join([...pieces, maker.of(text.slice(from))]);
  };
}

/** The value of a key of the job. Undefined: none. */
function valueAt(
  word: string,
  key: string,
  { annotations = {}, inputs = {} }: Pick<PlaceholderValues, "annotations" | "inputs">,
): string | undefined {
  if (word === "inputs") return Object.hasOwn(inputs, key) ? inputText(inputs[key]) : undefined;
  if (word !== "annotations") return undefined;
  return Object.hasOwn(annotations, key) ? annotations[key] : "";
}

/**
 * The `command` and `args` of a container with placeholders filled in. Omits members that the container does not have.
 */
export function renderContainer(container: JsonObject, rendered: (text: string) => Json): JsonObject {
  const filled = (list: readonly Json[]) => list.map((one) => (typeof one === "string" ? rendered(one) : one));
  const members = ["command", "args"].filter((member) => Array.isArray(container[member]));
  return Object.fromEntries(members.map((member) => [member, filled(arrayAt(container, member))]));
}

/** The variables as environment: `GANGWAY_JOB_NAME` and so on. */
export function environmentOf(variables: Variables): readonly JsonObject[] {
  return Object.entries(variables).map(([name, value]) => ({ name: ENV_PREFIX + snakeCase(name), value }));
}

/** The variables of a list that a container does not set itself. */
export function missingEnv(container: JsonObject, env: readonly JsonObject[]): readonly JsonObject[] {
  const missing = new Map(env.map((one) => [stringAt(one, "name"), one]));
  for (const one of arrayAt(container, "env")) missing.delete(stringAt(one, "name"));
  return env.filter((one) => missing.get(stringAt(one, "name")) === one);
}

/**
 * The environment of a container with variables in the place of its own of the same names, so that its other variables
 * can refer to them. A variable that refers to others comes after all of the container's, so that it finds them.
 */
export function withOwnEnv(container: JsonObject, env: readonly JsonObject[]): JsonObject {
  const last = new Set(env.filter((one) => stringAt(one, "value")?.includes("$(")).map((one) => stringAt(one, "name")));
  const kept = arrayAt(container, "env").filter((one) => !last.has(stringAt(one, "name")));
  return withNamed({ env: kept }, "env", env);
}

function snakeCase(name: string): string {
  return name.replace(/([a-z])([A-Z])/g, "$1_$2").toUpperCase();
}
