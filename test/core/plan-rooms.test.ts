import assert from "node:assert/strict";
import { test } from "node:test";
import { openRooms } from "../../src/core/plan/rooms.ts";
import { selectorKeys, shapesOf } from "../../src/core/plan/shapes.ts";
import type { NodeCapacity } from "../../src/core/plan/snapshot.ts";
import type { JsonObject } from "../../src/runtime/json.ts";
import { admission, amounts, cluster, job, node, nodes, type SnapshotParts, snapshot } from "./plan-world.ts";

const affinity = (term: JsonObject) => ({
  affinity: { nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: [term] } } },
});

/** Two nodes, of which the second differs in its own way. */
const pair = (parts: Partial<NodeCapacity>) => [node("a", "h100"), node("b", "h100", parts)];
const inZoneB = pair({ labels: { gpu: "h100", zone: "b" } });

const alike: Record<string, { nodes: readonly NodeCapacity[]; pod?: JsonObject; demanded?: string[]; shapes: number }> =
  {
    "nodes that differ in nothing": { nodes: pair({}), shapes: 1 },
    "nodes in zones that no pod selects": { nodes: inZoneB, shapes: 1 },
    "nodes in zones that a node selector tells apart": {
      nodes: inZoneB,
      pod: { nodeSelector: { zone: "b" } },
      shapes: 2,
    },
    "nodes in zones that a required affinity tells apart": {
      nodes: inZoneB,
      pod: affinity({ matchExpressions: [{ key: "zone", operator: "In", values: ["b"] }] }),
      shapes: 2,
    },
    "nodes whose zone a required affinity does not ask for": {
      nodes: inZoneB,
      pod: affinity({ matchExpressions: [{ key: "gpu", operator: "Exists" }] }),
      shapes: 1,
    },
    "nodes in zones that a flavor tells apart": { nodes: inZoneB, demanded: ["zone"], shapes: 2 },
    "nodes that no pod names, but whose names differ": {
      nodes: pair({}),
      pod: affinity({ matchExpressions: [{ key: "gpu", operator: "Exists" }] }),
      shapes: 1,
    },
    "nodes that an affinity may name": {
      nodes: pair({}),
      pod: affinity({ matchFields: [{ key: "metadata.name" }] }),
      shapes: 2,
    },
    "nodes of which one has a taint": {
      nodes: pair({ taints: [{ key: "k", value: "", effect: "NoSchedule" }] }),
      shapes: 2,
    },
    "nodes of which one is cordoned": { nodes: pair({ unschedulable: true }), shapes: 2 },
    "nodes of which one has less room": { nodes: pair({ free: amounts(4) }), shapes: 2 },
    "nodes of which one is larger": { nodes: pair({ allocatable: amounts(9) }), shapes: 2 },
  };
for (const [name, { nodes: all, pod = {}, demanded = [], shapes }] of Object.entries(alike)) {
  test(`${name} have ${shapes === 1 ? "one shape" : "a shape each"}`, () => {
    assert.equal(shapesOf(all, selectorKeys([pod], demanded)).length, shapes);
  });
}

/** A job whose pods select nodes by a label. */
const selects = (key: string, name = "a") =>
  job({ name, roles: { Worker: { replicas: 1, pod: { nodeSelector: { [key]: "x" } } } } });
const live = (nodeLabels: Readonly<Record<string, string>>) => admission({ cluster: "west", nodeLabels });

const splits: Record<string, (key: string) => SnapshotParts> = {
  "a waiting job": (key) => ({ waiting: [selects(key)] }),
  "an admitted job": (key) => ({ admitted: [selects(key)] }),
  "an admission": (key) => ({ admitted: [job({ name: "a", roles: {}, admissions: [live({ [key]: "x" })] })] }),
  "a flavor": (key) => ({
    clusters: [
      cluster("east", { nodes: [] }),
      cluster("west", { flavors: [{ name: "f", resource: "r", nodeLabels: { [key]: "x" } }] }),
    ],
  }),
  "a pod of others": (key) => {
    const unbound = [{ podSpec: { nodeSelector: { [key]: "x" } }, requests: {} }];
    return { clusters: [cluster("west", { capacity: { nodes: [], seen: [], unbound } })] };
  },
};
for (const [name, from] of Object.entries(splits)) {
  test(`nodes are told apart by a label that ${name} demands`, () => {
    const parts = from("rack");
    const clusters = (parts.clusters ?? [cluster("west")]).filter((one) => one.name !== "east");
    const east = cluster("east", {
      nodes: [node("a", "h100"), node("b", "h100", { labels: { gpu: "h100", rack: "x" } })],
    });
    const rooms = openRooms(snapshot({ ...parts, clusters: [...clusters, east] }));
    assert.equal(rooms.get("east")?.shapes.length, 2);
  });
}

/** The nodes of eight GPUs that a cluster of three has left beside a gang of two members, of which these are seen. */
function leftBeside(seen: readonly { jobUid?: string; admission?: number; role?: string; index?: number }[]): number {
  const running = job({
    name: "a",
    roles: { Worker: { replicas: 2, gpus: 8 } },
    admissions: [admission({ cluster: "east", members: { Worker: 2 } })],
  });
  const members = seen.map((parts) => ({ jobUid: "uid-a", admission: 1, role: "worker", index: 0, ...parts }));
  const east = cluster("east", { capacity: { nodes: nodes(3, "h100"), seen: members, unbound: [] } });
  const shapes = openRooms(snapshot({ admitted: [running], clusters: [east] })).get("east")?.shapes ?? [];
  return shapes.reduce((sum, { free, count }) => sum + (free["nvidia.com/gpu"] === 8000 ? count : 0), 0);
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
    const [shape, ...more] = openRooms(snapshot({ admitted })).get("east")?.shapes ?? [];
    assert.deepEqual([shape?.count, shape?.free["nvidia.com/gpu"], more], [2, 8000, []]);
  }
});

test("a member that no node shows yet keeps room only on nodes that its pod allows", () => {
  const pod = { nodeSelector: { zone: "b" }, tolerations: [{ key: "dedicated", operator: "Exists" }] };
  const roles = { Worker: { replicas: 1, gpus: 8, pod } };
  const admissions = [admission({ cluster: "east", members: { Worker: 1 }, nodeLabels: { gpu: "h100" } })];
  const taints = [{ key: "dedicated", value: "", effect: "NoSchedule" }];
  const all = [node("a", "h100"), node("b", "h100", { labels: { gpu: "h100", zone: "b" }, taints })];
  const clusters = [cluster("east", { nodes: all })];
  const { shapes } = openRooms(snapshot({ admitted: [job({ name: "a", roles, admissions })], clusters })).get("east")!;
  const free = Object.fromEntries(shapes.map((shape) => [shape.node.name, shape.free["nvidia.com/gpu"]]));
  assert.deepEqual(free, { a: 8000, b: 0 });
});
