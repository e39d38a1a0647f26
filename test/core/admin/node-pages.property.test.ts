/** Lists of nodes: what the pages have together, whatever changes between them, and what is newer than a version. */
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { NodeBook } from "../../../src/core/admin/nodes/node-book.ts";
import type { NodeQuery } from "../../../src/core/admin/nodes/node-page.ts";
import {
  keyOf,
  NODE_ORDERS,
  type NodeKey,
  type NodeOrder,
  type NodeRow,
} from "../../../src/core/admin/nodes/node-query.ts";
import { selectNodes } from "../../../src/core/admin/nodes/select-nodes.ts";
import type { CapacityEntry, EntryChange } from "../../../src/core/plan/model/capacity-entry.ts";

const FLAVORS = [{ name: "gpu/h100", resource: "nvidia.com/gpu", nodeLabels: { model: "h100" } }];
const CLUSTERS = ["east", "west"];

type Shape = { readonly held: number; readonly model: string; readonly isCordoned: boolean };
/** A change of a node. Null: it is gone. */
type Step = { readonly cluster: string; readonly name: string; readonly shape: Shape | null };

const shape = fc.record({
  held: fc.integer({ min: 0, max: 8 }),
  model: fc.constantFrom("h100", "a100"),
  isCordoned: fc.boolean(),
});
const step: fc.Arbitrary<Step> = fc.record({
  cluster: fc.constantFrom(...CLUSTERS),
  name: fc.integer({ min: 0, max: 11 }).map((at) => `n-${at}`),
  shape: fc.option(shape, { freq: 4 }),
});
const filters = fc.record({
  names: fc.constant<readonly string[]>([]),
  flavors: fc.constantFrom<readonly string[]>([], ["gpu/h100"]),
  states: fc.constantFrom<NodeQuery["filter"]["states"]>([], ["READY"], ["CORDONED", "LEAVING"]),
});

function entryOf(name: string, { held, model, isCordoned }: Shape): CapacityEntry {
  const amounts = { allocatable: { "nvidia.com/gpu": 8_000 }, free: { "nvidia.com/gpu": (8 - held) * 1_000 } };
  const trouble = isCordoned ? { trouble: { cordoned: true as const } } : {};
  const node = { name, labels: { model }, taints: [], unschedulable: isCordoned, ...amounts, ...trouble };
  return { kind: "node", name, node, members: [] };
}

/** A book that follows two clusters, whose changes are numbered as the store numbers them. */
class World {
  readonly book = new NodeBook();
  readonly shapes = new Map<string, Shape>();
  readonly #sequences = new Map(CLUSTERS.map((name) => [name, 0]));
  epoch = 1;

  constructor() {
    for (const name of CLUSTERS) this.book.follow({ name, flavors: FLAVORS });
    for (const name of CLUSTERS) this.#apply(name, null, []);
  }

  apply(steps: readonly Step[]): void {
    for (const { cluster, name, shape: to } of steps) {
      const key = `${cluster}/${name}`;
      if (to === null) this.shapes.delete(key);
      else this.shapes.set(key, to);
      this.#apply(cluster, this.#sequences.get(cluster) ?? 0, [
        { key: { kind: "node", name }, entry: to === null ? null : entryOf(name, to) },
      ]);
    }
  }

  #apply(cluster: string, since: number | null, changes: readonly EntryChange[]): void {
    const sequence = (since ?? 0) + changes.length;
    this.#sequences.set(cluster, sequence);
    this.book.apply({ kind: "capacity", cluster, epoch: this.epoch, since, sequence, changes });
  }

  rows() {
    return CLUSTERS.map((name) => {
      const flags = { observedMs: 1, reachable: true, cordoned: false, simulated: false, version: 1 };
      return { name, flavors: FLAVORS, ...flags };
    });
  }

  page(query: Partial<NodeQuery>, after: NodeKey | null) {
    const asked: NodeQuery = {
      cluster: null,
      maySee: () => true,
      filter: { names: [], flavors: [], states: [] },
      order: "cluster",
      pageSize: 1_000,
      after: null,
      newerThan: null,
      scope: "all",
      ...query,
    };
    const { nodes, ...rest } = selectNodes(this.book, this.rows(), { query: asked, after });
    const shown = nodes.slice(0, asked.pageSize);
    const hasMore = nodes.length > shown.length;
    return { ...rest, nodes: shown.map(({ node }) => node), next: hasMore ? (shown.at(-1)?.key ?? null) : null };
  }

  /** All pages, with what happens after each. */
  list(query: Partial<NodeQuery>, between: () => void = () => {}): readonly NodeRow[] {
    const found: NodeRow[] = [];
    let after: NodeKey | null = null;
    for (;;) {
      const page: ReturnType<World["page"]> = this.page(query, after);
      for (const node of page.nodes) found.push(node);
      if (page.next === null) return found;
      after = page.next;
      between();
    }
  }
}

