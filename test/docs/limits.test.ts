/** docs/api.md has the limits of requests as the proto files declare them. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { limitedFields, withLimitsTable } from "../../proto/limits-table.ts";
import { page } from "./pages.ts";

test("the table of limits has every field of a request that can be large, with what it declares", () => {
  const { text } = page("docs/api.md");
  assert.equal(withLimitsTable(text), text, "run npm run generate");
  assert.ok(limitedFields().length > 150);
});
