import assert from "node:assert/strict";
import { test } from "node:test";
import { searchesBeside } from "../../src/planner/fleet-planner.ts";

test("a round searches for more gangs beside more changes, and for most of them beside none", () => {
  const searches = [1, 2, 10, 100, 10_000].map(searchesBeside);
  assert.deepEqual(searches, [1, 2, 10, 25, 25]);
  assert.ok(searchesBeside(0) > Math.max(...searches));
});
