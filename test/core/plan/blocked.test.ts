import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import type { BlockedPod, PodObstacle } from "../../../src/core/plan/model/blocked-pod.ts";
import type { NodeCapacity } from "../../../src/core/plan/model/snapshot.ts";
import type { JsonObject } from "../../../src/runtime/json.ts";
import { plan } from "../../support/plan.ts";
import { AT, amounts, cluster, flavor, job, node, nodes, queue, snapshot } from "./plan-world.ts";

const GI = 2 ** 30 * 1000;
const GPU = "nvidia.com/gpu";

/** A pod spec whose container requests just this. */
const requesting = (requests: JsonObject, rest: JsonObject = {}): JsonObject => ({
  containers: [{ name: "main", image: "i", resources: { requests } }],
  ...rest,
});
const gpuPod = (rest: JsonObject = {}) => requesting({ [GPU]: 8, memory: "64Gi" }, rest);
const required = (...matchExpressions: readonly JsonObject[]): JsonObject => ({
  affinity: {
    nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: [{ matchExpressions }] } },
  },
});

/** The refusal of one cluster, `east`, for a job of these workers. */
function refusedBy(all: readonly NodeCapacity[], pod: JsonObject, parts: { replicas?: number; roles?: object } = {}) {
  const roles = { Worker: { replicas: parts.replicas ?? 1, pod }, ...parts.roles };
  const from = snapshot({
    waiting: [job({ name: "a", roles })],
    clusters: [cluster("east", { nodes: all, flavors: [flavor("h100")] })],
    queues: [queue("q", { h100: 999 })],
  });
  const [refusal] = plan(from, AT).refusals;
  return refusal?.clusters[0];
}

const dedicated = { key: "dedicated", value: "infra", effect: "NoSchedule" };
const cpuNode = (name: string, parts: Partial<NodeCapacity> = {}): NodeCapacity => {
  const all = { cpu: 64_000, memory: 4096 * GI, pods: 110_000 };
  return node(name, "none", { labels: {}, allocatable: all, free: all, ...parts });
};

const never = "no node of cluster east can ever take a Worker pod: ";
const cases: Readonly<
  Record<
    string,
    {
      readonly nodes: readonly NodeCapacity[];
      readonly pod?: JsonObject;
      readonly replicas?: number;
      readonly roles?: object;
      readonly says: string;
    }
  >
