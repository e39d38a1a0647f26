import assert from "node:assert/strict";
import { test } from "node:test";
import { checkResources } from "../../src/intake/check-resources.ts";
import type { JsonObject } from "../../src/runtime/json.ts";
import { NO_CLASSES } from "../support/no-classes.ts";

/** The warnings about workers with these containers, and the resources that the nodes were asked for. */
async function warningsOf(podSpec: JsonObject, known: readonly string[] | null, tooLarge: readonly string[] = []) {
  const asked: (readonly string[])[] = [];
  const facts = {
    namespace: null,
    queueExists: async () => true,
    priorityClasses: NO_CLASSES,
    nodeResources: async (wanted: readonly string[]) => {
      asked.push(wanted);
      return known === null ? null : new Set(known);
    },
  };
  const spec = { kind: "Job", replicaSpecs: { Worker: { template: { spec: podSpec } } } };
  const sent = { namespace: "n", name: "j", generateName: "", labels: {}, annotations: {}, spec };
  return {
    warnings: await checkResources(sent, facts, { gpuResourceName: "nvidia.com/gpu", tooLarge: new Set(tooLarge) }),
    asked,
  };
}

const NODES = ["cpu", "memory", "nvidia.com/gpu", "rdma/hca", "pods"];
const gpu = (name: string, amount: string | number = 1) => ({
  name: "main",
  resources: { limits: { [name]: amount } },
});
const at = "job.spec.replica_specs[Worker].template.spec";

test("a resource that no node has is a warning, with what was probably meant", async () => {
  const { warnings } = await warningsOf({ containers: [gpu("nvidia.co/gpu", 8)] }, NODES);
  assert.deepEqual(warnings, [
    {
      field: `${at}.containers[0].resources.limits["nvidia.co/gpu"]`,
      message: "no node of any cluster has nvidia.co/gpu; did you mean nvidia.com/gpu?",
    },
  ]);
});

test("a resource is named once for a container, and for each container", async () => {
  const both = { name: "a", resources: { limits: { "x/y": 1 }, requests: { "x/y": 1 } } };
  const asked = { name: "b", resources: { requests: { "hugepages-2Mi": "64Mi" } } };
  const { warnings } = await warningsOf({ containers: [both], initContainers: [asked, gpu("x/y")] }, NODES);
  assert.deepEqual(
    warnings.map(({ field }) => field),
    [
      `${at}.containers[0].resources.limits["x/y"]`,
      `${at}.initContainers[0].resources.requests["hugepages-2Mi"]`,
      `${at}.initContainers[1].resources.limits["x/y"]`,
    ],
  );
});

test("resources that nodes have, amounts of zero and what every node has are no warning", async () => {
  const plain = { name: "p", resources: { limits: { cpu: 1, memory: "1Gi", "ephemeral-storage": "1Gi" } } };
  const { warnings, asked } = await warningsOf({ containers: [plain, gpu("rdma/hca"), gpu("x/y", 0)] }, NODES);
  assert.deepEqual([warnings, asked], [[], [["rdma/hca"]]]);
});

test("the nodes are not read for a job that requests nothing special", async () => {
  const { warnings, asked } = await warningsOf({ containers: [{ name: "main" }, gpu("cpu")] }, []);
  assert.deepEqual([warnings, asked], [[], []]);
});

test("nothing is said while it is not known what nodes have", async () => {
  const { warnings, asked } = await warningsOf({ containers: [gpu("nvidia.co/gpu")] }, null);
  assert.deepEqual([warnings, asked.length], [[], 1]);
});

test("a template of any other shape is no reason to fail", async () => {
  for (const containers of ["x", [null], [{ resources: "x" }], [{ resources: { limits: [1] } }]] as const) {
    assert.deepEqual((await warningsOf({ containers } as unknown as JsonObject, NODES)).warnings, []);
  }
});

test("names that the platform replaces are asked for as what containers get", async () => {
  const { warnings, asked } = await warningsOf({ containers: [gpu("gpu"), gpu("storage", "1Ti")] }, NODES);
  assert.deepEqual([warnings, asked], [[], [["nvidia.com/gpu"]]]);
});

test("a template that is too large is not read", async () => {
  const { warnings, asked } = await warningsOf({ containers: [gpu("nvidia.co/gpu", 8)] }, NODES, ["Worker"]);
  assert.deepEqual([warnings, asked], [[], []]);
});
