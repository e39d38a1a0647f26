import assert from "node:assert/strict";
import { test } from "node:test";
import { compareDemand } from "../../../../src/core/plan/capacity/fit.ts";
import { FitClasses } from "../../../../src/core/plan/capacity/fit-classes.ts";
import { FreeCapacity } from "../../../../src/core/plan/capacity/free-capacity.ts";
import { placeAll, placeInOrder } from "../../../../src/core/plan/capacity/place-all.ts";
import { groupsOf } from "../../../../src/core/plan/fit/requests.ts";
import type { PodClass } from "../../../../src/core/plan/model/ask.ts";
import type { MemberGroup } from "../../../../src/core/plan/model/gang.ts";
import type { NodeCapacity } from "../../../../src/core/plan/model/snapshot.ts";
import { shapeOf } from "../../../../src/core/plan/queues/ask-shape.ts";
import type { Resources } from "../../../../src/core/pods/resources.ts";
import { amounts, type JobParts, job, node, planGang } from "../plan-world.ts";

function roomOf(nodes: readonly NodeCapacity[]): FreeCapacity {
  const free = new FreeCapacity(new FitClasses());
  for (const one of nodes) free.setNode(one.name, one);
  free.reset();
  return free;
}

/** How many pods of these roles are placed on these nodes together. */
function placed(roles: JobParts["roles"], nodes: readonly NodeCapacity[]): number {
  const { ask } = planGang(job({ name: "a", roles }));
  const free = roomOf(nodes);
  return placeAll(free, groupsOf(shapeOf("", ask).all, { free }, {})).placed;
}

const zone = (name: string, gpus: number) =>
  node(name, "h100", { free: amounts(gpus), labels: { gpu: "h100", zone: name } });

test("a small group goes before a larger one that would take the only nodes it may use", () => {
  // Best fit puts a Worker on the tightest node, in zone b. But Masters may run only there. Too many pods to search.
  const roles = {
    Worker: { replicas: 18, gpus: 2 },
    Master: { replicas: 2, gpus: 1, pod: { nodeSelector: { zone: "b" } } },
  };
  assert.equal(placed(roles, [zone("a", 36), zone("b", 2)]), 20);
});

test("a small gang is placed by search if no group can go first", () => {
  // The Master alone would take x, the first of two equal nodes, but both Workers only fit there: y has one processor.
  // The Workers alone would take one place on each.
  const roles = { Worker: { replicas: 2, gpus: 1, cpu: 1 }, Master: { replicas: 1, gpus: 2 } };
  const nodes = [node("x", "h100", { free: amounts(2, 4) }), node("y", "h100", { free: amounts(2, 1) })];
  assert.equal(placed(roles, nodes), 3);
});

test("a gang is placed by search up to a number of pods only, since the time for it grows with them", () => {
  const others = (replicas: number) => ({ replicas, cpu: 1, pod: { nodeSelector: { zone: "b" } } });
  const roles = { Worker: { replicas: 2, gpus: 1, cpu: 1 }, Master: { replicas: 1, gpus: 2 } };
  const nodes = [
    node("x", "h100", { free: amounts(2, 4) }),
    node("y", "h100", { free: amounts(2, 1) }),
    node("z", "h100", { labels: { gpu: "h100", zone: "b" }, free: amounts(0, 64) }),
  ];
  assert.equal(placed({ ...roles, PS: others(13) }, nodes), 16);
  assert.ok(placed({ ...roles, PS: others(14) }, nodes) < 17);
});

test("a search ends even if nearly every way has to be tried", () => {
  // The pods need more processors than all nodes have together. But only the last ones do not fit.
  const sizes = [...Array.from({ length: 14 }, (_, at) => 54 + 2 * at), 62];
  const roles = Object.fromEntries(sizes.map((cpu, at) => [`R${at}`, { replicas: 1, cpu }]));
  const nodes = [195, 197, 199, 201, 203].map((cpu) => node(`n${cpu}`, "h100", { free: amounts(0, cpu) }));
  assert.ok(placed(roles, nodes) < 15);
});

