import assert from "node:assert/strict";
import { test } from "node:test";
import { fromManifest } from "../../../src/core/kinds/manifest/from-manifest.ts";
import type { Json, JsonObject } from "../../../src/runtime/json.ts";
import { isJsonObject } from "../../../src/runtime/json.ts";
import { kindsWith } from "../../support/kinds.ts";
import { etlEntry } from "./plugin-world.ts";

const SERVED = kindsWith(etlEntry);
const template = { spec: { containers: [{ name: "pytorch", image: "img" }] } };

const metadata = { name: "j", generateName: "g-", namespace: "n", labels: { a: "b" }, annotations: { c: "d" } };

const runPolicy = {
  cleanPodPolicy: "None",
  ttlSecondsAfterFinished: 1,
  activeDeadlineSeconds: 2,
  backoffLimit: 3,
  systemBackoffLimit: 4,
  interruptibleFailureThreshold: 5,
  restartScope: "GANG",
  suspend: true,
  interruptible: false,
  maxRuntime: "1h30m",
  moveAfter: "0s",
  backfill: true,
  cacheKey: "k",
  schedulingPolicy: {
    minAvailable: 1,
    queue: "q",
    minResources: { cpu: "1" },
    priorityClass: "high",
    scheduleTimeoutSeconds: 6,
    maxPreemptions: 7,
  },
};

/** Every field that a manifest of `gangway.dev/v1` may have. */
const spec = {
  replicaSpecs: {
    Worker: {
      replicas: 2,
      restartPolicy: "ExitCode",
      template,
      topology: { preferred: "rack", slices: [{ level: "host", size: 1 }] },
    },
  },
  runPolicy,
  kindSpec: { nprocPerNode: "2" },
  inputs: { rate: 1 },
  priority: -5,
  placement: {
    clusters: ["east"],
    clusterSelector: { region: "eu" },
    gpuModels: ["h100"],
    topology: { required: "block" },
  },
};
const full: JsonObject = { apiVersion: "gangway.dev/v1", kind: "PyTorchJob", metadata, spec };

test("a manifest with every field is read as it is, and a duration as milliseconds", () => {
  const { maxRuntime: _text, moveAfter: _never, ...asIs } = runPolicy;
  const readPolicy = { ...asIs, maxRuntimeMs: 5_400_000, moveAfterMs: 0 };
  const manifest = { metadata, spec: { kind: "PyTorchJob", ...spec, runPolicy: readPolicy } };
  const read = { kind: "read", manifest: { ...manifest, sources: new Map(), notes: [], warnings: [] } };
  assert.deepEqual(fromManifest(full, SERVED), read);
  assert.deepEqual(fromManifest({ ...full, kind: "Job", spec: { kind: "PyTorchJob", ...spec } }, SERVED), read);
  assert.deepEqual(fromManifest({ ...full, spec: { kind: "PyTorchJob", ...spec } }, SERVED), read);
});

/** Objects whose members are the user's own. */
const OPEN = ["template", "kindSpec", "inputs"];

/** The path of each field of an object, with its value. */
function fieldsOf(object: JsonObject, path: readonly string[] = []): readonly (readonly [readonly string[], Json])[] {
  return Object.entries(object).flatMap(([name, value]) => {
    if (value === undefined) return [];
    const own = [[[...path, name], value] as const];
    return isJsonObject(value) && !OPEN.includes(name) ? [...own, ...fieldsOf(value, [...path, name])] : own;
  });
}

function withField(object: JsonObject, [name = "", ...rest]: readonly string[], value: Json): JsonObject {
  const inner = object[name];
  return { ...object, [name]: rest.length === 0 ? value : withField(isJsonObject(inner) ? inner : {}, rest, value) };
}

function readingErrors(doc: JsonObject) {
  const outcome = fromManifest(doc, SERVED);
  return outcome.kind === "read" ? [] : outcome.errors;
}

function errorsOf(doc: JsonObject): readonly string[] {
  return readingErrors(doc).map(({ path }) => path);
}

