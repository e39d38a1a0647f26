import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { fromManifest, type ManifestRules } from "../../../../src/core/kinds/manifest/from-manifest.ts";
import type { SentManifest } from "../../../../src/core/kinds/manifest/sent-manifest.ts";
import { readSetting, SETTINGS, type Setting, settingOf } from "../../../../src/core/kinds/manifest/settings.ts";
import type { Json, JsonObject } from "../../../../src/runtime/json.ts";
import { OWN_KINDS } from "../../../support/kinds.ts";

const template = { spec: { containers: [{ name: "pytorch", image: "img" }] } };
const replicas = { Worker: { replicas: 4, template } };

type Written = { readonly annotations?: JsonObject; readonly labels?: JsonObject; readonly spec?: JsonObject };

const kubeflow = ({ annotations = {}, labels = {}, spec = {} }: Written): JsonObject => ({
  apiVersion: "kubeflow.org/v1",
  kind: "PyTorchJob",
  metadata: { name: "j", annotations, labels },
  spec: { pytorchReplicaSpecs: replicas, ...spec },
});

const own = ({ annotations = {}, labels = {}, spec = {} }: Written): JsonObject => ({
  apiVersion: "gangway.dev/v1",
  kind: "PyTorchJob",
  metadata: { name: "j", annotations, labels },
  spec: { replicaSpecs: replicas, ...spec },
});

function read(doc: JsonObject, rules: ManifestRules = {}): SentManifest {
  const outcome = fromManifest(doc, OWN_KINDS, rules);
  assert.ok(outcome.kind === "read", JSON.stringify(outcome));
  return outcome.manifest;
}

function errorsOf(doc: JsonObject): readonly string[] {
  const outcome = fromManifest(doc, OWN_KINDS);
  return outcome.kind === "read" ? [] : outcome.errors.map(({ path, message }) => `${path}: ${message}`);
}

/** A spec whose only member at this path is the value. */
function specWith(path: string, value: Json): JsonObject {
  const [first = "", ...rest] = path.split(".");
  return { [first]: rest.length === 0 ? value : specWith(rest.join("."), value) };
}

/** A value of a setting: as text, and as the member of a manifest in Gangway's own form. */
function anyValue({ type }: Setting): fc.Arbitrary<{ readonly text: string; readonly json: Json }> {
  const name = fc.stringMatching(/^[a-z][a-z0-9-]{0,8}$/);
  const number = (least: number) =>
    fc.integer({ min: least, max: 100_000 }).map((json) => ({ text: String(json), json }));
  switch (type.of) {
    case "text":
      return name.map((json) => ({ text: json, json }));
    case "number":
      return number(type.least ?? -1000);
    case "seconds":
      return fc
        .record({ of: number(Math.max(1, type.least)), unit: fc.constantFrom("", "s") })
        .map(({ of, unit }) => ({ text: of.text + unit, json: of.json }));
    case "duration":
      return fc.constantFrom("90s", "10m", "1h30m").map((json) => ({ text: json, json }));
    case "flag":
      return fc.boolean().map((json) => ({ text: String(json), json }));
    case "word":
      return fc
        .record({ word: fc.constantFrom(...type.words), isLower: fc.boolean() })
        .map(({ word, isLower }) => ({ text: isLower ? word.toLowerCase() : word, json: word }));
    case "texts":
      return fc.uniqueArray(name, { minLength: 1, maxLength: 3 }).map((json) => ({ text: json.join(", "), json }));
    case "map":
      return fc.dictionary(name, name, { minKeys: 1, maxKeys: 3, noNullPrototype: true }).map((json) => ({
        text: Object.entries(json)
          .map(([key, value]) => `${key}=${value}`)
          .join(","),
        json,
      }));
    default:
      return type satisfies never;
  }
}

const oneSetting = fc
  .constantFrom(...SETTINGS)
  .chain((setting) => fc.record({ setting: fc.constant(setting), value: anyValue(setting), other: anyValue(setting) }));

function option({ name }: Setting, text: string): ManifestRules {
  const outcome = readSetting(settingOf(name)!, text);
  assert.ok(outcome.kind === "value", JSON.stringify(outcome));
  return { settings: new Map([[name, outcome.value]]) };
}

