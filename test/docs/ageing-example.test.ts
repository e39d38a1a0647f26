/** Computes the example of docs/quotas-and-queues.md: jobs have the effective priorities and the order that it says. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { effectivePriority } from "../../src/core/plan/queues/ageing.ts";
import { page, tablesOf } from "./pages.ts";

const MINUTE_MS = 60_000;
/** As the page's command says. */
const AGEING = { intervalMs: 30 * MINUTE_MS, step: 5, limit: 40 };
const UNITS: Readonly<Record<string, number>> = { min: MINUTE_MS, days: 1440 * MINUTE_MS };

test("the jobs of the page's example age and go as it says", () => {
  const section = page("docs/quotas-and-queues.md").text.split("\n## Ageing\n")[1]?.split("\n## ")[0] ?? "";
  assert.match(section, /--ageing 30m --ageing-step 5 --ageing-limit 40/);
  const [rows = []] = tablesOf(section);
  assert.equal(rows.length, 5);
  const values = rows.flatMap((row) => (row["class"] === "" ? [] : [Number(row["priority"])]));
  const classValues = [...new Set(values)].sort((a, b) => a - b);
  const aged = rows.map((row) => {
    const [count = "", unit = ""] = (row["waits for"] ?? "").split(" ");
    const gang = { priority: Number(row["priority"]), waitsSinceMs: 0 };
    return { row, effective: effectivePriority(gang, { ...AGEING, classValues }, Number(count) * (UNITS[unit] ?? 0)) };
  });
  for (const { row, effective } of aged) assert.equal(String(effective), row["effective priority"]);
  const order = aged
    .toSorted((a, b) => b.effective - a.effective)
    .map(({ row }) => Number.parseInt(row["goes"] ?? "", 10));
  assert.deepEqual(order, [1, 2, 3, 4, 5]);
});
