import assert from "node:assert/strict";
import { test } from "node:test";
import { flavorNodes, flavorProblem } from "../../../src/core/admin/flavor-nodes.ts";
import { amounts, flavor, node, nodes } from "../plan/plan-world.ts";

const all = [
  ...nodes(2, "h100", { free: amounts(3) }),
  node("old", "h100", { unschedulable: true }),
  ...nodes(4, "a100"),
  node("cpu", "none", { labels: { disk: "nvme" }, allocatable: { cpu: 8000 }, free: { cpu: 8000 } }),
];
const h100 = flavor("h100");

test("the amounts of a flavor are those of its own schedulable nodes", () => {
  assert.deepEqual(flavorNodes(h100, all), { nodes: 3, allocatable: 16_000, free: 6_000 });
  assert.deepEqual(flavorNodes({ ...h100, nodeLabels: {} }, all), { nodes: 8, allocatable: 48_000, free: 38_000 });
  assert.deepEqual(flavorNodes(flavor("b200"), all), { nodes: 0, allocatable: 0, free: 0 });
});

const problems: Readonly<Record<string, { readonly flavor: typeof h100; readonly says: string | null }>> = {
  "a flavor with nodes": { flavor: h100, says: null },
  "a flavor without labels": { flavor: { ...h100, nodeLabels: {} as never }, says: null },
  "a value that no node carries": {
    flavor: flavor("H100"),
    says: "no node carries label gpu=H100; there is gpu=a100, h100",
  },
  "a label that no node has": {
    flavor: { ...h100, nodeLabels: { gpus: "h100" } as never },
    says: "no node carries label gpus=h100; did you mean the label gpu?",
  },
  "a label that is like none": {
    flavor: { ...h100, nodeLabels: { accelerator: "h100" } as never },
    says: "no node carries label accelerator=h100",
  },
  "labels that no node carries together": {
    flavor: { ...h100, nodeLabels: { gpu: "h100", disk: "nvme" } as never },
    says: "no node carries label gpu=h100 and disk=nvme",
  },
  "a resource that no node has": {
    flavor: { ...h100, resource: "nvidia.co/gpu" },
    says: "no node with label gpu=h100 has nvidia.co/gpu; did you mean nvidia.com/gpu?",
  },
  "a resource that no node has, for a flavor without labels": {
    flavor: { ...h100, resource: "amd.com/gpu", nodeLabels: {} as never },
    says: "no node has amd.com/gpu",
  },
  "a resource that the nodes with the label do not have": {
    flavor: { ...h100, nodeLabels: { disk: "nvme" } as never },
    says: "no node with label disk=nvme has nvidia.com/gpu",
  },
};
for (const [name, { flavor: one, says }] of Object.entries(problems)) {
  test(`the problem of ${name}`, () => assert.equal(flavorProblem(one, all), says));
}

test("many values are not all named, and a cluster without nodes is told so", () => {
  const many = ["a", "b", "c", "d"].map((model) => node(model, model));
  assert.equal(flavorProblem(h100, many), "no node carries label gpu=h100; there is gpu=a, b, c, …");
  assert.equal(flavorProblem(h100, []), "the cluster has no nodes");
});