> = {
  "memory is missing, and the GPUs that are free are not named": {
    nodes: [
      cpuNode("cpu-1"),
      ...nodes(2, "h100"),
      node("h100-big", "h100", { allocatable: { ...amounts(8), memory: 1400.5 * GI } }),
    ],
    pod: requesting({ [GPU]: 8, memory: "2Ti" }),
    says: `${never}node h100-big lacks memory (needs 2Ti, has 1.36Ti allocatable)`,
  },
  "no node carries the label of the flavor": {
    nodes: [...nodes(12, "a100"), cpuNode("cpu-1")],
    says: `${never}12 nodes lack label gpu=h100 of flavor gpu/h100`,
  },
  "no node carries the label that the pod selects": {
    nodes: nodes(3, "h100"),
    pod: gpuPod({ nodeSelector: { disk: "nvme" } }),
    says: `${never}3 nodes lack label disk=nvme`,
  },
  "a label that the flavor and the pod require is named once": {
    nodes: nodes(3, "a100"),
    pod: gpuPod({ nodeSelector: { gpu: "h100" } }),
    says: `${never}3 nodes lack label gpu=h100 of flavor gpu/h100`,
  },
  "a taint is not tolerated": {
    nodes: [node("h100-0", "h100", { taints: [dedicated] })],
    says: `${never}node h100-0 has taint dedicated=infra:NoSchedule, not tolerated`,
  },
  "a taint without a value": {
    nodes: nodes(2, "h100", { taints: [{ key: "spot", value: "", effect: "NoExecute" }] }),
    says: `${never}2 nodes have taint spot:NoExecute, not tolerated`,
  },
  "a node affinity is not met": {
    nodes: [node("h100-0", "h100")],
    pod: gpuPod(required({ key: "zone", operator: "In", values: ["b", "c"] })),
    says: `${never}node h100-0 does not meet node affinity zone in (b, c)`,
  },
  "a node affinity that no node can meet": {
    nodes: nodes(2, "h100"),
    pod: gpuPod(required()),
    says: `${never}2 nodes do not meet a node affinity that no node can meet`,
  },
  "of several terms of an affinity, the nearest counts": {
    nodes: nodes(1, "h100"),
    pod: gpuPod({
      affinity: {
        nodeAffinity: {
          requiredDuringSchedulingIgnoredDuringExecution: {
            nodeSelectorTerms: [
              {
                matchExpressions: [
                  { key: "a", operator: "Exists" },
                  { key: "b", operator: "Exists" },
                ],
              },
              { matchExpressions: [{ key: "zone", operator: "NotIn", values: ["a"] }] },
            ],
          },
        },
      },
    }),
    says: `${never}node h100-0 does not meet node affinity zone not in (a)`,
  },
  "a resource that no node has": {
    nodes: [...nodes(2, "h100"), cpuNode("cpu-1")],
    pod: requesting({ "nvidia.co/gpu": 8 }),
    says: `${never}3 nodes lack nvidia.co/gpu (needs 8, has none)`,
  },
  "several obstacles on the best node": {
    nodes: [node("h100-0", "h100", { taints: [dedicated] })],
    pod: requesting({ [GPU]: 9, cpu: "100500m" }),
    says:
      `${never}node h100-0 lacks nvidia.com/gpu (needs 9, has 8 allocatable) and ` +
      "cpu (needs 100.5, has 64 allocatable), and has taint dedicated=infra:NoSchedule, not tolerated",
  },
  "more obstacles than a sentence can name": {
    nodes: [node("h100-0", "h100", { taints: [dedicated] })],
    pod: gpuPod({ nodeSelector: { a: "1", b: "2", c: "3" } }),
    says: `${never}node h100-0 lacks label a=1 and label b=2 and label c=3, and 1 more in the way`,
  },
  "a cluster without nodes": {
    nodes: [],
    says: "needs 1 pod of 8 nvidia.com/gpu (gpu/h100); cluster east has no nodes",
  },
  "a replica type that can never run comes before one that only has too many pods": {
    nodes: nodes(2, "h100"),
    replicas: 3,
    roles: { Evaluator: { replicas: 1, pod: requesting({ cpu: 500 }) } },
    says: "no node of cluster east can ever take an Evaluator pod: 2 nodes lack cpu (needs 500, has 64 allocatable)",
  },
  "a gang with too many pods": {
    nodes: [...nodes(2, "h100"), cpuNode("cpu-1")],
    replicas: 3,
    says:
      "needs 3 pods of 8 nvidia.com/gpu (gpu/h100); east takes 2 even when it is empty; for the next Worker pod, " +
      "2 nodes lack nvidia.com/gpu (needs 8, has 0 of 8 free)",
  },
  "a gang that waits for room on the node that lacks least": {
    nodes: [
      node("h100-0", "h100", { free: amounts(2) }),
      node("h100-1", "h100", { free: amounts(6) }),
      node("h100-2", "h100", { free: { ...amounts(6), memory: 0 } }),
    ],
    says:
      "needs 1 pod of 8 nvidia.com/gpu (gpu/h100); 0 fit now on east; for the first Worker pod, " +
      "node h100-1 lacks nvidia.com/gpu (needs 8, has 6 of 8 free)",
  },
  "a gang that waits is never told to take a node that could not run it": {
    nodes: [
      node("h100-0", "h100", { free: { ...amounts(2), cpu: 0, memory: 0 } }),
      node("h100-1", "h100", { taints: [dedicated] }),
    ],
    pod: requesting({ [GPU]: 8, cpu: 1, memory: "1Gi" }),
    says:
      "needs 1 pod of 8 nvidia.com/gpu (gpu/h100); 0 fit now on east; for the first Worker pod, node h100-0 lacks " +
      "nvidia.com/gpu (needs 8, has 2 of 8 free) and cpu (needs 1, has 0 of 64 free) and memory (needs 1Gi, has 0 of " +
      "256Gi free)",
  },
  "a gang that waits for a cordoned node": {
    nodes: [
      node("h100-0", "h100", {
        unschedulable: true,
        taints: [{ key: "node.kubernetes.io/unschedulable", value: "", effect: "NoSchedule" }],
      }),
    ],
    says:
      "needs 1 pod of 8 nvidia.com/gpu (gpu/h100); 0 fit now on east; for the first Worker pod, " +
      "node h100-0 takes no new pods now",
  },
};

