import assert from "node:assert/strict";
import { test } from "node:test";
import { flavorsOf, gpusOf, gpusRequested, statesOf, troubleOf } from "../../../src/core/admin/nodes/node-standing.ts";
import type { NodeCapacity } from "../../../src/core/plan/model/snapshot.ts";

const GPU = "nvidia.com/gpu";
const node = (more: Partial<NodeCapacity> = {}): NodeCapacity => ({
  name: "n",
  labels: { model: "h100" },
  taints: [],
  unschedulable: false,
  allocatable: { cpu: 8_000, [GPU]: 8_000 },
  free: { cpu: 8_000, [GPU]: 5_000 },
  ...more,
});
const taint = (key: string) => ({ key, value: "", effect: "NoSchedule" });
const notReady = { reason: "KubeletNotReady", message: "no network", sinceMs: 5 };

const standings = {
  "a node that takes pods is ready": { of: node(), states: ["READY"] },
  "a cordoned node": { of: node({ unschedulable: true, trouble: { cordoned: true } }), states: ["CORDONED"] },
  "a node that is not ready and cordoned is in both states": {
    of: node({ unschedulable: true, trouble: { cordoned: true, notReady } }),
    states: ["NOT_READY", "CORDONED"],
  },
  "a node that is being deleted": {
    of: node({ unschedulable: true, trouble: { leaving: true } }),
    states: ["LEAVING"],
  },
  "of an older record, the taint of a cordon tells": {
    of: node({ unschedulable: true, taints: [taint("node.kubernetes.io/unschedulable")] }),
    states: ["CORDONED"],
  },
  "of an older record, the taints of a silent kubelet tell": {
    of: node({ unschedulable: true, taints: [taint("node.kubernetes.io/unreachable"), taint("team")] }),
    states: ["NOT_READY"],
  },
  "of an older record without such a taint, no more is known": {
    of: node({ unschedulable: true }),
    states: ["NOT_READY"],
  },
  "a taint alone does not make a node unschedulable": {
    of: node({ taints: [taint("node.kubernetes.io/unschedulable")] }),
    states: ["READY"],
  },
} as const;
for (const [name, { of, states }] of Object.entries(standings)) {
  test(name, () => assert.deepEqual(statesOf(troubleOf(of)), states));
}

const flavor = (name: string, nodeLabels: Readonly<Record<string, string>>, resource = GPU) => ({
  name,
  resource,
  nodeLabels,
});

test("the resources of flavors count as GPUs, and others that are named so", () => {
  const mig = "nvidia.com/mig-1g.5gb";
  const of = node({
    allocatable: { cpu: 8_000, [GPU]: 8_000, [mig]: 7_000, "rdma/hca": 2_000, "amd.com/gpu": 4_000 },
    free: { cpu: 1_000, [GPU]: 5_000, [mig]: 7_500, "rdma/hca": 0, "amd.com/gpu": -2_000 },
  });
  assert.deepEqual(gpusOf(of, [flavor("gpu/mig", {}, mig)]), [
    { resource: "amd.com/gpu", allocatable: 4, held: 6, free: 0 },
    { resource: GPU, allocatable: 8, held: 3, free: 5 },
    { resource: mig, allocatable: 7, held: 0, free: 7 },
  ]);
  assert.equal(gpusRequested({ cpu: 4_000, [mig]: 2_000, [GPU]: 1_000 }, [flavor("gpu/mig", {}, mig)]), 3);
});

test("a node has the flavors whose labels it carries and whose resource it has", () => {
  const flavors = [
    flavor("gpu/h100", { model: "h100" }),
    flavor("gpu/any", {}),
    flavor("gpu/a100", { model: "a100" }),
    flavor("tpu", { model: "h100" }, "google.com/tpu"),
  ];
  assert.deepEqual(flavorsOf(node(), flavors), ["gpu/any", "gpu/h100"]);
  assert.deepEqual(flavorsOf(node({ allocatable: { cpu: 1 } }), flavors), []);
});
