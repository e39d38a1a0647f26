import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import type { PreemptionReason } from "../../src/core/job/preemption.ts";
import { METRIC_SOURCES } from "../../src/telemetry/metric-sources.ts";
import { METRICS, type MetricKey } from "../../src/telemetry/metrics.ts";
import { createPrometheus } from "../../src/telemetry/prometheus.ts";

const page = readFileSync(new URL("../../deploy/METRICS.md", import.meta.url), "utf8");

/** Rows of the page's table of metrics as its cells. */
function documented(): readonly string[] {
  const rows = page.split("\n").filter((line) => line.startsWith("| `gangway_"));
  return rows.map((row) => {
    const cells = row.split("|").map((cell) => cell.trim().replaceAll("`", ""));
    return cells.slice(1, 7).join(" / ");
  });
}

test("the page of metrics has each metric with its kind, labels, processes and meaning, and no other", () => {
  const known = Object.entries(METRICS).map(([key, { name, kind, labels, help }]) => {
    const { servedBy, joinedBy } = METRIC_SOURCES[key as MetricKey];
    return [name, kind, labels.join(", "), servedBy, joinedBy, help].join(" / ");
  });
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

test("the page says which processes each of its words names", () => {
  for (const { servedBy } of Object.values(METRIC_SOURCES)) {
    assert.match(page, new RegExp(`^\\| ${servedBy} +\\| [^|]{20,}\\|$`, "m"), servedBy);
  }
});

test("what happens is summed over processes", () => {
  for (const [key, { kind, name }] of Object.entries(METRICS)) {
    // Every process notes the same step of a clock.
    if (kind === "gauge" || name === "gangway_clock_steps_total") continue;
    assert.equal(METRIC_SOURCES[key as MetricKey].joinedBy, "sum", name);
  }
});

test("every label of a metric has its bound on the page", () => {
  const [, bounds = ""] = page.split("### How many series there are");
  const [table = ""] = bounds.split("###");
  const rest = [
    "resource",
    "verb",
    "object",
    "of",
    "call",
    "advanced",
    "repaired",
    "scope",
    "limit",
    "clock",
    "shortage",
  ];
  const unbounded = Object.values(METRICS).flatMap(({ labels }) =>
    (labels as readonly string[]).filter((label) => !table.includes(`\`${label}\``) && !rest.includes(label)),
  );
  assert.deepEqual(unbounded, []);
});
