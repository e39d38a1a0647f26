import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { FitClasses } from "../../../../src/core/plan/capacity/fit-classes.ts";
import { FreeCapacity } from "../../../../src/core/plan/capacity/free-capacity.ts";
import { HOSTNAME_LABEL, type Topology } from "../../../../src/core/plan/model/topology.ts";
import { GPU, NIC, type PlainNode, type PlainPod, placeByBruteForce } from "./reference-order.ts";

const LEVELS: Topology = [
  { name: "block", label: "example.com/block" },
  { name: "rack", label: "example.com/rack" },
  { name: "host", label: HOSTNAME_LABEL },
];

/** The levels of a cluster: none, or some of these in their order. Null: the cluster has no levels. */
const topologies = fc.constantFrom<Topology | null>(null, LEVELS, LEVELS.slice(0, 2), LEVELS.slice(1), LEVELS.slice(2));

const parts = fc.record({
  // Three blocks of two racks, with racks of the same name in different blocks; or none.
  block: fc.constantFrom("x", "x", "y", "y", null),
  rack: fc.constantFrom("1", "1", "2", "2", null),
  gpus: fc.nat(8),
  nics: fc.constantFrom(0, 0, 2),
  cpu: fc.constantFrom(8, 16),
  over: fc.constantFrom(false, false, false, true),
  unschedulable: fc.constantFrom(false, false, false, false, true),
});

type NodeParts = typeof parts extends fc.Arbitrary<infer T> ? T : never;

function nodeOf(of: NodeParts, at: number): PlainNode {
  const name = `node-${at}`;
  const free = { [GPU]: of.over ? -1000 : of.gpus * 1000, [NIC]: of.nics * 1000, cpu: of.cpu * 1000 };
  const labels = {
    [HOSTNAME_LABEL]: name,
    half: String(at % 2),
    ...(of.block === null ? {} : { "example.com/block": of.block }),
    ...(of.rack === null ? {} : { "example.com/rack": of.rack }),
  };
  return { name, labels, unschedulable: of.unschedulable, free };
}

const pods = fc.record({
  gpus: fc.constantFrom(0, 1, 1, 2, 4),
  nics: fc.constantFrom(0, 0, 1),
  cpu: fc.constantFrom(1, 2),
  half: fc.constantFrom(null, null, "0"),
});

type PodParts = typeof pods extends fc.Arbitrary<infer T> ? T : never;

function podOf({ gpus, nics, cpu, half }: PodParts): PlainPod {
  const requests = {
    ...(gpus === 0 ? {} : { [GPU]: gpus * 1000 }),
    ...(nics === 0 ? {} : { [NIC]: nics * 1000 }),
    cpu: cpu * 1000,
  };
  return { requests, selector: half === null ? {} : { half } };
}

const step = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.record({ kind: fc.constant("place" as const), pod: pods, count: fc.integer({ min: 1, max: 9 }) }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("mark" as const) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("undo" as const) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("leave" as const), at: fc.nat(11), pod: pods }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("node" as const), at: fc.nat(11), node: fc.option(parts) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("levels" as const), topology: topologies }) },
);

/** The capacity under test, and the plain nodes that it must agree with. */
class World {
  readonly fits = new FitClasses();
  readonly free = new FreeCapacity(this.fits);
  topology: Topology | null = null;
  seen = new Map<string, PlainNode>();
  now: PlainNode[] = [];
  readonly marks: { readonly mark: number; readonly nodes: PlainNode[] }[] = [];

  setTopology(topology: Topology | null): void {
    this.topology = topology;
    this.free.setTopology(topology === null ? null : { topology, flavors: [] });
  }

  setNode(node: PlainNode): void {
    this.seen.set(node.name, node);
    this.free.setNode(node.name, { ...node, taints: [], allocatable: node.free, free: { ...node.free } });
  }

  removeNode(name: string): void {
    this.seen.delete(name);
    this.free.setNode(name, null);
  }

  reset(): void {
    this.free.reset();
    this.now = copyOf([...this.seen.values()]);
    this.marks.length = 0;
  }

  place(pod: PlainPod, count: number): void {
    const { mark } = this.free;
    const placed = this.free.place(this.fitOf(pod), count);
    const expected = placeByBruteForce(this.now, { pod, count }, this.topology);
    const used = this.free.placedAfter(mark).flatMap(({ slot, pods: on }) => {
      return Array<string>(on).fill(this.free.nodeAt(slot)?.name ?? "");
    });
    assert.equal(placed, expected.length);
    assert.deepEqual(used, expected);
  }

  fitOf({ requests, selector }: PlainPod) {
    return this.fits.of({ requests, scheduling: { nodeSelector: selector } }, {});
  }

  /** A pod leaves a node, as when victims go. */
  leave(at: number, pod: PlainPod): void {
    const node = this.now[at % Math.max(1, this.now.length)];
    if (node === undefined) return;
    this.free.shift(node.name, this.fitOf(pod), -1);
    for (const [resource, amount] of Object.entries(pod.requests)) {
      node.free[resource] = (node.free[resource] ?? 0) + amount;
    }
  }
}

function copyOf(nodes: readonly PlainNode[]): PlainNode[] {
  return nodes.map((node) => ({ ...node, free: { ...node.free } }));
}

test("pods go to the nodes that brute force names, whatever was placed, undone or changed before", () => {
  let [among, split] = [0, 0];
  fc.assert(
    fc.property(
      topologies,
      fc.array(parts, { minLength: 1, maxLength: 12 }),
      fc.array(step, { maxLength: 14 }),
      (topology, all, steps) => {
        const world = new World();
        world.setTopology(topology);
        for (const [at, node] of all.entries()) world.setNode(nodeOf(node, at));
        world.reset();
        for (const one of steps) {
          if (one.kind === "place") {
            const before = world.free.mark;
            world.place(podOf(one.pod), one.count);
            among += 1;
            if (world.free.mark > before + 1) split += 1;
          } else if (one.kind === "leave") world.leave(one.at, podOf(one.pod));
          else if (one.kind === "mark") world.marks.push({ mark: world.free.mark, nodes: copyOf(world.now) });
          else if (one.kind === "undo") {
            const last = world.marks.pop();
            if (last === undefined) continue;
            world.free.undo(last.mark);
            world.now = last.nodes;
          } else {
            if (one.kind === "levels") world.setTopology(one.topology);
            else if (one.node === null) world.removeNode(`node-${one.at}`);
            else world.setNode(nodeOf(one.node, one.at));
            world.reset();
          }
        }
      },
    ),
    { numRuns: 500 },
  );
  assert.ok(among > 800 && split > 150, `${among} placements, ${split} on several nodes`);
});