test("a setting is the same as a member, as an annotation of any manifest, and as an option", () => {
  fc.assert(
    fc.property(oneSetting, ({ setting, value: { text, json } }) => {
      const annotations = { [`gangway.dev/${setting.name}`]: text, "example.com/note": "kept" };
      const member = read(own({ spec: specWith(setting.field, json) }));
      for (const manifest of [
        read(own({ annotations })),
        read(kubeflow({ annotations })),
        read(kubeflow({ annotations: { "example.com/note": "kept" } }), option(setting, text)),
      ]) {
        assert.deepEqual(manifest.spec, member.spec);
        assert.deepEqual(manifest.metadata.annotations, { "example.com/note": "kept" });
        assert.deepEqual([manifest.notes, manifest.warnings], [[], []]);
      }
    }),
  );
});

test("an option counts before an annotation, and an annotation before the manifest's own member", () => {
  fc.assert(
    fc.property(oneSetting, ({ setting, value, other }) => {
      const annotations = { [`gangway.dev/${setting.name}`]: value.text };
      const spec = specWith(setting.field, other.json);
      const only = read(own({ annotations })).spec;
      assert.deepEqual(read(own({ annotations, spec })).spec, only);
      const rules = option(setting, value.text);
      assert.deepEqual(
        read(own({ annotations: { [`gangway.dev/${setting.name}`]: other.text }, spec }), rules).spec,
        only,
      );
    }),
  );
});

test("a priority class takes the place of a priority, and a priority that of a class", () => {
  const spec = { priority: 5 };
  assert.deepEqual(read(own({ spec, annotations: { "gangway.dev/priority-class": "high" } })).spec, {
    ...read(own({})).spec,
    priorityClassName: "high",
  });
  const both = { "gangway.dev/priority-class": "high", "gangway.dev/priority": "7" };
  const read2 = read(own({ spec, annotations: both })).spec;
  assert.deepEqual([read2.priority, read2.priorityClassName], [7, "high"]);
  const { spec: byOption } = read(own({ annotations: both }), { settings: new Map([["priority", 3]]) });
  assert.deepEqual([byOption.priority, byOption.priorityClassName], [3, undefined]);
});

const refused: Readonly<Record<string, string>> = {
  "priority: high": "must be a whole number from -2147483647 to 2147483647",
  "priority: 3000000000": "must be a whole number from -2147483647 to 2147483647",
  "min-available: 0": "must be a whole number from 1 to 2147483647",
  "schedule-timeout: soon": "must be whole seconds, or a duration with its unit, such as 90s, 10m or 1h30m",
  "schedule-timeout: 1500ms": "must be whole seconds, or a duration with its unit, such as 90s, 10m or 1h30m",
  "active-deadline: 0s": "must be a whole number from 1 to 2147483647",
  "max-runtime: 90": "must be a duration with its unit, such as 90s, 10m or 1h30m",
  "partial: WAIT": "must be one of KEEP, RESTART",
  "restart-scope: pod": "must be one of REPLICA, GANG",
  "backfill: yes": "must be true or false",
  "cluster-selector: region": "must be KEY=VALUE, with commas between several",
  "queue: ": "must not be empty",
};

for (const [pair, message] of Object.entries(refused)) {
  test(`refused at its annotation: ${pair}`, () => {
    const [name = "", text = ""] = pair.split(": ");
    const errors = errorsOf(kubeflow({ annotations: { [`gangway.dev/${name}`]: text } }));
    assert.deepEqual(errors, [
      `metadata.annotations.gangway.dev/${name}: ${message}${text === "" ? "" : `, not "${text}"`}`,
    ]);
  });
}

test("any text of an annotation is read or refused, never thrown", () => {
  fc.assert(
    fc.property(fc.constantFrom(...SETTINGS), fc.string({ unit: "binary" }), ({ name }, text) => {
      const outcome = fromManifest(kubeflow({ annotations: { [`gangway.dev/${name}`]: text } }), OWN_KINDS);
      if (outcome.kind === "refused")
        assert.ok(outcome.errors.every(({ path }) => path.startsWith("metadata.annotations.")));
    }),
  );
});

test("an unknown annotation of Gangway is a warning that names the nearest one", () => {
  const annotations = {
    "gangway.dev/gpu-modell": "h100",
    "gangway.dev/zzzzzzzzzz": "1",
    "gangway.dev/gpu-device": "a100",
    "gangway.dev/expect": "Failed",
  };
  const { warnings, metadata } = read(kubeflow({ annotations }));
  assert.deepEqual(warnings, [
    {
      field: "metadata.annotations.gangway.dev/gpu-modell",
      message: "is ignored: did you mean gangway.dev/gpu-model?",
    },
    { field: "metadata.annotations.gangway.dev/zzzzzzzzzz", message: "is ignored" },
    {
      field: "metadata.annotations.gangway.dev/gpu-device",
      message: "is ignored: it belongs into the metadata of a pod template",
    },
  ]);
  assert.deepEqual(metadata.annotations, annotations);
});

