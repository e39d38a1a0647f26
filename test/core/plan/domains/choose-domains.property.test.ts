/** Domains for pods of one class, against every way to put them into leaves. */
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { DomainTree } from "../../../../src/core/plan/capacity/domain-tree.ts";
import { chooseDomains, type DomainWish } from "../../../../src/core/plan/domains/choose-domains.ts";
import { node } from "../plan-world.ts";

type World = {
  /** The path of each leaf, and how many pods fit there. */
  readonly leaves: readonly { readonly path: readonly string[]; readonly fits: number }[];
  readonly depth: number;
  readonly count: number;
  readonly wish: DomainWish;
};

const someWorld: fc.Arbitrary<World> = fc
  .record({
    depth: fc.integer({ min: 1, max: 3 }),
    leaves: fc.array(
      fc.record({ path: fc.array(fc.constantFrom("a", "b", "c"), { minLength: 3, maxLength: 3 }), fits: fc.nat(5) }),
      { minLength: 1, maxLength: 6 },
    ),
    level: fc.option(fc.nat(2)),
    required: fc.boolean(),
    sizes: fc.constantFrom([], [1], [2], [3], [4, 2], [4, 1], [6, 3], [4, 2, 1]),
    sliceLevels: fc.uniqueArray(fc.nat(2), { minLength: 3, maxLength: 3 }),
    times: fc.integer({ min: 1, max: 8 }),
  })
  .map(({ depth, leaves, level, required, sizes, sliceLevels, times }) => {
    const byPath = new Map(leaves.map(({ path, fits }) => [path.slice(0, depth).join("/"), fits]));
    const slices = sizes.slice(0, depth).map((size) => ({ size, level: 0 }));
    const levels = sliceLevels
      .filter((one) => one < depth)
      .slice(0, slices.length)
      .sort((a, b) => a - b);
    return {
      depth,
      leaves: [...byPath].sort().map(([path, fits]) => ({ path: path.split("/"), fits })),
      count: times * (slices[0]?.size ?? 1),
      wish: {
        level: level === null ? null : Math.min(level, depth - 1),
        required: required && level !== null,
        slices: slices.map(({ size }, at) => ({ size, level: levels[at] ?? 0 })),
      },
    };
  });

function treeOf({ leaves, depth }: World): DomainTree {
  const labels = Array.from({ length: depth }, (_, level) => `level-${level}`);
  const nodes = leaves.map(({ path }, at) => {
    return node(`n${at}`, "h100", {
      labels: Object.fromEntries(labels.map((label, level) => [label, path[level] ?? ""])),
    });
  });
  return new DomainTree(labels, nodes);
}

/** True if so many pods in each leaf are as the slices ask: each domain of a level has whole slices. */
function isWhole({ leaves, wish }: World, pods: readonly number[]): boolean {
  return wish.slices.every(({ level, size }) => {
    const sums = sumsAt({ leaves }, level, pods);
    return [...sums.values()].every((sum) => sum % size === 0);
  });
}

function sumsAt({ leaves }: Pick<World, "leaves">, level: number, pods: readonly number[]): Map<string, number> {
  const sums = new Map<string, number>();
  for (const [at, { path }] of leaves.entries()) {
    const domain = path.slice(0, level + 1).join("/");
    sums.set(domain, (sums.get(domain) ?? 0) + (pods[at] ?? 0));
  }
  return sums;
}

function domainsUsed(world: World, level: number, pods: readonly number[]): number {
  return [...sumsAt(world, level, pods).values()].filter((sum) => sum > 0).length;
}

/** Every way to put the pods into leaves in whole slices. */
function* ways(world: World, pods: readonly number[] = []): Generator<readonly number[]> {
  const placed = pods.reduce((sum, one) => sum + one, 0);
  const leaf = world.leaves[pods.length];
  if (leaf === undefined) {
    if (placed === world.count && isWhole(world, pods)) yield pods;
    return;
  }
  for (let here = 0; here <= Math.min(leaf.fits, world.count - placed); here++) yield* ways(world, [...pods, here]);
}

/** The finest level, from the wished one on to coarser ones, at which some way needs one domain. Null: none. */
function finestTogether(world: World, all: readonly (readonly number[])[]): number | null {
  const { level: wished, slices } = world.wish;
  // A preference goes no finer than slices.
  const from = wished === null ? -1 : Math.min(wished, slices[0]?.level ?? wished);
  for (let level = from; level >= 0; level--) {
    if (all.some((pods) => domainsUsed(world, level, pods) === 1)) return level;
  }
  return null;
}

test("pods are placed if and only if there is a way, in the domain that they wish for, and no slice is cut", () => {
  const met = { placed: 0, refused: 0, sliced: 0, required: 0 };
  fc.assert(
    fc.property(someWorld, (world) => {
      const tree = treeOf(world);
      const fits = (leaf: number) => world.leaves[tree.slotsIn(leaf)[0] ?? -1]?.fits ?? 0;
      const chosen = chooseDomains(tree, fits, { count: world.count, wish: world.wish });
      const all = [...ways(world)];
      const { level, required, slices } = world.wish;
      const possible = required ? all.filter((pods) => domainsUsed(world, level ?? 0, pods) === 1) : all;
      met[possible.length > 0 ? "placed" : "refused"] += 1;
      assert.equal(chosen !== null, possible.length > 0, JSON.stringify(chosen));
      if (chosen === null) return;
      const pods = world.leaves.map((_, at) => chosen.find(({ leaf }) => tree.slotsIn(leaf)[0] === at)?.pods ?? 0);
      assert.equal(
        pods.reduce((sum, one) => sum + one, 0),
        world.count,
      );
      assert.ok(
        pods.every((one, at) => one <= (world.leaves[at]?.fits ?? 0)),
        `above what fits: ${pods}`,
      );
      assert.ok(isWhole(world, pods), `a slice is cut: ${pods}`);
      const together = finestTogether(world, all);
      // Pods that prefer a level are in one domain of the finest level at which that is possible.
      if (level !== null && together !== null) assert.equal(domainsUsed(world, together, pods), 1, `${pods}`);
      if (slices.length > 0) met.sliced += 1;
      if (required) met.required += 1;
    }),
    { numRuns: 2_000 },
  );
  assert.ok(
    Object.values(met).every((times) => times > 100),
    JSON.stringify(met),
  );
});

test("leaves come in the order of their paths, so that consecutive members never return to a domain", () => {
  fc.assert(
    fc.property(someWorld, (world) => {
      const tree = treeOf(world);
      const fits = (leaf: number) => world.leaves[tree.slotsIn(leaf)[0] ?? -1]?.fits ?? 0;
      const chosen = chooseDomains(tree, fits, { count: world.count, wish: world.wish }) ?? [];
      const paths = chosen.map(({ leaf }) => tree.pathOf(leaf));
      for (let level = 0; level < tree.depth; level++) {
        const domains = paths.map((path) => path.slice(0, level + 1).join("/"));
        const changes = domains.filter((domain, at) => domain !== domains[at - 1]).length;
        assert.equal(changes, new Set(domains).size);
      }
    }),
    { numRuns: 500 },
  );
});
