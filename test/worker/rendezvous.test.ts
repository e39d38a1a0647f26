import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { BUCKETS } from "../../src/core/job/bucket.ts";
import { ownerOf } from "../../src/worker/rendezvous.ts";

const workers = fc.uniqueArray(fc.string({ minLength: 1, maxLength: 12 }), { minLength: 1, maxLength: 8 });
const all = Array.from({ length: BUCKETS }, (_, bucket) => bucket);

test("the buckets of a worker that leaves go to the others, and no other bucket moves", () => {
  fc.assert(
    fc.property(workers, fc.nat(), (names, at) => {
      const gone = names[at % names.length] as string;
      const others = names.filter((name) => name !== gone);
      for (const bucket of all) {
        const before = ownerOf(bucket, names);
        const after = ownerOf(bucket, others);
        if (before !== gone) assert.equal(after, before);
        else assert.equal(after === null, others.length === 0);
      }
    }),
  );
});

test("a bucket has the same owner in whatever order the workers are listed", () => {
  fc.assert(
    fc.property(workers, (names) => {
      for (const bucket of all) assert.equal(ownerOf(bucket, names), ownerOf(bucket, [...names].reverse()));
    }),
  );
});

test("workers with similar names get shares of similar size", () => {
  for (const count of [2, 3, 5, 10]) {
    const names = Array.from({ length: count }, (_, at) => `host/${4711 + at}/aabbccdd/1`);
    const shares = names.map((name) => all.filter((bucket) => ownerOf(bucket, names) === name).length);
    for (const share of shares) assert.ok(Math.abs(share - BUCKETS / count) < (0.4 * BUCKETS) / count, shares.join());
  }
});
