/** Why a pod is on another node than planned, in the words that users read. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { withRuns } from "../../../../src/core/job/placement/placement.ts";
import { type NamedNode, offPlanText, podPlaces, whyOffPlan } from "../../../../src/core/job/placement/pod-places.ts";

const placement = withRuns(null, [
  { role: "Master", first: 0, count: 1, node: "n0", others: [] },
  { role: "Worker", first: 0, count: 4, node: "n1", others: ["n2"] },
]);

function node(name: string, workers: readonly number[], parts: Partial<NamedNode> = {}): NamedNode {
  return { name, exists: true, trouble: "", members: workers.map((index) => ({ role: "worker", index })), ...parts };
}

test("each planned member has its node, and the one that shows its pod", () => {
  const nodes = [node("n1", [0, 1]), node("n2", [3])];
  assert.deepEqual(podPlaces({ placement, nodes }, { Worker: 5, Master: 1 }), [
    { role: "Master", index: 0, planned: "n0", node: "" },
    { role: "Worker", index: 0, planned: "n1", node: "n1" },
    { role: "Worker", index: 1, planned: "n1", node: "n1" },
    { role: "Worker", index: 2, planned: "n1", node: "" },
    { role: "Worker", index: 3, planned: "n1", node: "n2" },
  ]);
});

const cases: Readonly<Record<string, { nodes: readonly NamedNode[]; node: string; why: string }>> = {
  "it is on that node": { nodes: [node("n1", [])], node: "n1", why: "" },
  "it is on none": { nodes: [node("n1", [])], node: "", why: "" },
  "the planned node is gone": { nodes: [node("n2", [])], node: "n2", why: "planned on n1, which is gone" },
  "the planned node exists only in the words of its pods": {
    nodes: [node("n1", [1], { exists: false })],
    node: "n2",
    why: "planned on n1, which is gone",
  },
  "the planned node takes no pods": {
    nodes: [node("n1", [], { trouble: "cordoned" })],
    node: "n2",
    why: "planned on n1, which is cordoned now",
  },
  "nobody knows more": {
    nodes: [node("n1", [])],
    node: "n2",
    why: "planned on n1; the scheduler chose another node that takes it",
  },
};
for (const [what, { nodes, node: at, why }] of Object.entries(cases)) {
  test(`a pod says why it is elsewhere: ${what}`, () => {
    assert.equal(whyOffPlan({ planned: "n1", node: at }, nodes), why);
  });
}

test("a text counts the pods that are elsewhere, and names three of them", () => {
  const nodes = [node("n1", []), node("n2", [0, 1, 2, 3])];
  const places = podPlaces({ placement, nodes }, { Worker: 4 });
  const why = "planned on n1; the scheduler chose another node that takes it";
  const named = [0, 1, 2].map((index) => `Worker/${index} on n2 (${why})`).join(", ");
  assert.equal(offPlanText(places, nodes), `4 pods are not where they are planned: ${named}, and 1 more`);
  assert.equal(offPlanText(places.slice(3), nodes), `1 pod is not where it is planned: Worker/3 on n2 (${why})`);
  assert.equal(offPlanText(podPlaces({ placement, nodes: [node("n1", [0])] }, { Worker: 4 }), nodes), "");
});
