import assert from "node:assert/strict";
import { test } from "node:test";
import { FitClasses, nodeClassOf } from "../../../src/core/plan/capacity/fit-classes.ts";
import { podClassOf } from "../../../src/core/plan/model/ask.ts";
import type { NodeCapacity } from "../../../src/core/plan/model/snapshot.ts";
import type { JsonObject } from "../../../src/runtime/json.ts";
import { stateOf } from "../../support/load-snapshot.ts";
import { AT, admission, cluster, job, node, nodes, type SnapshotParts, snapshot } from "./plan-world.ts";

const affinity = (term: JsonObject) => ({
  affinity: { nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: [term] } } },
});

/** Two nodes, of which the second differs in its own way. */
const pair = (parts: Partial<NodeCapacity>) => [node("a", "h100"), node("b", "h100", parts)];
const inZoneB = pair({ labels: { gpu: "h100", zone: "b" } });

const alike: Record<
  string,
  { nodes: readonly NodeCapacity[]; pod?: JsonObject; demanded?: string[]; classes: number }
> = {
  "nodes that differ in nothing": { nodes: pair({}), classes: 1 },
  "nodes in zones that no pod selects": { nodes: inZoneB, classes: 1 },
  "nodes in zones that a node selector tells apart": {
    nodes: inZoneB,
    pod: { nodeSelector: { zone: "b" } },
    classes: 2,
  },
  "nodes in zones that a required affinity tells apart": {
    nodes: inZoneB,
    pod: affinity({ matchExpressions: [{ key: "zone", operator: "In", values: ["b"] }] }),
    classes: 2,
  },
  "nodes whose zone a required affinity does not ask for": {
    nodes: inZoneB,
    pod: affinity({ matchExpressions: [{ key: "gpu", operator: "Exists" }] }),
    classes: 1,
  },
  "nodes in zones that a flavor tells apart": { nodes: inZoneB, demanded: ["zone"], classes: 2 },
  "nodes that no affinity names, but whose names differ": {
    nodes: pair({}),
    pod: affinity({ matchExpressions: [{ key: "gpu", operator: "Exists" }] }),
    classes: 1,
  },
  "nodes that an affinity may name": {
    nodes: pair({}),
    pod: affinity({ matchFields: [{ key: "metadata.name" }] }),
    classes: 2,
  },
  "nodes of which one has a taint": {
    nodes: pair({ taints: [{ key: "k", value: "", effect: "NoSchedule" }] }),
    classes: 2,
  },
  "nodes of which one is cordoned": { nodes: pair({ unschedulable: true }), classes: 2 },
};
for (const [name, { nodes: all, pod = {}, demanded = [], classes }] of Object.entries(alike)) {
  test(`${name} have ${classes === 1 ? "one class" : "a class each"}`, () => {
    const labels = Object.fromEntries(demanded.map((key) => [key, "x"]));
    const podClass = podClassOf({ ...pod, containers: [{ resources: { requests: { "nvidia.com/gpu": 1 } } }] });
    const { rules } = new FitClasses().of(podClass, { "nvidia.com/gpu": labels });
    assert.equal(new Set(all.map((one) => nodeClassOf(rules.keys, one))).size, classes);
  });
}

/** The nodes of a cluster without the room of pods that no node shows yet. */
function nodesLeft(parts: SnapshotParts, name = "east"): readonly NodeCapacity[] {
  const { parts: state } = stateOf(snapshot(parts));
  state.sync(AT.nowMs);
  return state.clusters.get(name)?.free.nodesNow() ?? [];
}

const gpusLeft = (parts: SnapshotParts) => nodesLeft(parts).map(({ free }) => free["nvidia.com/gpu"]);

/** The nodes of eight GPUs that a cluster of three has left beside a gang of two members, of which these are seen. */
function leftBeside(seen: readonly { jobUid?: string; admission?: number; role?: string; index?: number }[]): number {
  const running = job({
    name: "a",
    roles: { Worker: { replicas: 2, gpus: 8 } },
    admissions: [admission({ cluster: "east", members: { Worker: 2 } })],
  });
  const members = seen.map((parts) => ({ jobUid: "uid-a", admission: 1, role: "worker", index: 0, ...parts }));
  const east = cluster("east", { capacity: { nodes: nodes(3, "h100"), seen: members, unbound: [] } });
  return gpusLeft({ admitted: [running], clusters: [east] }).filter((gpus) => gpus === 8000).length;
}

const shown: Record<string, { seen: Parameters<typeof leftBeside>[0]; left: number }> = {
  "no pod": { seen: [], left: 1 },
  "a member's pod": { seen: [{}], left: 2 },
  "the pods of both members": { seen: [{}, { index: 1 }], left: 3 },
  "two pods of one member": { seen: [{}, {}], left: 2 },
  "a pod of another replica type": { seen: [{ role: "master" }], left: 1 },
  "a pod beyond the members": { seen: [{ index: 2 }], left: 1 },
  "a pod of another job": { seen: [{ jobUid: "uid-b" }], left: 1 },
  "a pod of an older admission": { seen: [{ admission: 0 }], left: 1 },
};
for (const [name, { seen, left }] of Object.entries(shown)) {
  test(`of three nodes, a gang of two that shows ${name} leaves ${left}`, () => assert.equal(leftBeside(seen), left));
}

test("only a live admission keeps room for its members, and only in its own cluster", () => {
  for (const parts of [{ state: "ended" as const }, { state: "undone" as const }, { cluster: "west" }]) {
    const one = admission({ cluster: "east", members: { Worker: 1 }, ...parts });
    const admitted = [job({ name: "a", roles: { Worker: { replicas: 1, gpus: 8 } }, admissions: [one] })];
    assert.deepEqual(gpusLeft({ admitted }), [8000, 8000]);
  }
});

test("a member that no node shows yet keeps room only on nodes that its pod allows", () => {
  const pod = { nodeSelector: { zone: "b" }, tolerations: [{ key: "dedicated", operator: "Exists" }] };
  const roles = { Worker: { replicas: 1, gpus: 8, pod } };
  const admissions = [
    admission({ cluster: "east", members: { Worker: 1 }, flavorLabels: { "nvidia.com/gpu": { gpu: "h100" } } }),
  ];
  const taints = [{ key: "dedicated", value: "", effect: "NoSchedule" }];
  const all = [node("a", "h100"), node("b", "h100", { labels: { gpu: "h100", zone: "b" }, taints })];
  const clusters = [cluster("east", { nodes: all })];
  assert.deepEqual(gpusLeft({ admitted: [job({ name: "a", roles, admissions })], clusters }), [8000, 0]);
});