const GPU = "nvidia.com/gpu";

/** A node with so much free. */
function nodeWith(name: string, free: Resources, gpu = "h100"): NodeCapacity {
  return node(name, gpu, { labels: { gpu }, allocatable: { cpu: 10, [GPU]: 8 }, free });
}

/** So many nodes that are alike. */
const alike = (count: number, free: Resources, gpu = "h100") =>
  Array.from({ length: count }, (_, at) => nodeWith(`${gpu}-${Object.values(free)}-${at}`, free, gpu));

const podsWith = (requests: Resources): PodClass => ({ requests, scheduling: {} });

/** The class of pods in a room, on nodes of one GPU model if one is named. */
const fitOf = (free: FreeCapacity, requests: Resources, labels = {}) =>
  free.fits.of(podsWith(requests), Object.fromEntries(Object.keys(requests).map((name) => [name, labels])));

const group = (requests: Resources, role = "Worker"): MemberGroup => ({ role, scheduling: {}, requests, count: 1 });

/** What the nodes have free of processors, the fullest first. */
const freeOf = (freeNow: FreeCapacity) =>
  freeNow
    .nodesNow()
    .map(({ free }) => free["cpu"] ?? 0)
    .sort((a, b) => a - b);

const fills: Record<string, { nodes: number; pods: number; taken: number; left: readonly number[] }> = {
  "no pod leaves the nodes as they are": { nodes: 3, pods: 0, taken: 0, left: [10, 10, 10] },
  "one pod goes on one node": { nodes: 3, pods: 1, taken: 1, left: [6, 10, 10] },
  "one node is filled exactly": { nodes: 3, pods: 2, taken: 2, left: [2, 10, 10] },
  "one node is filled before the next": { nodes: 3, pods: 3, taken: 3, left: [2, 6, 10] },
  "the last node is filled in part": { nodes: 2, pods: 3, taken: 3, left: [2, 6] },
  "all nodes are filled exactly": { nodes: 2, pods: 4, taken: 4, left: [2, 2] },
  "more pods than fit are left over": { nodes: 2, pods: 9, taken: 4, left: [2, 2] },
};
for (const [name, { nodes: count, pods, taken, left }] of Object.entries(fills)) {
  test(`nodes with 10 processors take pods with 4: ${name}`, () => {
    const free = roomOf(alike(count, { cpu: 10 }));
    const { mark } = free;
    assert.equal(free.place(fitOf(free, { cpu: 4 }), pods), taken);
    assert.deepEqual(freeOf(free), left);
    free.undo(mark);
    assert.deepEqual(
      freeOf(free),
      alike(count, {}).map(() => 10),
    );
  });
}

test("a resource that pods request none of does not keep them from a node without it", () => {
  const fitting = (free: Resources, requests: Resources) => {
    const freeNow = roomOf([nodeWith("n", free)]);
    return freeNow.fitting(fitOf(freeNow, requests), 9);
  };
  assert.equal(fitting({ cpu: 10 }, { cpu: 4, [GPU]: 0 }), 2);
  assert.equal(fitting({ cpu: 10 }, { cpu: 4, [GPU]: 1 }), 0);
  assert.equal(fitting({ cpu: 10, [GPU]: -1 }, { [GPU]: 1 }), 0, "a node may be overcommitted");
});

