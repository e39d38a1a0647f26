/** Whether gangs that ran in a lost cluster wait for it: the law, then the cases. */
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { lossPolicyOf, type SayingQueue } from "../../../src/core/admin/loss-policies.ts";
import type { OnClusterLost } from "../../../src/core/job/spec.ts";

const word = fc.constantFrom<OnClusterLost>("WAIT", "MOVE");
const said = fc.option(word, { nil: null });

test("along the path to the root, only the first word counts, and no word of another branch", () => {
  const path = fc.array(said, { minLength: 1, maxLength: 8 });
  fc.assert(
    fc.property(path, path, word, (own, others, namespace) => {
      const branch = (name: string, words: readonly (OnClusterLost | null)[]): readonly SayingQueue[] =>
        words.map((onClusterLost, at) => {
          const parent = at + 1 < words.length ? `${name}${at + 1}` : null;
          return { name: `${name}${at}`, parent, onClusterLost };
        });
      const queues = new Map([...branch("a", own), ...branch("b", others)].map((queue) => [queue.name, queue]));
      const first = own.find((one) => one !== null);
      assert.equal(lossPolicyOf({ queue: "a0", own: namespace }, queues), first ?? namespace);
    }),
  );
});

const queue = (name: string, parent: string | null, onClusterLost: OnClusterLost | null = null): SayingQueue => {
  return { name, parent, onClusterLost };
};

const cases: Readonly<
  Record<string, { queues: readonly SayingQueue[]; namespace: OnClusterLost; counts: OnClusterLost }>
> = {
  "no queue says anything, as after the upgrade: the namespace": {
    queues: [queue("q", "root"), queue("root", null)],
    namespace: "MOVE",
    counts: "MOVE",
  },
  "the queue says wait, its namespace move": {
    queues: [queue("q", null, "WAIT")],
    namespace: "MOVE",
    counts: "WAIT",
  },
  "the queue says move, its namespace wait": {
    queues: [queue("q", null, "MOVE")],
    namespace: "WAIT",
    counts: "MOVE",
  },
  "the queue above says it": {
    queues: [queue("q", "root"), queue("root", null, "WAIT")],
    namespace: "MOVE",
    counts: "WAIT",
  },
  "the nearest of two counts": {
    queues: [queue("q", "mid"), queue("mid", "root", "MOVE"), queue("root", null, "WAIT")],
    namespace: "WAIT",
    counts: "MOVE",
  },
  "the queue is gone": { queues: [], namespace: "MOVE", counts: "MOVE" },
  "a tree that changes meanwhile is read as a circle": {
    queues: [queue("q", "p"), queue("p", "q")],
    namespace: "WAIT",
    counts: "WAIT",
  },
};

for (const [name, { queues, namespace, counts }] of Object.entries(cases)) {
  test(`what counts for a gang: ${name}`, () => {
    const tree = new Map(queues.map((one) => [one.name, one]));
    assert.equal(lossPolicyOf({ queue: "q", own: namespace }, tree), counts);
  });
}