test("many unknown annotations are one hundred warnings and a count", () => {
  const annotations = Object.fromEntries(Array.from({ length: 900 }, (_, at) => [`gangway.dev/x${at}`, "1"]));
  const { warnings } = read(kubeflow({ annotations }));
  assert.equal(warnings.length, 101);
  assert.equal(warnings.at(-1)?.message, "and 800 more are ignored");
});

const KUEUE = {
  labels: { "kueue.x-k8s.io/max-exec-time-seconds": "3600" },
  annotations: { "kueue.x-k8s.io/job-min-parallelism": "2" },
};

test("Kueue's limits are taken from manifests of other systems, with a note", () => {
  const { spec, notes } = read(kubeflow(KUEUE));
  assert.equal(spec.runPolicy?.maxRuntimeMs, 3_600_000);
  assert.equal(spec.runPolicy?.schedulingPolicy?.minAvailable, 2);
  assert.deepEqual(
    notes.map(({ field, message }) => `${field} ${message}`),
    [
      "metadata.labels.kueue.x-k8s.io/max-exec-time-seconds is taken as runPolicy.maxRuntime: 3600s",
      "metadata.annotations.kueue.x-k8s.io/job-min-parallelism is taken as runPolicy.schedulingPolicy.minAvailable: 2",
    ],
  );
  assert.deepEqual(read(own(KUEUE)).spec, read(own({})).spec);
});

test("Kueue's limits give way to the manifest's own, to annotations and to options", () => {
  const spec = { runPolicy: { schedulingPolicy: { minAvailable: 3 } } };
  assert.equal(read(kubeflow({ ...KUEUE, spec })).spec.runPolicy?.schedulingPolicy?.minAvailable, 3);
  const annotations = { ...KUEUE.annotations, "gangway.dev/max-runtime": "5m" };
  assert.equal(read(kubeflow({ ...KUEUE, annotations })).spec.runPolicy?.maxRuntimeMs, 300_000);
  const settings = new Map([["max-runtime", 60_000]]);
  assert.equal(read(kubeflow({ ...KUEUE, annotations }), { settings }).spec.runPolicy?.maxRuntimeMs, 60_000);
});

test("a wrong limit of Kueue is refused at its place", () => {
  assert.deepEqual(errorsOf(kubeflow({ labels: { "kueue.x-k8s.io/max-exec-time-seconds": "soon" } })), [
    "metadata.labels.kueue.x-k8s.io/max-exec-time-seconds: " +
      'must be a duration with its unit, such as 90s, 10m or 1h30m, not "soon"',
  ]);
});

test("suspend beside Kueue's label for the queue means: run when admitted", () => {
  const labels = { "kueue.x-k8s.io/queue-name": "nlp" };
  const spec = { runPolicy: { suspend: true } };
  const taken = read(kubeflow({ labels, spec }));
  assert.equal(taken.spec.runPolicy?.suspend, false);
  assert.equal(taken.warnings.length, 1);
  assert.equal(taken.warnings[0]?.field, "spec.runPolicy.suspend");
  for (const kept of [
    read(kubeflow({ spec })),
    read(own({ labels, spec })),
    read(kubeflow({ labels, spec }), { suspended: true }),
    read(kubeflow({ labels }), { suspended: true }),
  ]) {
    assert.equal(kept.spec.runPolicy?.suspend, true);
    assert.deepEqual(kept.warnings, []);
  }
});

const MANAGERS = {
  "kubeflow.org/training-operator": true,
  "kueue.x-k8s.io/multikueue": true,
  "example.com/other": false,
};
for (const [managedBy, isTaken] of Object.entries(MANAGERS)) {
  test(`a job that is managed by ${managedBy} is ${isTaken ? "taken" : "refused"}`, () => {
    const doc = kubeflow({ spec: { runPolicy: { managedBy } } });
    if (isTaken) assert.deepEqual(read(doc).spec, { ...read(kubeflow({})).spec, runPolicy: {} });
    else {
      const error = "spec.runPolicy.managedBy: is managed by example.com/other; remove managedBy to run it here";
      assert.deepEqual(errorsOf(doc), [error]);
    }
  });
}
