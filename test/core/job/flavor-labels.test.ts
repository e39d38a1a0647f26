import assert from "node:assert/strict";
import { test } from "node:test";
import { podNodeLabels } from "../../../src/core/job/flavor-labels.ts";
import { reconcile } from "../../../src/core/reconcile/reconcile.ts";
import { arrayAt, objectAt, stringMapAt } from "../../../src/runtime/json.ts";
import { plan } from "../../support/plan.ts";
import { AT, amounts, cluster, flavor, job, node, planGang, queue, snapshot } from "../plan/plan-world.ts";
import { admit, CONFIG, jobOf, START_MS } from "../reconcile/world.ts";

const GPU = "nvidia.com/gpu";
const FLAVOR_LABELS = { [GPU]: { gpu: "h100" }, "rdma/hca": { fabric: "ib" } };

const pods = {
  "a pod that requests both resources": { requests: { [GPU]: 8000, "rdma/hca": 1000 }, labels: ["fabric", "gpu"] },
  "a pod that requests one of them": { requests: { [GPU]: 8000, cpu: 1000 }, labels: ["gpu"] },
  "a pod that requests none of one": { requests: { [GPU]: 0, "rdma/hca": 1000 }, labels: ["fabric"] },
  "a pod that requests neither": { requests: { cpu: 1000 }, labels: [] },
};
for (const [name, { requests, labels }] of Object.entries(pods)) {
  test(`${name} demands ${labels.length === 0 ? "no labels" : `the labels ${labels.join(" and ")}`}`, () => {
    assert.deepEqual(Object.keys(podNodeLabels(requests, FLAVOR_LABELS)).sort(), labels);
  });
}

const LAUNCHER = { containers: [{ name: "mpi", resources: { requests: { cpu: 1 } } }], nodeSelector: { role: "cpu" } };
const mpi = job({
  name: "a",
  roles: { Launcher: { replicas: 1, pod: LAUNCHER }, Worker: { replicas: 2, gpus: 8 } },
  minAvailable: 3,
});
const GPU_NODES = ["x", "y"].map((name) => node(name, "h100", { allocatable: amounts(8), free: amounts(8) }));

test("a launcher without GPUs goes to a node without GPUs, and to no other if it selects such nodes", () => {
  const cpuOnly = node("z", "none", { labels: { role: "cpu" }, allocatable: amounts(0, 4), free: amounts(0, 4) });
  const from = (nodes: typeof GPU_NODES) =>
    snapshot({
      waiting: [planGang(mpi)],
      queues: [queue("q", { h100: 16 })],
      clusters: [cluster("east", { nodes, flavors: [flavor("h100")] })],
    });
  const { admissions } = plan(from([...GPU_NODES, cpuOnly]), AT);
  assert.deepEqual(
    admissions.map(({ members, flavorLabels }) => ({ members, flavorLabels })),
    [{ members: { Launcher: 1, Worker: 2 }, flavorLabels: { [GPU]: { gpu: "h100" } } }],
  );
  const { refusals } = plan(from(GPU_NODES), AT);
  assert.deepEqual(refusals[0]?.clusters[0]?.blocked?.obstacles, [{ kind: "label", key: "role", value: "cpu" }]);
});

test("pods are built with the labels of the flavors whose resources they request", () => {
  const spec = (limits: Record<string, number>) => ({
    template: { spec: { containers: [{ name: "mpi", image: "img", resources: { limits } }] } },
  });
  const replicaSpecs = { Launcher: spec({ cpu: 1 }), Worker: spec({ [GPU]: 8 }) };
  const admitted = admit(jobOf({ kind: "MPIJob", replicaSpecs }), { cluster: "c", nowMs: START_MS, number: 1 });
  const admissions = admitted.admissions.map((one) => ({ ...one, flavorLabels: { [GPU]: { gpu: "h100" } } }));
  const seen = { cluster: "c", pods: [], services: [], configMaps: [] };
  const { actions } = reconcile({ ...admitted, admissions }, [seen], START_MS, CONFIG);
  const affinities = actions.flatMap((action) => {
    if (action.kind !== "createPod") return [];
    const required = objectAt(objectAt(objectAt(action.manifest, "spec"), "affinity"), "nodeAffinity");
    const terms = objectAt(required, "requiredDuringSchedulingIgnoredDuringExecution");
    const labels = stringMapAt(objectAt(action.manifest, "metadata"), "labels");
    return [[labels["training.kubeflow.org/replica-type"], arrayAt(terms, "nodeSelectorTerms")]];
  });
  const ofFlavor = { matchExpressions: [{ key: "gpu", operator: "In", values: ["h100"] }] };
  assert.deepEqual(affinities, [
    ["launcher", []],
    ["worker", [ofFlavor]],
  ]);
});