/** Maps of texts name their member in brackets. */
const MAPS = ["labels", "annotations", "clusterSelector", "minResources"];
function nameOf(path: readonly string[]): string {
  const [last = "", map = ""] = path.toReversed();
  return MAPS.includes(map) ? `${path.slice(0, -1).join(".")}[${JSON.stringify(last)}]` : path.join(".");
}

for (const [path, value] of fieldsOf(full)) {
  test(`a wrong value of ${nameOf(path)} is named by its path, and null counts as omitted`, () => {
    const isText = typeof value === "string";
    for (const wrong of isText ? [[], {}, true] : ["?", isJsonObject(value) ? [] : {}]) {
      assert.ok(errorsOf(withField(full, path, wrong)).includes(nameOf(path)), JSON.stringify(wrong));
    }
    const isNeeded = ["apiVersion", "kind", "spec", "spec.replicaSpecs"].includes(path.join("."));
    if (!isNeeded && !MAPS.includes(path.at(-2) ?? "")) assert.deepEqual(errorsOf(withField(full, path, null)), []);
  });
}

const OBJECTS = [
  "spec",
  "spec.replicaSpecs.Worker",
  "spec.runPolicy",
  "spec.runPolicy.schedulingPolicy",
  "spec.placement",
  "spec.placement.topology",
  "spec.replicaSpecs.Worker.topology",
];
for (const path of OBJECTS) {
  test(`an unknown member of ${path} is named by its path`, () => {
    assert.deepEqual(errorsOf(withField(full, [...path.split("."), "typo"], 1)), [`${path}.typo`]);
  });
}

test("a duration needs its unit", () => {
  const path = ["spec", "runPolicy", "maxRuntime"];
  for (const wrong of ["90", "", "1w"]) assert.deepEqual(errorsOf(withField(full, path, wrong)), [path.join(".")]);
  assert.deepEqual(errorsOf(withField(full, path, "5400s")), []);
});

test("an error names the values that are allowed", () => {
  const wrong: readonly (readonly [path: string, value: number, message: string])[] = [
    ["spec.runPolicy.maxRuntime", 5, "must be a duration with its unit, such as 90s, 10m or 1h30m, not 5"],
    ["spec.runPolicy.schedulingPolicy.maxPreemptions", 99_999_999_999, "must be from 0 to 2147483647, not 99999999999"],
    ["spec.runPolicy.schedulingPolicy.minAvailable", 99_999_999_999, "must be from 1 to 2147483647, not 99999999999"],
    ["spec.runPolicy.activeDeadlineSeconds", 1e17, "must be from 1 to 3153600000, not 100000000000000000"],
    ["spec.replicaSpecs.Worker.replicas", 99_999_999_999, "must be from 0 to 10000, not 99999999999"],
  ];
  for (const [path, value, message] of wrong) {
    assert.deepEqual(readingErrors(withField(full, path.split("."), value)), [{ path, message }]);
  }
});

test("numbers of 64 bits may be text, numbers of 32 bits may not", () => {
  const wide = ["activeDeadlineSeconds", "interruptibleFailureThreshold"];
  for (const name of ["backoffLimit", "systemBackoffLimit", "ttlSecondsAfterFinished", ...wide]) {
    const path = ["spec", "runPolicy", name];
    assert.deepEqual(errorsOf(withField(full, path, "7")), wide.includes(name) ? [] : [path.join(".")]);
    assert.deepEqual(errorsOf(withField(full, path, 2 ** 31)), wide.includes(name) ? [] : [path.join(".")]);
  }
  assert.deepEqual(errorsOf(withField(full, ["spec", "runPolicy", "schedulingPolicy", "minResources", "cpu"], 2)), []);
});

