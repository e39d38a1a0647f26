import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { auditText } from "../../src/cli/output/audit-text.ts";

const queue = {
  name: "a",
  parent: null,
  policy: { weight: 1, ageing: null },
  quotas: [{ flavor: "gpu/a", nominal: 4 }],
};

const cases: Readonly<Record<string, { readonly details: unknown; readonly says: string }>> = {
  "nothing of an entry without details": { details: undefined, says: "" },
  "all settings of a record that was made": {
    details: { before: null, after: { name: "a" } },
    says: '{"before":null,"after":{"name":"a"}}',
  },
  "only what a change has changed": {
    details: { before: queue, after: { ...queue, policy: { weight: 2.5, ageing: { step: 1, limit: 5 } } } },
    says: 'policy.ageing: null → {"limit":5,"step":1}, policy.weight: 1 → 2.5',
  },
  "a list as a whole": {
    details: { before: queue, after: { ...queue, parent: "all", quotas: [] } },
    says: 'parent: null → "all", quotas: [{"flavor":"gpu/a","nominal":4}] → []',
  },
  "a member that only one side has": { details: { before: {}, after: { freeze: 1 } }, says: "freeze: none → 1" },
  "what is beside the settings": {
    details: { before: { a: 1 }, after: { a: 2 }, job: "b" },
    says: 'a: 1 → 2, {"job":"b"}',
  },
  "nothing of the order of members": {
    details: { before: { a: { b: 1, c: 2 } }, after: { a: { c: 2, b: 1 } } },
    says: "",
  },
};

for (const [name, { details, says }] of Object.entries(cases)) {
  test(`the text of an audit entry has ${name}`, () => assert.equal(auditText(details), says));
}

test("the text of a change is empty only if both sides are equal", () => {
  const settings = fc.dictionary(fc.stringMatching(/^[a-z]{1,3}$/), fc.jsonValue());
  fc.assert(
    fc.property(settings, settings, (before, after) => {
      const isSame = JSON.stringify(sorted(before)) === JSON.stringify(sorted(after));
      assert.equal(auditText({ before, after }) === "", isSame);
    }),
  );
});

function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value !== "object" || value === null) return value;
  return Object.entries(value)
    .map(([name, inner]) => [name, sorted(inner)])
    .sort(([a], [b]) => (`${a}` < `${b}` ? -1 : 1));
}
