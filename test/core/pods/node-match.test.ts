import assert from "node:assert/strict";
import { test } from "node:test";
import { type NodeFacts, nodeAllows, type Taint } from "../../../src/core/pods/node-match.ts";
import type { JsonObject } from "../../../src/runtime/json.ts";

const NODE: NodeFacts = {
  name: "node-a",
  labels: { zone: "z1", gpus: "8" },
  taints: [],
  unschedulable: false,
};

const affinity = (required: JsonObject | null): JsonObject => ({
  affinity: { nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: required } },
});
const terms = (...nodeSelectorTerms: readonly JsonObject[]): JsonObject => affinity({ nodeSelectorTerms });
const label = (key: string, operator: string, ...values: readonly string[]): JsonObject => ({ key, operator, values });
const labels = (...matchExpressions: readonly JsonObject[]): JsonObject => terms({ matchExpressions });

const rules: Record<string, { readonly podSpec: JsonObject; readonly allows: boolean }> = {
  "a pod without rules may run anywhere": { podSpec: {}, allows: true },
  "a node selector that the node's labels match": { podSpec: { nodeSelector: { zone: "z1" } }, allows: true },
  "a node selector of another value": { podSpec: { nodeSelector: { zone: "z2" } }, allows: false },
  "a node selector of which one label is missing": { podSpec: { nodeSelector: { zone: "z1", a: "b" } }, allows: false },
  "In with the label's value": { podSpec: labels(label("zone", "In", "z0", "z1")), allows: true },
  "In without the label's value": { podSpec: labels(label("zone", "In", "z0")), allows: false },
  "In for a missing label": { podSpec: labels(label("rack", "In", "r1")), allows: false },
  "NotIn with the label's value": { podSpec: labels(label("zone", "NotIn", "z0", "z1")), allows: false },
  "NotIn without the label's value": { podSpec: labels(label("zone", "NotIn", "z0")), allows: true },
  "NotIn for a missing label": { podSpec: labels(label("rack", "NotIn", "r1")), allows: true },
  "Exists for a label of the node": { podSpec: labels(label("zone", "Exists")), allows: true },
  "Exists for a missing label": { podSpec: labels(label("rack", "Exists")), allows: false },
  "DoesNotExist for a label of the node": { podSpec: labels(label("zone", "DoesNotExist")), allows: false },
  "DoesNotExist for a missing label": { podSpec: labels(label("rack", "DoesNotExist")), allows: true },
  "Gt below the label's number": { podSpec: labels(label("gpus", "Gt", "7")), allows: true },
  "Gt at the label's number": { podSpec: labels(label("gpus", "Gt", "8")), allows: false },
  "Gt above the label's number, which is longer as a text": {
    podSpec: labels(label("gpus", "Gt", "10")),
    allows: false,
  },
  "Gt for a missing label": { podSpec: labels(label("rack", "Gt", "-1")), allows: false },
  "Lt above the label's number, which is longer as a text": {
    podSpec: labels(label("gpus", "Lt", "10")),
    allows: true,
  },
  "Lt at the label's number": { podSpec: labels(label("gpus", "Lt", "8")), allows: false },
  "Lt below the label's number": { podSpec: labels(label("gpus", "Lt", "7")), allows: false },
  "Lt for a missing label": { podSpec: labels(label("rack", "Lt", "9")), allows: false },
  "an operator that Kubernetes does not know": { podSpec: labels(label("zone", "Like", "z1")), allows: false },
  "an expression of another type than an object": {
    podSpec: terms({ matchExpressions: ["zone"] }),
    allows: false,
  },
  "all expressions of one term must hold": {
    podSpec: labels(label("zone", "Exists"), label("rack", "Exists")),
    allows: false,
  },
  "one of several terms is enough": {
    podSpec: terms({ matchExpressions: [label("rack", "Exists")] }, { matchExpressions: [label("zone", "Exists")] }),
    allows: true,
  },
  "an empty term matches nothing": { podSpec: terms({}), allows: false },
  "a list without terms matches nothing": { podSpec: terms(), allows: false },
  "a required affinity of null is none": { podSpec: affinity(null), allows: true },
  "preferences alone decide nothing": {
    podSpec: {
      affinity: { nodeAffinity: { preferredDuringSchedulingIgnoredDuringExecution: [{ weight: 1, preference: {} }] } },
    },
    allows: true,
  },
  "a field with the node's name": {
    podSpec: terms({ matchFields: [label("metadata.name", "In", "node-a")] }),
    allows: true,
  },
  "a field with another node's name": {
    podSpec: terms({ matchFields: [label("metadata.name", "In", "node-b")] }),
    allows: false,
  },
  "a label matches, but a field of the same term does not": {
    podSpec: terms({
      matchExpressions: [label("zone", "Exists")],
      matchFields: [label("metadata.name", "NotIn", "node-a")],
    }),
    allows: false,
  },
  "a label and a field of the same term match": {
    podSpec: terms({
      matchExpressions: [label("zone", "Exists")],
      matchFields: [label("metadata.name", "In", "node-a")],
    }),
    allows: true,
  },
  "the node's name is no label": { podSpec: labels(label("metadata.name", "Exists")), allows: false },
};
for (const [name, { podSpec, allows }] of Object.entries(rules)) {
  test(`${name}: ${allows ? "allowed" : "refused"}`, () => assert.equal(nodeAllows(podSpec, NODE), allows));
}

