import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { countOf, countWithin, readRanges, writeRanges } from "../../src/runtime/index-ranges.ts";

const INDEX_MAX = 40;

const someIndexes = fc
  .uniqueArray(fc.nat({ max: INDEX_MAX }), { minLength: 1, maxLength: 20 })
  .map((list) => [...list].sort((a, b) => a - b));

test("ranges have exactly the indexes that were written", () => {
  fc.assert(
    fc.property(someIndexes, someIndexes, (written, asked) => {
      const ranges = readRanges(writeRanges(written));
      assert.ok(ranges);
      assert.equal(countOf(ranges), written.length);
      assert.equal(countWithin(ranges, asked), asked.filter((index) => written.includes(index)).length);
    }),
  );
});

for (const text of [
  "",
  ",",
  "1,",
  "-1",
  "1-",
  "3-2",
  "2-2",
  "1,1",
  "2,1",
  "0-3,3",
  "a",
  "0-1-2",
  " 1",
  "1.5",
  "1".repeat(11),
]) {
  test(`no list of indexes: ${JSON.stringify(text)}`, () => assert.equal(readRanges(text), null));
}

test("a long list is read in linear time, and one that is too long is refused", () => {
  const long = Array.from({ length: 10_000 }, (_, at) => String(at * 2)).join(",");
  assert.equal(countOf(readRanges(long) ?? []), 10_000);
  assert.equal(readRanges(`${long},${"9".repeat(10)},${"0".repeat(65_536)}`), null);
});
