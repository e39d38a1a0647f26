import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { firstWhere } from "../../src/runtime/first-where.ts";

test("the first number is the one that asking for each in turn finds, and high is not asked for", () => {
  fc.assert(
    fc.property(fc.nat(20), fc.nat(20), fc.nat(50), (low, more, limit) => {
      const high = low + more;
      let expected = low;
      while (expected < high && expected < limit) expected += 1;
      const found = firstWhere(low, high, (at) => {
        assert.ok(at >= low && at < high);
        return at >= limit;
      });
      assert.equal(found, expected);
    }),
  );
});