for (const [name, { nodes: all, pod = gpuPod(), says, ...parts }] of Object.entries(cases)) {
  test(`a refusal names the obstacle: ${name}`, () => assert.equal(refusedBy(all, pod, parts)?.message, says));
}

test("a refusal has the obstacle as structure", () => {
  const found = refusedBy(nodes(2, "h100", { free: amounts(3), taints: [dedicated] }), {
    ...gpuPod({ tolerations: [{ operator: "Exists" }] }),
  });
  assert.deepEqual([found?.reason, found?.need, found?.have], ["NoCapacity", 1, 0]);
  assert.deepEqual(found?.blocked, {
    role: "Worker",
    placed: 0,
    never: false,
    node: "h100-0",
    nodes: 2,
    obstacles: [{ kind: "resource", resource: GPU, need: 8000, available: 3000, allocatable: 8000 }],
  });
});

test("gangs with the same request and other replica types each read their own", () => {
  const pod = requesting({ cpu: 999 });
  const from = snapshot({
    waiting: ["Worker", "Chief"].map((role) => job({ name: role, roles: { [role]: { replicas: 1, pod } } })),
  });
  const roles = plan(from, AT).refusals.map(({ clusters }) => clusters[0]?.blocked?.role);
  assert.deepEqual(roles.sort(), ["Chief", "Worker"]);
});

test("of clusters that all refuse, the one with the fewest obstacles gives the message", () => {
  const clusters = [
    cluster("far", { nodes: nodes(1, "h100", { taints: [dedicated], labels: { gpu: "h100", disk: "no" } }) }),
    cluster("near", { nodes: nodes(1, "h100") }),
  ];
  const waiting = [
    job({ name: "a", roles: { Worker: { replicas: 1, pod: gpuPod({ nodeSelector: { disk: "yes" } }) } } }),
  ];
  const [refusal] = plan(snapshot({ waiting, clusters }), AT).refusals;
  assert.equal(
    refusal?.message,
    "no node of cluster near can ever take a Worker pod: node h100-0 lacks label disk=yes",
  );
});

/** The node without one obstacle, and nothing else changed. */
function without(obstacle: PodObstacle, at: NodeCapacity): NodeCapacity {
  switch (obstacle.kind) {
    case "resource": {
      const { resource, need } = obstacle;
      const allocatable = Math.max(need, at.allocatable[resource] ?? 0);
      return {
        ...at,
        allocatable: { ...at.allocatable, [resource]: allocatable },
        free: { ...at.free, [resource]: need },
      };
    }
    case "label":
      return { ...at, labels: { ...at.labels, [obstacle.key]: obstacle.value } };
    case "taint":
      return { ...at, taints: at.taints.filter(({ key }) => key !== obstacle.key) };
    case "unschedulable":
      return { ...at, unschedulable: false };
    case "affinity": {
      const { [obstacle.key]: _, ...labels } = at.labels;
      const wanted = obstacle.operator === "In" ? { [obstacle.key]: obstacle.values[0] ?? "" } : {};
      return { ...at, labels: { ...labels, ...wanted } };
    }
  }
}

