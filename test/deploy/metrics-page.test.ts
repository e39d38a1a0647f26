import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import type { PreemptionReason } from "../../src/core/job/preemption.ts";
import { METRICS } from "../../src/telemetry/metrics.ts";
import { createPrometheus } from "../../src/telemetry/prometheus.ts";

const page = readFileSync(new URL("../../deploy/METRICS.md", import.meta.url), "utf8");

/** Rows of the page's table of metrics as name, kind and labels. */
function documented(): readonly string[] {
  const rows = page.split("\n").filter((line) => line.startsWith("| `gangway_"));
  return rows.map((row) => {
    const cells = row.split("|").map((cell) => cell.trim().replaceAll("`", ""));
    return cells.slice(1, 5).join(" / ");
  });
}

test("the page of metrics has each metric with its kind, labels and meaning, and no other", () => {
  const known = Object.values(METRICS).map(({ name, kind, labels, help }) =>
    [name, kind, labels.join(", "), help].join(" / "),
  );
  assert.deepEqual(documented(), known);
});

test("the pages name every reason of a preemption", () => {
  const reasons: Readonly<Record<PreemptionReason, true>> = {
    InClusterQueue: true,
    InCohortReclamation: true,
    InCohortReclaimWhileBorrowing: true,
    InCohortFairSharing: true,
    Reservation: true,
  };
  const queues = readFileSync(new URL("../../docs/quotas-and-queues.md", import.meta.url), "utf8");
  for (const reason of Object.keys(reasons)) {
    assert.ok(page.includes(`\`${reason}\``), reason);
    assert.match(queues, new RegExp(`^\\| \`${reason}\` `, "m"));
  }
});

test("every metric that the page's text names exists", () => {
  const names = new Set<string>(Object.values(METRICS).map(({ name }) => name));
  const named = [...page.matchAll(/\bgangway_\w+/g)].map(([name]) => name);
  assert.ok(named.length > names.size);
  assert.deepEqual(
    named.filter((name) => !names.has(name)),
    [],
  );
});

test("a scrape has every metric of the page", async () => {
  const { body } = await (await createPrometheus()).scrape();
  const missing = Object.values(METRICS).filter(({ name, kind }) => !body.includes(`# TYPE ${name} ${kind}\n`));
  assert.deepEqual(missing, []);
});
