import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { type TreeEdge, treeProblem } from "../../../src/core/quota/check-tree.ts";
import { QUEUE_DEPTH_MAX } from "../../../src/core/quota/decide.ts";

const NAMES = ["a", "b", "c", "d", "e"];
const change = fc.record({ name: fc.constantFrom(...NAMES), parent: fc.option(fc.constantFrom(...NAMES, "nowhere")) });

/** A chain of `length` queues, with `n0` at the root. */
function chain(length: number, prefix = "n"): TreeEdge[] {
  return Array.from({ length }, (_, at) => ({
    name: `${prefix}${at}`,
    parent: at === 0 ? null : `${prefix}${at - 1}`,
  }));
}

test("after any allowed changes every path ends at a root that exists", () => {
  fc.assert(
    fc.property(fc.array(change, { maxLength: 20 }), (changes) => {
      const tree = new Map<string, TreeEdge>();
      for (const one of changes) {
        if (treeProblem(one, [...tree.values()]) === null) tree.set(one.name, one);
        for (const start of tree.values()) {
          let steps = 0;
          for (let at: TreeEdge = start; at.parent !== null; steps += 1) {
            const above = tree.get(at.parent);
            assert.ok(above !== undefined, `${at.parent} exists`);
            assert.ok(steps < NAMES.length, `${start.name} is not above itself`);
            at = above;
          }
        }
      }
    }),
  );
});

test("a refusal names the unknown parent or the circle", () => {
  const tree = chain(3);
  assert.equal(treeProblem({ name: "x", parent: "n2" }, tree), null);
  assert.equal(treeProblem({ name: "n1", parent: null }, tree), null);
  assert.deepEqual(treeProblem({ name: "x", parent: "y" }, tree), { kind: "unknownParent", parent: "y" });
  assert.deepEqual(treeProblem({ name: "x", parent: "x" }, tree), { kind: "circle", path: ["x", "x"] });
  assert.deepEqual(treeProblem({ name: "n0", parent: "n2" }, tree), { kind: "circle", path: ["n0", "n2", "n1", "n0"] });
});

test("a path has at most QUEUE_DEPTH_MAX queues", () => {
  const deep = chain(QUEUE_DEPTH_MAX);
  const last = `n${QUEUE_DEPTH_MAX - 1}`;
  const tooDeep = { kind: "tooDeep", depthMax: QUEUE_DEPTH_MAX };
  assert.equal(treeProblem({ name: "x", parent: `n${QUEUE_DEPTH_MAX - 2}` }, deep), null);
  assert.deepEqual(treeProblem({ name: "x", parent: last }, deep), tooDeep);
  const half = [...chain(QUEUE_DEPTH_MAX / 2), ...chain(QUEUE_DEPTH_MAX / 2, "m")];
  assert.equal(treeProblem({ name: "m0", parent: `n${QUEUE_DEPTH_MAX / 2 - 1}` }, half), null);
  assert.deepEqual(
    treeProblem({ name: "m0", parent: `n${QUEUE_DEPTH_MAX / 2 - 1}` }, [
      ...half,
      { name: "y", parent: `m${QUEUE_DEPTH_MAX / 2 - 1}` },
    ]),
    tooDeep,
  );
});
