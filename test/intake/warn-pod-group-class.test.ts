import assert from "node:assert/strict";
import { test } from "node:test";
import type { SentSpec } from "../../src/core/job/request/sent.ts";
import { warnPodGroupClass } from "../../src/intake/warn-pod-group-class.ts";

const METADATA = { namespace: "team", name: "a", generateName: "", labels: {}, annotations: {} };
const WARNING = {
  field: "job.spec.run_policy.scheduling_policy.priority_class",
  message: "gives the job no priority: high is the class of its PodGroup, not its priority class",
};

const withClass = { runPolicy: { schedulingPolicy: { priorityClass: "high" } } };
const cases: Record<string, readonly [Partial<SentSpec>, boolean]> = {
  "a class for the PodGroup alone": [withClass, true],
  "beside a priority": [{ ...withClass, priority: 0 }, false],
  "beside a class of the job": [{ ...withClass, priorityClassName: "production" }, false],
  "an empty class": [{ runPolicy: { schedulingPolicy: { priorityClass: "" } } }, false],
  "no policy": [{}, false],
};
for (const [name, [spec, warns]] of Object.entries(cases)) {
  test(`the class of a PodGroup gives a job no priority: ${name}`, () => {
    const sent = { ...METADATA, spec: { kind: "PyTorchJob", replicaSpecs: {}, ...spec } };
    assert.deepEqual(warnPodGroupClass(sent), warns ? [WARNING] : []);
  });
}
