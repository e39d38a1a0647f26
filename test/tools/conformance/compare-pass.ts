import type { Job } from "../../../src/core/job/job.ts";
import type { Kind } from "../../../src/core/kinds/kind.ts";
import type { Decision } from "../../../src/core/reconcile/decision.ts";
import type { Json, JsonObject } from "../../../src/runtime/json.ts";
import { arrayAt, isJsonObject, numberAt, objectAt, stringAt, stringMapAt } from "../../../src/runtime/json.ts";
import { equalLoosely, equalText } from "./compare.ts";

/** Conditions that Kubeflow does not know. */
const OURS = ["Created", "QuotaReserved", "Admitted", "PodsReady"];

export type Pass = {
  readonly job: Job;
  readonly kind: Kind;
  readonly decision: Decision;
  readonly expected: JsonObject;
};

/** The differences between a pass and the expectations of its case. Compares only the fields that the case names. */
export function comparePass(pass: Pass): readonly string[] {
  const { job, decision, expected } = pass;
  const status = decision.record?.status ?? job.status;
  const created = (kind: string) =>
    decision.actions.flatMap((action) => (action.kind === kind && "manifest" in action ? [action.manifest] : []));
  const deleted = decision.actions.flatMap((action) => (action.kind === "deletePod" ? [action.name] : []));
  const names = (manifests: readonly JsonObject[]) => manifests.map((manifest) => nameOf(manifest)).sort();
  const facts: Record<string, unknown> = {
    completionTimeSet: status.completionTimeMs !== null,
    startTimeSet: status.startTimeMs !== null,
    jobDeleted: decision.forget || (decision.record?.deleteTimeMs ?? null) !== null,
    podGroupDeleted: decision.actions.some(({ kind: action }) => action === "deletePodGroup"),
    podsDeleted: deleted.sort(),
    servicesCreated: names(created("createService")),
  };
  const differences: string[] = [];
  for (const [name, found] of Object.entries(facts)) {
    const wanted = expected[name];
    if (wanted === undefined) continue;
    const sorted = Array.isArray(wanted) ? [...wanted].sort() : typeof found === "boolean" ? wanted === true : wanted;
    if (!equalLoosely(sorted, found)) differences.push(different(name, sorted, found));
  }
  return [
    ...differences,
    ...compareHostfile(expected, created("createPart")),
    ...comparePodsByName(expected, created("createPod")),
    ...compareConditions(pass, status.conditions),
    ...compareCounts(expected, status.replicaStatuses),
    ...comparePods(expected, created("createPod")),
  ];
}

function compareConditions({ job, kind, expected }: Pass, conditions: Job["status"]["conditions"]): readonly string[] {
  const trueOnes = (list: readonly { type: string; status: string; reason: string }[]) =>
    list
      .filter(({ type, status }) => status === "True" && !OURS.includes(type))
      .map(({ type, reason }) => `${type} ${reason.replace(kind.name, "")}`)
      .sort();
  const found = trueOnes(conditions);
  const wanted =
    expected["conditions"] === undefined
      ? trueOnes(job.status.conditions)
      : trueOnes(
          arrayAt(expected, "conditions").map((one) => ({
            type: stringAt(one, "type") ?? "",
            status: stringAt(one, "status") ?? "",
            reason: stringAt(one, "reason") ?? "",
          })),
        );
  return equalLoosely(wanted, found) ? [] : [different("conditions", wanted, found)];
}

function compareCounts(expected: JsonObject, found: Job["status"]["replicaStatuses"]): readonly string[] {
  return Object.keys(objectAt(expected, "replicaStatuses")).flatMap((role) => {
    const wanted = objectAt(objectAt(expected, "replicaStatuses"), role);
    return (["active", "succeeded", "failed"] as const).flatMap((name) => {
      const count = found[role]?.[name] ?? 0;
      return (numberAt(wanted, name) ?? 0) === count ? [] : [different(`${role}.${name}`, wanted[name], count)];
    });
  });
}