const GPU: Taint = { key: "gpu", value: "yes", effect: "NoSchedule" };
const tolerated: Record<
  string,
  { readonly tolerations: readonly JsonObject[]; readonly taint?: Taint; allows: boolean }
> = {
  "no toleration": { tolerations: [], allows: false },
  "the same key and value for all effects": { tolerations: [{ key: "gpu", value: "yes" }], allows: true },
  "the same key, value and effect": {
    tolerations: [{ key: "gpu", operator: "Equal", value: "yes", effect: "NoSchedule" }],
    allows: true,
  },
  "another effect": { tolerations: [{ key: "gpu", value: "yes", effect: "NoExecute" }], allows: false },
  "another key": { tolerations: [{ key: "cpu", operator: "Exists" }], allows: false },
  "another value": { tolerations: [{ key: "gpu", value: "no" }], allows: false },
  "any value of the key": { tolerations: [{ key: "gpu", operator: "Exists" }], allows: true },
  "any taint": { tolerations: [{ operator: "Exists" }], allows: true },
  "a value without a key": { tolerations: [{ value: "yes" }], allows: false },
  "no value for a taint without one": {
    tolerations: [{ key: "gpu" }],
    taint: { ...GPU, value: "" },
    allows: true,
  },
  "one of several tolerations": { tolerations: [{ key: "cpu" }, { key: "gpu", value: "yes" }], allows: true },
  "a taint that evicts": { tolerations: [], taint: { ...GPU, effect: "NoExecute" }, allows: false },
  "a taint that only discourages": { tolerations: [], taint: { ...GPU, effect: "PreferNoSchedule" }, allows: true },
};
for (const [name, { tolerations, taint = GPU, allows }] of Object.entries(tolerated)) {
  test(`a tainted node and ${name}: ${allows ? "allowed" : "refused"}`, () => {
    assert.equal(nodeAllows({ tolerations }, { ...NODE, taints: [taint] }), allows);
  });
}

test("every taint must be tolerated", () => {
  const other = { ...GPU, key: "spot" };
  const podSpec = { tolerations: [{ key: "gpu", value: "yes" }] };
  assert.equal(nodeAllows(podSpec, { ...NODE, taints: [GPU, other] }), false);
  assert.equal(nodeAllows(podSpec, { ...NODE, taints: [other, GPU] }), false);
});

test("a cordoned node takes only pods that tolerate its taint", () => {
  const cordoned = { ...NODE, unschedulable: true };
  const key = "node.kubernetes.io/unschedulable";
  assert.equal(nodeAllows({}, cordoned), false);
  assert.equal(nodeAllows({ tolerations: [{ key, operator: "Exists", effect: "NoExecute" }] }, cordoned), false);
  assert.equal(nodeAllows({ tolerations: [{ key, effect: "NoSchedule" }] }, cordoned), true);
});
