import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import type { Action } from "../../src/core/reconcile/decision.ts";
import { Expectations } from "../../src/worker/expectations.ts";

const at = { cluster: "c", namespace: "ns" };
const creation = (name: string): Action => ({
  ...at,
  kind: "createPod",
  anchor: "a",
  manifest: { metadata: { name } },
});
const deletion = (uid: string): Action => ({ ...at, kind: "deletePod", name: "p", uid });
const ALL = [creation("a"), creation("b"), deletion("u"), deletion("v")];
const actions = fc.subarray(ALL);

test("creates and deletions are awaited separately: one that is seen does not end the wait for the other", () => {
  const expected = new Expectations();
  expected.raise(ALL, 0);
  assert.deepEqual(expected.due([creation("b"), deletion("u")], 1), []);
  assert.deepEqual(expected.due([deletion("u")], 2), [], "the additions were seen");
  assert.deepEqual(expected.due([creation("a"), deletion("u")], 3), [creation("a")]);
});

test("an update of a part waits for an update with the same content only", () => {
  const update = (kind: string, content: number, version: number): Action => {
    const metadata = { name: "j", annotations: { version: String(version) } };
    return { ...at, kind: "updatePart", anchor: "a", manifest: { kind, metadata, data: { content } } };
  };
  const expected = new Expectations();
  expected.raise([update("Role", 1, 1), update("ConfigMap", 1, 1)], 0);
  expected.lower([update("Role", 1, 1)]);
  assert.deepEqual(expected.due([update("Role", 1, 2), update("ConfigMap", 1, 2)], 1), [update("Role", 1, 2)]);
  assert.deepEqual(expected.due([update("ConfigMap", 2, 3)], 2), [update("ConfigMap", 2, 3)]);
});

test("an awaited action is requested again only after it has failed, was seen, or stayed unseen for too long", () => {
  fc.assert(
    fc.property(actions, actions, actions, (raised, failed, wanted) => {
      const expected = new Expectations();
      expected.raise(raised, 0);
      expected.lower(failed);
      const awaited = raised.filter((action) => !failed.includes(action));
      const due = expected.due(wanted, 3_999);
      assert.deepEqual(
        due,
        wanted.filter((action) => !awaited.includes(action)),
      );
      assert.equal(
        expected.size,
        awaited.filter((action) => wanted.includes(action)).length,
        "nothing else is remembered",
      );
      assert.deepEqual(expected.due(wanted, 4_000), wanted);
    }),
  );
});