function comparePods(expected: JsonObject, created: readonly JsonObject[]): readonly string[] {
  if (expected["podsCreated"] === undefined) return [];
  const wanted = arrayAt(expected, "podsCreated");
  const wantedNames = wanted.map((pod) => stringAt(pod, "name") ?? "").sort();
  const foundNames = created.map(nameOf).sort();
  if (!equalLoosely(wantedNames, foundNames)) return [different("podsCreated", wantedNames, foundNames)];
  return wanted.flatMap((pod) => comparePod(pod, created.find((one) => nameOf(one) === stringAt(pod, "name")) ?? {}));
}

/** Pods by full name, with the command and the environment of their first container. */
function comparePodsByName(expected: JsonObject, created: readonly JsonObject[]): readonly string[] {
  const wanted = objectAt(expected, "pods");
  if (expected["pods"] === undefined) return [];
  const foundNames = created.map(nameOf).sort();
  const wantedNames = Object.keys(wanted).sort();
  if (!equalLoosely(wantedNames, foundNames)) return [different("pods", wantedNames, foundNames)];
  return wantedNames.flatMap((name) => {
    const pod = objectAt(wanted, name);
    const found = created.find((one) => nameOf(one) === name) ?? {};
    const container = objectAt({ first: arrayAt(objectAt(found, "spec"), "containers")[0] }, "first");
    const commands = ["command", "args"].flatMap((member) =>
      equalLoosely(pod[member], container[member])
        ? []
        : [different(`${name} ${member}`, pod[member], container[member])],
    );
    const env = pod["env"] === undefined ? {} : { env: { [stringAt(container, "name") ?? ""]: pod["env"] } };
    return [...commands, ...comparePod({ ...pod, name, ...env }, found)];
  });
}

function compareHostfile(expected: JsonObject, parts: readonly JsonObject[]): readonly string[] {
  if (expected["hostfile"] === undefined) return [];
  const found = parts.map((part) => stringAt(objectAt(part, "data"), "hostfile")).find((text) => text !== undefined);
  return found === expected["hostfile"] ? [] : [different("hostfile", expected["hostfile"], found)];
}

function comparePod(wanted: Json, found: JsonObject): readonly string[] {
  const name = stringAt(wanted, "name") ?? "";
  const metadata = objectAt(found, "metadata");
  const spec = objectAt(found, "spec");
  const differences: string[] = [];
  for (const map of ["labels", "annotations"]) {
    for (const [key, value] of Object.entries(stringMapAt(wanted, map))) {
      const actual = stringMapAt(metadata, map)[key];
      if (actual !== value) differences.push(different(`${name} ${map} ${key}`, value, actual));
    }
  }
  const restartPolicy = stringAt(wanted, "restartPolicy");
  if (restartPolicy !== undefined && restartPolicy !== spec["restartPolicy"]) {
    differences.push(different(`${name} restartPolicy`, restartPolicy, spec["restartPolicy"]));
  }
  const initContainers = numberAt(wanted, "initContainers");
  const inits = arrayAt(spec, "initContainers").length;
  if (initContainers !== undefined && initContainers !== inits) {
    differences.push(different(`${name} initContainers`, initContainers, inits));
  }
  return [...differences, ...compareEnv(wanted, spec, name)];
}

function compareEnv(wanted: Json, spec: JsonObject, podName: string): readonly string[] {
  return Object.entries(objectAt(wanted, "env")).flatMap(([container, inner]) => {
    const variables = isJsonObject(inner) ? inner : {};
    const found = arrayAt(spec, "containers").find((one) => stringAt(one, "name") === container);
    const actual: Record<string, unknown> = {};
    for (const one of arrayAt(found, "env")) {
      const { name, value, valueFrom } = one as { name: string; value?: string; valueFrom?: Json };
      actual[name] = valueFrom === undefined ? (value ?? "") : { valueFrom };
    }
    const all = [...new Set([...Object.keys(variables), ...Object.keys(actual)])];
    return all
      .filter((name) => !name.startsWith("GANGWAY_") && !equalText(variables[name], actual[name]))
      .map((name) => different(`${podName} ${container} ${name}`, variables[name], actual[name]));
  });
}

function nameOf(manifest: JsonObject): string {
  return stringAt(objectAt(manifest, "metadata"), "name") ?? "";
}

function different(what: string, wanted: unknown, found: unknown): string {
  return `${what}: expected ${JSON.stringify(wanted) ?? "nothing"}, found ${JSON.stringify(found) ?? "nothing"}`;
}
