/** Tables of the pages are those that the code gives: of limits, of what is judged in a pod, and of settings. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { withJudgedTable } from "../../proto/judged-table.ts";
import { limitedFields, withLimitsTable } from "../../proto/limits-table.ts";
import { withSettingsTable } from "../../proto/settings-table.ts";
import { page } from "./pages.ts";

test("the table of limits has every field of a request that can be large, with what it declares", () => {
  const { text } = page("docs/api.md");
  assert.equal(withLimitsTable(text), text, "run npm run generate");
  assert.ok(limitedFields().length > 150);
});

test("the table of what is judged in a pod has every rule", () => {
  const { text } = page("docs/pods.md");
  assert.equal(withJudgedTable(text), text, "run npm run generate");
});

test("the table of a job's settings has every setting", () => {
  const { text } = page("docs/jobs.md");
  assert.equal(withSettingsTable(text), text, "run npm run generate");
});
