import { arrayAt, isJsonObject, type Json, type JsonObject, stringAt } from "../../runtime/json.ts";

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

const ENV_PREFIX = "GANGWAY_";
/** Flyte's spelling: `{{ .Namespace }}` or `{{ $Namespace }}`, in any case, with any room; `{{ .Annotations.KEY }}`. */
const PLACEHOLDER = /\{\{\s*[.$]([A-Za-z]+)(?:\.([^}\s]+))?\s*\}\}/g;

export function podVariables({ job, admission, attempt, role, index, podName }: PodIdentity): Variables {
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
 * Text with its placeholders filled in: variables by name, `{{ .Annotations.KEY }}` by the job's annotations, empty where it has none of
 * that key. What is no placeholder of ours stays as it is: other programs have templates too.
 */
export function render(text: string, variables: Variables, annotations: Readonly<Record<string, string>>): string {
  const byName = new Map(Object.entries(variables).map(([name, value]) => [name.toLowerCase(), value]));
  return text.replace(PLACEHOLDER, (whole, name: string, key: string | undefined) => {
    if (key === undefined) return byName.get(name.toLowerCase()) ?? whole;
    if (name.toLowerCase() !== "annotations") return whole;
    return Object.hasOwn(annotations, key) ? (annotations[key] ?? "") : "";
  });
}

/** A container's `command` and `args` with placeholders filled in; members that it has not stay away. */
export function renderContainer(
  container: JsonObject,
  variables: Variables,
  annotations: Readonly<Record<string, string>>,
): JsonObject {
  const filled = (list: readonly Json[]) =>
    list.map((one) => (typeof one === "string" ? render(one, variables, annotations) : one));
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