const idOf = ({ cluster, name }: NodeRow) => `${cluster}/${name}`;

/** The order, written once more as plainly as possible. */
const PLAIN: Readonly<Record<NodeOrder, (node: NodeRow) => readonly (string | number)[]>> = {
  cluster: ({ cluster, name }) => [cluster, name],
  name: ({ cluster, name }) => [name, cluster],
  "held desc": ({ cluster, name, held, free }) => [-held, -free, cluster, name],
  "free desc": ({ cluster, name, held, free }) => [-free, -held, cluster, name],
};

function sorted(nodes: readonly NodeRow[], order: NodeOrder): readonly NodeRow[] {
  return nodes.toSorted((one, other) => {
    const [a, b] = [PLAIN[order](one), PLAIN[order](other)];
    const at = a.findIndex((part, place) => part !== b[place]);
    return at < 0 ? 0 : (a[at] ?? 0) < (b[at] ?? 0) ? -1 : 1;
  });
}

test("the pages of a list together are all nodes that pass, in order, at any page size", () => {
  fc.assert(
    fc.property(
      fc.array(step, { maxLength: 60 }),
      filters,
      fc.constantFrom(...NODE_ORDERS),
      fc.integer({ min: 1, max: 30 }),
      (steps, filter, order, pageSize) => {
        const world = new World();
        world.apply(steps);
        const found = world.list({ filter, order, pageSize });
        const all = [...world.book.nodesOf(CLUSTERS)].filter(
          ({ flavors, states }) =>
            (filter.flavors.length === 0 || flavors.some((one) => filter.flavors.includes(one))) &&
            (filter.states.length === 0 || states.some((one) => filter.states.includes(one))),
        );
        assert.deepEqual(found.map(idOf), sorted(all, order).map(idOf));
        assert.equal(world.page({ filter, order, pageSize }, null).total, found.length);
        assert.equal(new Set([...world.book.nodesOf(CLUSTERS)].map(idOf)).size, world.shapes.size);
      },
    ),
  );
});

test("while nodes come and go, a node that does not change is in exactly one page", () => {
  fc.assert(
    fc.property(
      fc.array(step, { maxLength: 60 }),
      fc.array(fc.array(step, { maxLength: 5 }), { maxLength: 12 }),
      fc.constantFrom(...NODE_ORDERS),
      fc.integer({ min: 1, max: 8 }),
      (before, meanwhile, order, pageSize) => {
        const world = new World();
        world.apply(before);
        const known = new Set(world.shapes.keys());
        const rest = [...meanwhile];
        const touched = new Set<string>();
        const found = world.list({ order, pageSize }, () => {
          const steps = rest.shift() ?? [];
          for (const { cluster, name } of steps) touched.add(`${cluster}/${name}`);
          world.apply(steps);
        });
        const times = Map.groupBy(found.map(idOf), (id) => id);
        for (const id of known) if (!touched.has(id)) assert.equal(times.get(id)?.length, 1, id);
      },
    ),
  );
});

