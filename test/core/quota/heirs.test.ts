import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { cutsOf, type Heir } from "../../../src/core/quota/heirs.ts";

const heir: fc.Arbitrary<Heir> = fc.record({ id: fc.nat(3), lacks: fc.nat(6) }).map((of) => ({
  ...of,
  jobUid: `job-${of.id}`,
  admission: 1,
  pool: "gpu",
  queue: "q",
  project: "p",
  namespace: "n",
}));
const heirs = fc.uniqueArray(heir, { selector: ({ id }) => id, maxLength: 4 });
const lines = fc
  .tuple(
    heirs,
    fc.array(fc.record({ amount: fc.integer({ min: 1, max: 9 }), kept: fc.nat(8), of: fc.array(fc.nat(3)) })),
  )
  .map(([all, made]) =>
    made.map(({ amount, kept, of }, at) => ({
      at,
      amount,
      kept: Math.min(kept, amount - 1),
      heirs: [...new Set(of)].flatMap((id) => all.filter((one) => one.id === id)),
    })),
  );

test("heirs get what is taken from their lines, up to what they lack, and the rest goes free only then", () => {
  fc.assert(
    fc.property(lines, (reduced) => {
      const cuts = cutsOf(reduced);
      const given = new Map<number, number>();
      for (const line of reduced) {
        let left = line.amount;
        for (const cut of cuts.filter((one) => one.line === line)) {
          assert.ok(cut.amount >= 1);
          assert.ok(line.heirs.includes(cut.heir));
          left -= cut.amount;
          assert.equal(cut.kept, left, "each cut takes what it gives");
          given.set(cut.heir.id, (given.get(cut.heir.id) ?? 0) + cut.amount);
        }
        assert.ok(left >= line.kept, "a line keeps what it is to keep");
        // Tokens go free only if every heir of the line has all that it lacks.
        if (left > line.kept) for (const { id, lacks } of line.heirs) assert.equal(given.get(id) ?? 0, lacks);
      }
      for (const { heirs: all } of reduced) for (const { id, lacks } of all) assert.ok((given.get(id) ?? 0) <= lacks);
    }),
    { numRuns: 1_000 },
  );
});

test("the heir that was named first is served first", () => {
  const [a, b] = [1, 2].map((id) => ({ ...base, id, lacks: 3 })) as [Heir, Heir];
  const cuts = cutsOf([{ amount: 5, kept: 0, heirs: [b, a] }]);
  assert.deepEqual(
    cuts.map(({ heir: { id }, amount, kept }) => [id, amount, kept]),
    [
      [2, 3, 2],
      [1, 2, 0],
    ],
  );
});

const base = { jobUid: "j", admission: 1, pool: "gpu", queue: "q", project: "p", namespace: "n" };