const tightest: Record<string, { nodes: readonly NodeCapacity[]; requests: Resources; order: readonly string[] }> = {
  "nodes with less of the resource first": {
    nodes: [nodeWith("a", { cpu: 9 }), nodeWith("b", { cpu: 5 }), nodeWith("c", { cpu: 7 })],
    requests: { cpu: 4 },
    order: ["b", "c", "a"],
  },
  "nodes that are alike by name": {
    nodes: [nodeWith("b", { cpu: 5 }), nodeWith("a", { cpu: 5 })],
    requests: { cpu: 4 },
    order: ["a", "b"],
  },
  "nodes whose devices would stay idle last": {
    nodes: [
      nodeWith("a", { cpu: 5, [GPU]: 8 }),
      nodeWith("b", { cpu: 9, [GPU]: 0 }),
      nodeWith("c", { cpu: 9, [GPU]: 1 }),
    ],
    requests: { cpu: 4 },
    order: ["b", "c", "a"],
  },
  "devices decide before processors": {
    nodes: [nodeWith("a", { cpu: 5, [GPU]: 8 }), nodeWith("b", { cpu: 9, [GPU]: 2 })],
    requests: { cpu: 4, [GPU]: 1 },
    order: ["b", "a"],
  },
  "nodes whose other resources would stay idle no later": {
    nodes: [nodeWith("a", { cpu: 5, memory: 9 }), nodeWith("b", { cpu: 9, memory: 1 })],
    requests: { cpu: 4 },
    order: ["a", "b"],
  },
  "nodes with devices last if they request none of them": {
    nodes: [nodeWith("a", { cpu: 5, [GPU]: 5, "x/y": 0 }), nodeWith("b", { cpu: 9, [GPU]: 1, "x/y": 2 })],
    requests: { cpu: 4, [GPU]: 0 },
    order: ["b", "a"],
  },
  "only nodes that have room": {
    nodes: [nodeWith("a", { cpu: 3 }), nodeWith("b", { cpu: 4 })],
    requests: { cpu: 4 },
    order: ["b"],
  },
  "only nodes with the labels": {
    nodes: [nodeWith("a", { cpu: 9 }, "a100"), nodeWith("b", { cpu: 9 })],
    requests: { cpu: 4 },
    order: ["b"],
  },
};
for (const [name, { nodes, requests, order }] of Object.entries(tightest)) {
  test(`pods try ${name}`, () => {
    const free = roomOf(nodes);
    const slots = free.tightest(fitOf(free, requests, { gpu: "h100" }));
    const names = slots.map((slot) => free.nodeAt(slot)?.name);
    assert.deepEqual(names, order);
  });
}

test("the group with the largest requests is placed first, and what is left of each node is kept", () => {
  const free = roomOf([nodeWith("a", { cpu: 10 }), nodeWith("b", { cpu: 7 })]);
  const { ask } = planGang(job({ name: "a", roles: { Worker: { replicas: 4 }, Master: { replicas: 1 } } }));
  const podClasses = [podsWith({ cpu: 8 }), podsWith({ cpu: 3 })];
  const roles = ask.roles.map((one) => ({ ...one, podClass: one.role === "Master" ? 0 : 1 }));
  assert.equal(placeInOrder(free, groupsOf(shapeOf("", { ...ask, roles, podClasses }).all, { free }, {})), 3);
  assert.deepEqual(freeOf(free), [1, 2]);
});

test("groups are ordered by devices, then processors, then memory, then others, then role", () => {
  const ordered = [
    group({ [GPU]: 2, cpu: 1 }),
    group({ [GPU]: 1, cpu: 9 }),
    group({ memory: 1, cpu: 8 }),
    group({ memory: 9, cpu: 7 }),
    group({ cpu: 7, memory: 8, "ephemeral-storage": 1 }),
    group({ cpu: 7, memory: 7, "ephemeral-storage": 9 }, "A"),
    group({ cpu: 7, memory: 7, "ephemeral-storage": 9 }, "B"),
  ];
  assert.deepEqual(ordered.toReversed().toSorted(compareDemand), ordered);
});

test("nodes are as full as the part of their resource that is in use", () => {
  const labels = { gpu: "h100" };
  const of = { resource: GPU, labels, labelsKey: JSON.stringify(labels) };
  const free = roomOf([...alike(2, { [GPU]: 8 }), ...alike(6, { [GPU]: 0 }), ...alike(9, { [GPU]: 8 }, "a100")]);
  assert.equal(free.fullness(of, 0), 0.75);
  assert.equal(free.fullness(of, 4), 0.75 + 4 / 64, "once more of it is placed");
  assert.equal(roomOf([]).fullness(of, 0), 1);
  assert.equal(free.fullness({ ...of, resource: "tpu" }, 0), 1);
});