const someNode = fc.record({
  gpus: fc.nat(8),
  used: fc.nat(8),
  memory: fc.integer({ min: 1, max: 4 }),
  disk: fc.constantFrom("nvme", "hdd"),
  zone: fc.constantFrom("a", "b", "c"),
  tainted: fc.boolean(),
  spot: fc.boolean(),
  cordoned: fc.boolean(),
  model: fc.constantFrom("h100", "h100", "a100"),
});
const someNodes = fc.array(someNode, { minLength: 1, maxLength: 5 }).map((list) =>
  list.map(({ gpus, used, memory, disk, zone, tainted, spot, cordoned, model }, at) => {
    const allocatable = { [GPU]: gpus * 1000, cpu: 64_000, memory: memory * GI, pods: 110_000 };
    return node(`node-${at}`, model, {
      labels: { gpu: model, disk, zone },
      taints: [...(tainted ? [dedicated] : []), ...(spot ? [{ ...dedicated, key: "spot" }] : [])],
      unschedulable: cordoned,
      allocatable,
      free: { ...allocatable, [GPU]: Math.max(0, gpus - used) * 1000 },
    });
  }),
);
const somePod = fc
  .record({
    gpus: fc.integer({ min: 1, max: 10 }),
    memory: fc.integer({ min: 1, max: 5 }),
    nodeSelector: fc.constantFrom({}, {}, { disk: "nvme" }),
    affinity: fc.constantFrom(
      {},
      {},
      required({ key: "zone", operator: "In", values: ["b", "c"] }),
      required({ key: "zone", operator: "NotIn", values: ["a"] }),
    ),
    tolerations: fc.constantFrom([], [{ key: "spot", operator: "Exists" }]),
  })
  .map(({ gpus, memory, nodeSelector, affinity, tolerations }) =>
    requesting({ [GPU]: gpus, memory: `${memory}Gi` }, { nodeSelector, tolerations, ...affinity }),
  );

test("a named obstacle is real: without it, and it alone, the node takes the pod", () => {
  const kinds = new Map<string, number>();
  fc.assert(
    fc.property(someNodes, somePod, (all, pod) => {
      const blocked: BlockedPod | null | undefined = refusedBy(all, pod)?.blocked;
      const [only] = blocked?.obstacles ?? [];
      fc.pre(blocked?.obstacles.length === 1 && only !== undefined);
      kinds.set(only.kind, (kinds.get(only.kind) ?? 0) + 1);
      const at = all.find(({ name }) => name === blocked.node)!;
      // A pod that could never run is judged on an empty cluster.
      const judged = blocked.never ? { ...at, unschedulable: false, free: at.allocatable } : at;
      assert.notEqual(refusedBy([judged], pod), undefined);
      assert.equal(refusedBy([without(only, judged)], pod), undefined);
    }),
    { numRuns: 1000 },
  );
  assert.deepEqual([...kinds.keys()].sort(), ["affinity", "label", "resource", "taint", "unschedulable"]);
});

test("the nodes that a refusal counts have just the obstacles that it names", () => {
  fc.assert(
    fc.property(someNodes, somePod, (all, pod) => {
      const blocked = refusedBy(all, pod)?.blocked;
      fc.pre(blocked?.never === true);
      const alike = all.filter((one) => {
        const alone = refusedBy([one], pod)?.blocked;
        return alone?.never === true && JSON.stringify(alone.obstacles) === JSON.stringify(blocked.obstacles);
      });
      assert.equal(alike.length, blocked.nodes);
      for (const one of all)
        assert.ok((refusedBy([one], pod)?.blocked?.obstacles.length ?? 0) >= blocked.obstacles.length);
    }),
    { numRuns: 300 },
  );
});
