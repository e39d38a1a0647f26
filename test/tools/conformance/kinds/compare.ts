import type { Job } from "../../../../src/core/job/job.ts";
import {
  arrayAt,
  canonicalJson,
  isJsonObject,
  type Json,
  type JsonObject,
  numberAt,
  objectAt,
  stringAt,
  stringMapAt,
} from "../../../../src/runtime/json.ts";
import { equalLoosely } from "../compare.ts";
import type { StagedPod } from "./stage.ts";

const SUFFIX = "-*****";
/** Members of a pod spec that are compared. */
const SPEC_MEMBERS = [
  "volumes",
  "nodeSelector",
  "affinity",
  "tolerations",
  "restartPolicy",
  "serviceAccountName",
  "hostNetwork",
  "dnsPolicy",
  "dnsConfig",
  "securityContext",
  "hostname",
  "subdomain",
];
const CONTAINER_MEMBERS = [
  "name",
  "image",
  "command",
  "args",
  "env",
  "envFrom",
  "ports",
  "resources",
  "volumeMounts",
  "workingDir",
];
/** Kubernetes' defaults, which cases leave out. */
const DEFAULTS: JsonObject = { dnsPolicy: "ClusterFirst" };

/** Compares the pods that are there, by name and phase. */
export function comparePresent(expected: JsonObject, pods: readonly StagedPod[]): readonly string[] {
  const list = expected["podsPresent"] ?? expected["pods"];
  if (!Array.isArray(list)) return [];
  const wanted = list.map((pod) => {
    const terminating = isJsonObject(pod) && pod["terminating"] === true;
    return `${plain(stringAt(pod, "name"))} ${stringAt(pod, "phase") ?? "Pending"}${terminating ? " terminating" : ""}`;
  });
  const found = pods.map(({ name, phase, terminating }) => `${name} ${phase}${terminating ? " terminating" : ""}`);
  return differing("pods", wanted, found);
}

/** Compares pods that are new. `before`: the uids of those that were there. */
export function compareCreated(
  expected: JsonObject,
  pods: readonly StagedPod[],
  before: ReadonlySet<string>,
): readonly string[] {
  const made = pods.filter(({ uid }) => !before.has(uid));
  const wanted = arrayAt(expected, expected["pods"] === undefined ? "podsCreated" : "pods");
  const names = differing(
    "new pods",
    wanted.map((pod) => plain(stringAt(pod, "name"))),
    made.map(({ name }) => name),
  );
  if (names.length > 0) return names;
  const left = [...made];
  return wanted.flatMap((pod) => {
    const name = plain(stringAt(pod, "name"));
    const alike = left.filter((one) => one.name === name);
    const compared = alike.map((one) => ({ one, differences: comparePod(objectAt({ pod }, "pod"), one) }));
    const best = compared.sort((a, b) => a.differences.length - b.differences.length)[0];
    if (best === undefined) return [];
    left.splice(left.indexOf(best.one), 1);
    return best.differences.map((text) => `pod ${name}: ${text}`);
  });
}

/** Compares how the job has ended, by the conditions of the other controller. */
export function compareVerdict(expected: JsonObject, { status, spec }: Job): readonly string[] {
  const conditions = arrayAt(objectAt(expected, "status"), "conditions").filter(
    (one) => stringAt(one, "status") === "True",
  );
  const has = (...types: readonly string[]) => conditions.find((one) => types.includes(stringAt(one, "type") ?? ""));
  const failed = has("Failed");
  const phase = has("Complete", "Completed", "Succeeded") ? "SUCCEEDED" : failed ? "FAILED" : null;
  const isSuspended = has("Suspended") !== undefined;
  const errors: string[] = [];
  const ended = ["SUCCEEDED", "FAILED", "CANCELLED"].includes(status.phase) ? status.phase : null;
  if (phase !== ended) errors.push(`verdict: expected ${phase ?? "none"}, found ${status.phase}`);
  const reason = stringAt(failed, "reason");
  if (failed !== undefined && phase === ended && status.failure?.code !== reason) {
    errors.push(`failure: expected ${reason}, found ${status.failure?.code}`);
  }
  if (isSuspended && spec.runPolicy.suspend !== true) errors.push("expected a suspended job");
  return errors;
}

