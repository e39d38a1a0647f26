import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { merged } from "../../../../src/core/kinds/trainjob/strategic-merge.ts";
import { canonicalJson, type Json, type JsonObject } from "../../../../src/runtime/json.ts";

const text = fc.constantFrom("a", "b", "c");
const named = fc.uniqueArray(fc.record({ name: text, image: text }), { selector: ({ name }) => name, maxLength: 3 });
const podSpec = fc.record(
  {
    nodeSelector: fc.dictionary(text, text, { maxKeys: 3 }),
    containers: named,
    tolerations: fc.array(fc.record({ key: text }), { maxLength: 2 }),
    serviceAccountName: text,
  },
  { requiredKeys: [] },
);

const plain = (value: unknown): string => canonicalJson(value as Json);

test("merging nothing changes nothing, and merging a patch again changes nothing more", () => {
  fc.assert(
    fc.property(podSpec, podSpec, (base, patch) => {
      const [before, change] = [base as JsonObject, patch as JsonObject];
      assert.equal(plain(merged(before, {})), plain(before));
      const once = merged(before, change);
      assert.equal(plain(merged(once, change)), plain(once));
    }),
  );
});

test("what a patch names is as the patch says, and everything else is as before", () => {
  fc.assert(
    fc.property(podSpec, podSpec, (base, patch) => {
      const after = merged(base as JsonObject, patch as JsonObject) as typeof base;
      assert.deepEqual({ ...after.nodeSelector }, { ...base.nodeSelector, ...patch.nodeSelector });
      assert.deepEqual(after.tolerations, patch.tolerations ?? base.tolerations);
      assert.equal(after.serviceAccountName, patch.serviceAccountName ?? base.serviceAccountName);
      const images = (of: typeof base) =>
        Object.fromEntries((of.containers ?? []).map(({ name, image }) => [name, image]));
      assert.deepEqual(images(after), { ...images(base), ...images(patch) });
      const order = (after.containers ?? []).map(({ name }) => name);
      assert.deepEqual(
        order.slice(0, base.containers?.length ?? 0),
        (base.containers ?? []).map(({ name }) => name),
      );
    }),
  );
});
