import assert from "node:assert/strict";
import { test } from "node:test";
import { Holders } from "../../../../src/core/plan/explain/holders.ts";
import { scopesToRead } from "../../../../src/core/quota/decide.ts";
import { scopeKey, scopeOfKey } from "../../../../src/core/quota/scopes.ts";
import { stateOf } from "../../../support/load-snapshot.ts";
import { MODELS, QUEUES, randomSnapshot } from "../random-world.ts";

const WORLDS = 100;
/** More than are answered one by one. */
const NAMESPACES = ["ml", "nlp", ...Array.from({ length: 6 }, (_, at) => `team-${at}`)];
const ACCOUNTS = QUEUES.flatMap((queue) =>
  MODELS.flatMap((model) =>
    NAMESPACES.flatMap((namespace) =>
      ["vision", "speech"].map((project) => ({ queue, project, namespace, pool: `gpu/${model}` })),
    ),
  ),
);

test("the holders at a scope are the same for the first question and for one after many others", () => {
  let found = 0;
  for (let seed = 1; seed <= WORLDS; seed++) {
    const snapshot = randomSnapshot(seed, { jobs: 4, nodes: 3, alike: false });
    const { parts } = stateOf(snapshot);
    const { limits } = parts.quota;
    const others = { callers: snapshot.callers, admissions: [] };
    const keys = new Set(ACCOUNTS.flatMap((account) => scopesToRead(account, limits).map(scopeKey)));
    assert.ok(keys.size > 40, `${keys.size} scopes`);
    for (const order of [[...keys], [...keys].reverse()]) {
      const asked = new Holders(parts, others);
      for (const key of order) {
        const first = new Holders(parts, others).largest(scopeOfKey(key));
        assert.deepEqual(asked.largest(scopeOfKey(key)), first, `seed ${seed}, ${key}`);
        found += first.length;
      }
    }
  }
  assert.ok(found > WORLDS, `${found} holders`);
});