function comparePod(wanted: JsonObject, { json }: StagedPod): readonly string[] {
  const metadata = objectAt(json, "metadata");
  const spec = objectAt(json, "spec");
  const errors: string[] = [];
  const compare = (what: string, expected: Json, found: Json) => {
    if (!equalLoosely(normal(expected), normal(found))) {
      errors.push(`${what}: expected ${JSON.stringify(expected)}, found ${JSON.stringify(found)}`);
    }
  };
  for (const member of ["labels", "annotations"] as const) {
    const expected = foreignTexts(stringMapAt(wanted, member));
    const found = foreignTexts(stringMapAt(metadata, member));
    // A pod that follows another one of its name has only what differs.
    const known = Object.entries(found).filter(([key]) => wanted["spec"] !== undefined || key in expected);
    compare(member, expected, Object.fromEntries(known));
  }
  if (wanted["spec"] === undefined) return errors;
  const theirs = objectAt(wanted, "spec");
  for (const member of SPEC_MEMBERS) {
    compare(member, theirs[member] ?? DEFAULTS[member] ?? null, spec[member] ?? DEFAULTS[member] ?? null);
  }
  const onHost = spec["hostNetwork"] === true;
  for (const member of ["containers", "initContainers"]) {
    const [expected, found] = [arrayAt(theirs, member), arrayAt(spec, member)];
    compare(
      member,
      expected.map((one) => containerOf(one, onHost)),
      found.map((one) => containerOf(one, onHost)),
    );
  }
  return errors;
}

/** Labels and annotations that are not Gangway's own, and whose value is no uid. */
export function foreignTexts(texts: Readonly<Record<string, string>>): JsonObject {
  const kept = Object.entries(texts).filter(
    ([key]) => !/^(gangway\.dev|training\.kubeflow\.org)\//.test(key) && !/(^|[-/])uid$/.test(key),
  );
  return Object.fromEntries(kept);
}

/**
 * A container without the variables that every pod of Gangway has. On the network of its node, API servers give each of
 * its ports that number there; a variable without a value is empty.
 */
function containerOf(container: Json, onHost: boolean): Json {
  if (!isJsonObject(container)) return container;
  const kept = CONTAINER_MEMBERS.flatMap((member) =>
    container[member] === undefined ? [] : [[member, container[member]]],
  );
  const env = arrayAt(container, "env")
    .filter((one) => !/^(GANGWAY|FLYTE)_/.test(stringAt(one, "name") ?? ""))
    .map((one) => (stringAt(one, "value") === "" ? { name: stringAt(one, "name") ?? "" } : one));
  const ports = arrayAt(container, "ports").map((port) => {
    return onHost ? { ...objectAt({ port }, "port"), hostPort: numberAt(port, "containerPort") ?? 0 } : port;
  });
  return {
    ...(Object.fromEntries(kept) as JsonObject),
    env: [...env].sort(byName),
    ...(ports.length === 0 ? {} : { ports }),
  };
}

function byName(a: Json, b: Json): number {
  return (stringAt(a, "name") ?? "") < (stringAt(b, "name") ?? "") ? -1 : 1;
}

/** The secret with the keys of an admission, which has the name of its job elsewhere. */
const KEYS = /-mpi-ssh-auth$|^mpi-ssh-auth-/;

/** Amounts of resources are texts, and what is limited is requested: API servers write a pod so. */
function normal(value: Json): Json {
  return JSON.parse(canonicalJson(value), (key, inner: Json) => {
    if (key === "secretName" && typeof inner === "string") return KEYS.test(inner) ? "keys" : inner;
    if (key !== "resources" || !isJsonObject(inner)) return inner;
    const [limits, requests] = [amounts(inner["limits"]), amounts(inner["requests"])];
    return { limits, requests: { ...limits, ...requests } };
  }) as Json;
}

function amounts(of: Json | undefined): JsonObject {
  return isJsonObject(of) ? Object.fromEntries(Object.entries(of).map(([name, value]) => [name, String(value)])) : {};
}

function plain(name: string | undefined): string {
  const text = name ?? "";
  return text.endsWith(SUFFIX) ? text.slice(0, -SUFFIX.length) : text;
}

export function differing(what: string, wanted: readonly string[], found: readonly string[]): readonly string[] {
  const [a, b] = [[...wanted].sort(), [...found].sort()];
  return a.join("\n") === b.join("\n") ? [] : [`${what}: expected ${a.join(", ")}; found ${b.join(", ")}`];
}