const kinds: Record<string, { doc: JsonObject; errors: readonly [path: string, message: RegExp][] }> = {
  "no kind": {
    doc: { ...full, kind: null },
    errors: [["kind", /^unknown kind \(none\); the served kinds are .*PyTorchJob, /]],
  },
  "an unknown kind": { doc: { ...full, kind: "X" }, errors: [["kind", /^unknown kind X; the served kinds are /]] },
  "a kind that is known, but not served": {
    doc: { ...full, kind: "MXJob" },
    errors: [["kind", /^kind MXJob is not served: /]],
  },
  "an unknown kind in the spec": {
    doc: { ...full, kind: "Job", spec: { ...spec, kind: "X" } },
    errors: [["spec.kind", /^unknown kind X/]],
  },
  "another kind in the spec": {
    doc: { ...full, spec: { ...spec, kind: "TFJob" } },
    errors: [["spec.kind", /^must be PyTorchJob, the kind of the document$/]],
  },
  "a kind in the spec of Kubeflow's version, where it is a member of the kind": {
    doc: { ...full, apiVersion: "kubeflow.org/v1", spec: { kind: "X", pytorchReplicaSpecs: spec.replicaSpecs } },
    errors: [],
  },
  "no API version": {
    doc: { ...full, apiVersion: null },
    errors: [["apiVersion", /^must be kubeflow.org\/v1 for kind PyTorchJob, not omitted$/]],
  },
  "no replicas of a job with pods": {
    doc: { ...full, spec: { ...spec, replicaSpecs: null } },
    errors: [["spec.replicaSpecs", /^is required$/]],
  },
  "no replicas of a job without pods": { doc: { ...full, kind: "EtlJob", spec: { kindSpec: {} } }, errors: [] },
  "replicas of a job without pods, of a wrong type": {
    doc: { ...full, kind: "EtlJob", spec: { replicaSpecs: 1 } },
    errors: [
      ["spec.replicaSpecs", /^must be an object, not 1$/],
      ["spec.replicaSpecs", /^is required$/],
    ],
  },
};
for (const [name, { doc, errors }] of Object.entries(kinds)) {
  test(`a manifest with ${name} has ${errors.length === 0 ? "no error" : "an error at its path"}`, () => {
    const outcome = fromManifest(doc, SERVED);
    const found = outcome.kind === "read" ? [] : outcome.errors;
    assert.deepEqual(
      found.map(({ path }) => path),
      errors.map(([path]) => path),
    );
    for (const [at, [, says]] of errors.entries()) assert.match(found[at]?.message ?? "", says);
  });
}

const kubeflow = (members: JsonObject): JsonObject => ({
  ...full,
  apiVersion: "kubeflow.org/v1",
  spec: { pytorchReplicaSpecs: spec.replicaSpecs, ...members },
});

const lifted: Record<string, { members: JsonObject; policy: JsonObject | undefined; errors?: readonly string[] }> = {
  "is omitted": { members: {}, policy: undefined },
  "is null at both places": { members: { runPolicy: null, backoffLimit: null }, policy: undefined },
  "is at its old place, and the new one is null": {
    members: { runPolicy: null, backoffLimit: 1 },
    policy: { backoffLimit: 1 },
  },
  "is null at its old place": {
    members: { runPolicy: { backoffLimit: 1 }, backoffLimit: null },
    policy: { backoffLimit: 1 },
  },
  "is equal at both places": {
    members: { runPolicy: { backoffLimit: 1 }, backoffLimit: 1 },
    policy: { backoffLimit: 1 },
  },
  "is at its old place, and null at its new one": {
    members: { runPolicy: { backoffLimit: null }, backoffLimit: 1 },
    policy: { backoffLimit: 1 },
  },
  "is at its old place, and the new one is no object": {
    members: { runPolicy: "x", backoffLimit: 1 },
    policy: undefined,
    errors: ["spec.runPolicy"],
  },
};
for (const [name, { members, policy, errors = [] }] of Object.entries(lifted)) {
  test(`a run policy of Kubeflow's version that ${name}`, () => {
    const outcome = fromManifest(kubeflow(members), SERVED);
    assert.deepEqual(errorsOf(kubeflow(members)), errors);
    assert.deepEqual(outcome.kind === "read" ? outcome.manifest.spec.runPolicy : undefined, policy);
  });
}
