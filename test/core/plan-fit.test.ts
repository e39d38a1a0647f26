import assert from "node:assert/strict";
import { test } from "node:test";
import { compareDemand, fill, nodesFor, place } from "../../src/core/plan/fit.ts";
import { placeAll } from "../../src/core/plan/fit-all.ts";
import { allMembers, type MemberGroup, memberGroups } from "../../src/core/plan/gang.ts";
import { fullness } from "../../src/core/plan/rooms.ts";
import { type Shape, selectorKeys, shapesOf } from "../../src/core/plan/shapes.ts";
import type { NodeCapacity } from "../../src/core/plan/snapshot.ts";
import type { Resources } from "../../src/core/pods/resources.ts";
import { amounts, type JobParts, job, node, planGang } from "./plan-world.ts";

/** How many pods of these roles are placed on these nodes together. */
function placed(roles: JobParts["roles"], nodes: readonly NodeCapacity[]): number {
  const { ask } = planGang(job({ name: "a", roles }));
  const groups = memberGroups(ask, allMembers(ask));
  const keys = selectorKeys(
    groups.map((group) => group.scheduling),
    [],
  );
  return placeAll(shapesOf(nodes, keys), groups, {}).placed;
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

/** So many nodes that are alike, with so much free. */
function shape(name: string, free: Resources, parts: { readonly count?: number; readonly gpu?: string } = {}): Shape {
  const { count = 1, gpu = "h100" } = parts;
  const facts = { name, labels: { gpu }, taints: [], unschedulable: false };
  return { node: facts, allocatable: { cpu: 10, [GPU]: 8 }, free, count };
}

const group = (requests: Resources, parts: Partial<MemberGroup> = {}): MemberGroup => {
  return { role: "Worker", scheduling: {}, requests, count: 1, ...parts };
};

/** The nodes of some shapes with what they have free of processors, fullest first: `2 x 4`. */
const freeOf = (shapes: readonly Shape[]) =>
  shapes
    .toSorted((a, b) => (a.free["cpu"] ?? 0) - (b.free["cpu"] ?? 0))
    .map(({ count, free }) => `${count} x ${free["cpu"]}`);

const fills: Record<string, { nodes: number; pods: number; taken: number; left: readonly string[] }> = {
  "no pod leaves the nodes as they are": { nodes: 3, pods: 0, taken: 0, left: ["3 x 10"] },
  "one pod goes on one node": { nodes: 3, pods: 1, taken: 1, left: ["1 x 6", "2 x 10"] },
  "one node is filled exactly": { nodes: 3, pods: 2, taken: 2, left: ["1 x 2", "2 x 10"] },
  "one node is filled before the next": { nodes: 3, pods: 3, taken: 3, left: ["1 x 2", "1 x 6", "1 x 10"] },
  "the last node is filled in part": { nodes: 2, pods: 3, taken: 3, left: ["1 x 2", "1 x 6"] },
  "all nodes are filled exactly": { nodes: 2, pods: 4, taken: 4, left: ["2 x 2"] },
  "more pods than fit are left over": { nodes: 2, pods: 9, taken: 4, left: ["2 x 2"] },
};
for (const [name, { nodes: count, pods, taken, left }] of Object.entries(fills)) {
  test(`nodes with 10 processors take pods with 4: ${name}`, () => {
    const filled = fill(shape("n", { cpu: 10 }, { count }), { cpu: 4 }, pods);
    assert.equal(filled.taken, taken);
    assert.deepEqual(freeOf(filled.parts), left);
  });
}

test("a resource that pods request none of does not keep them from a node without it", () => {
  assert.equal(fill(shape("n", { cpu: 10 }), { cpu: 4, [GPU]: 0 }, 9).taken, 2);
  assert.equal(fill(shape("n", { cpu: 10 }), { cpu: 4, [GPU]: 1 }, 9).taken, 0);
  assert.equal(fill(shape("n", { cpu: 10, [GPU]: -1 }), { [GPU]: 1 }, 9).taken, 0, "a node may be overcommitted");
});

const tightest: Record<string, { shapes: readonly Shape[]; requests: Resources; order: readonly string[] }> = {
  "nodes with less of the resource first": {
    shapes: [shape("a", { cpu: 9 }), shape("b", { cpu: 5 }), shape("c", { cpu: 7 })],
    requests: { cpu: 4 },
    order: ["b", "c", "a"],
  },
  "nodes that are alike by name": {
    shapes: [shape("b", { cpu: 5 }), shape("a", { cpu: 5 })],
    requests: { cpu: 4 },
    order: ["a", "b"],
  },
  "nodes whose devices would stay idle last": {
    shapes: [shape("a", { cpu: 5, [GPU]: 8 }), shape("b", { cpu: 9, [GPU]: 0 }), shape("c", { cpu: 9, [GPU]: 1 })],
    requests: { cpu: 4 },
    order: ["b", "c", "a"],
  },
  "devices decide before processors": {
    shapes: [shape("a", { cpu: 5, [GPU]: 8 }), shape("b", { cpu: 9, [GPU]: 2 })],
    requests: { cpu: 4, [GPU]: 1 },
    order: ["b", "a"],
  },
  "nodes whose other resources would stay idle no later": {
    shapes: [shape("a", { cpu: 5, memory: 9 }), shape("b", { cpu: 9, memory: 1 })],
    requests: { cpu: 4 },
    order: ["a", "b"],
  },
  "nodes with devices last if they request none of them": {
    shapes: [shape("a", { cpu: 5, [GPU]: 5, "x/y": 0 }), shape("b", { cpu: 9, [GPU]: 1, "x/y": 2 })],
    requests: { cpu: 4, [GPU]: 0 },
    order: ["b", "a"],
  },
  "only nodes that have room": {
    shapes: [shape("a", { cpu: 3 }), shape("b", { cpu: 4 })],
    requests: { cpu: 4 },
    order: ["b"],
  },
  "only nodes with the labels": {
    shapes: [shape("a", { cpu: 9 }, { gpu: "a100" }), shape("b", { cpu: 9 })],
    requests: { cpu: 4 },
    order: ["b"],
  },
};
for (const [name, { shapes, requests, order }] of Object.entries(tightest)) {
  test(`pods try ${name}`, () => {
    const { open, closed } = nodesFor(shapes, group(requests), { gpu: "h100" });
    assert.deepEqual(
      open.map(({ node: { name: of } }) => of),
      order,
    );
    assert.equal(open.length + closed.length, shapes.length);
  });
}

test("the group with the largest requests is placed first, and what is left of each node is kept", () => {
  const small = group({ cpu: 3 }, { count: 4 });
  const large = group({ cpu: 8 }, { role: "Master" });
  const shapes = [shape("a", { cpu: 10 }), shape("b", { cpu: 7 })];
  const placedPods = place(shapes, [small, large], {});
  assert.equal(placedPods.placed, 3);
  assert.deepEqual(freeOf(placedPods.left), ["1 x 1", "1 x 2"]);
});

test("groups are ordered by devices, then processors, then memory, then others, then role", () => {
  const ordered = [
    group({ [GPU]: 2, cpu: 1 }),
    group({ [GPU]: 1, cpu: 9 }),
    group({ memory: 1, cpu: 8 }),
    group({ memory: 9, cpu: 7 }),
    group({ cpu: 7, memory: 8, "ephemeral-storage": 1 }),
    group({ cpu: 7, memory: 7, "ephemeral-storage": 9 }, { role: "A" }),
    group({ cpu: 7, memory: 7, "ephemeral-storage": 9 }, { role: "B" }),
  ];
  assert.deepEqual(ordered.toReversed().toSorted(compareDemand), ordered);
});

test("nodes are as full as the part of their resource that is in use", () => {
  const of = { resource: GPU, nodeLabels: { gpu: "h100" } };
  const shapes = [
    shape("a", { [GPU]: 8 }, { count: 2 }),
    shape("b", { [GPU]: 0 }, { count: 6 }),
    shape("c", { [GPU]: 8 }, { count: 9, gpu: "a100" }),
  ];
  assert.equal(fullness(shapes, of), 0.75);
  assert.equal(fullness([], of), 1);
  assert.equal(fullness(shapes, { ...of, resource: "tpu" }), 1);
});