test("the answers since a version make the list before into the list now", () => {
  fc.assert(
    fc.property(
      fc.array(step, { maxLength: 40 }),
      fc.array(fc.array(step, { maxLength: 10 }), { minLength: 1, maxLength: 4 }),
      filters,
      fc.integer({ min: 1, max: 20 }),
      (before, changes, filter, pageSize) => {
        const world = new World();
        world.apply(before);
        const held = new Map(world.list({ filter, pageSize }).map((node) => [idOf(node), node]));
        let { version } = world.page({ filter, pageSize }, null);
        for (const steps of changes) {
          world.apply(steps);
          const first = world.page({ filter, pageSize, newerThan: version }, null);
          for (const { name, complete, removed } of first.clusters) {
            if (complete) for (const id of [...held.keys()]) if (id.startsWith(`${name}/`)) held.delete(id);
            for (const one of removed) held.delete(`${name}/${one}`);
          }
          const touched = new Set(steps.map(({ cluster, name }) => `${cluster}/${name}`));
          for (const node of world.list({ filter, pageSize, newerThan: version })) {
            assert.ok(touched.has(idOf(node)), `${idOf(node)} has not changed`);
            held.set(idOf(node), node);
          }
          version = first.version;
        }
        const now = world.list({ filter, pageSize });
        assert.deepEqual(
          sorted([...held.values()], "cluster").map((node) => [idOf(node), node.held]),
          now.map((node) => [idOf(node), node.held]),
        );
      },
    ),
  );
});

const outdated: Readonly<Record<string, (world: World, version: string) => Partial<NodeQuery>>> = {
  "another scope": (_world, version) => ({ newerThan: version, scope: "less" }),
  "no version at all": () => ({ newerThan: "nonsense" }),
  "a version of another observer": (world, version) => {
    world.epoch = 2;
    for (const cluster of CLUSTERS) {
      const changes = [{ key: { kind: "node" as const, name: "n-1" }, entry: entryOf("n-1", SHAPE) }];
      world.book.apply({ kind: "capacity", cluster, epoch: 2, since: null, sequence: 90, changes });
    }
    return { newerThan: version };
  },
  "a cluster whose flavors have changed": (world, version) => {
    for (const cluster of CLUSTERS) {
      world.book.follow({ name: cluster, flavors: [] });
      const changes = [{ key: { kind: "node" as const, name: "n-1" }, entry: entryOf("n-1", SHAPE) }];
      world.book.apply({ kind: "capacity", cluster, epoch: 1, since: null, sequence: 1, changes });
    }
    const rows = world.rows();
    world.rows = () => rows.map((row) => ({ ...row, version: 2 }));
    return { newerThan: version };
  },
};
const SHAPE: Shape = { held: 1, model: "h100", isCordoned: false };
for (const [name, change] of Object.entries(outdated)) {
  test(`${name} gets all nodes again`, () => {
    const world = new World();
    world.apply([{ cluster: "east", name: "n-1", shape: SHAPE }]);
    const { version } = world.page({}, null);
    assert.deepEqual(world.page({ newerThan: version }, null).nodes, []);
    const page = world.page(change(world, version), null);
    assert.ok(page.clusters.every(({ complete, removed }) => complete && removed.length === 0));
    assert.ok(page.nodes.some((node) => idOf(node) === "east/n-1"));
  });
}

test("a reader that is further behind than the removed nodes that are remembered gets all nodes again", () => {
  const world = new World();
  const names = Array.from({ length: 1_100 }, (_, at) => `r-${at}`);
  world.apply(names.map((name) => ({ cluster: "east", name, shape: SHAPE })));
  const { version } = world.page({}, null);
  world.apply(names.slice(0, 900).map((name) => ({ cluster: "east", name, shape: null })));
  const near = world.page({ newerThan: version }, null).clusters.find(({ name }) => name === "east");
  assert.deepEqual([near?.complete, near?.removed.length], [false, 900]);
  world.apply(names.slice(900).map((name) => ({ cluster: "east", name, shape: null })));
  const far = world.page({ newerThan: version }, null).clusters.find(({ name }) => name === "east");
  assert.deepEqual([far?.complete, far?.removed.length], [true, 0]);
});

test("a page of 50,000 nodes keeps no more nodes than it has", () => {
  const world = new World();
  const changes = Array.from({ length: 50_000 }, (_, at): EntryChange => {
    const name = `big-${at}`;
    return { key: { kind: "node", name }, entry: entryOf(name, { held: at % 9, model: "h100", isCordoned: false }) };
  });
  world.book.apply({ kind: "capacity", cluster: "east", epoch: 1, since: null, sequence: 50_000, changes });
  const page = world.page({ order: "held desc", pageSize: 100 }, null);
  assert.deepEqual([page.nodes.length, page.total], [100, 50_000]);
  const [first] = page.nodes;
  assert.ok(first !== undefined && page.next !== null);
  assert.equal(first.held, 8);
  assert.deepEqual(keyOf(page.nodes[99] ?? first, "held desc"), page.next);
});
