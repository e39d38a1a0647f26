import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { parse } from "yaml";
import { METRICS, type MetricDefinition } from "../../src/telemetry/metrics.ts";

const read = (file: string) => readFileSync(new URL(`../../deploy/${file}`, import.meta.url), "utf8");

type Rule = {
  readonly alert: string;
  readonly expr: string;
  readonly annotations: { readonly summary: string; readonly description: string };
};
type Panel = { readonly id: number; readonly title: string; readonly targets: readonly { readonly expr: string }[] };

const rules = (parse(read("alerts.yaml")) as { groups: readonly { rules: readonly Rule[] }[] }).groups.flatMap(
  (group) => group.rules,
);
const { panels } = JSON.parse(read("dashboard.json")) as { readonly panels: readonly Panel[] };

const byName = new Map<string, MetricDefinition>(Object.values(METRICS).map((metric) => [metric.name, metric]));

/** The series in a query that no metric has, and the labels that its metric does not have. */
function unknownIn(expr: string): readonly string[] {
  return [...expr.matchAll(/\b(gangway_\w+)(?:\{([^}]*)\})?/g)].flatMap(([, series = "", matchers = ""]) => {
    const metric = byName.get(series) ?? byName.get(series.replace(/_(bucket|sum|count)$/, ""));
    if (metric === undefined) return [series];
    const labels = [...matchers.matchAll(/(\w+)\s*(?:=~|!=|!~|=)/g)].map(([, label = ""]) => label);
    return labels.filter((label) => !metric.labels.includes(label)).map((label) => `${series}{${label}}`);
  });
}

test("every alert uses existing series and labels, and says what to do", () => {
  assert.deepEqual(
    rules.flatMap(({ expr }) => unknownIn(expr)),
    [],
  );
  for (const { alert, expr, annotations } of rules) {
    assert.match(expr, /gangway_/, alert);
    assert.ok(annotations.summary.length > 10 && annotations.description.length > 10, alert);
  }
});

test("each fault of tokens that an on-call engineer must know of has an alert", () => {
  const asked = rules.map(({ expr }) => expr).join("\n");
  for (const series of ["pool_over_limit", "domain_open", "ticks_total", "pool_waiters"]) {
    assert.ok(asked.includes(`gangway_quota_${series}`), series);
  }
});

test("every panel of the dashboard shows series that exist", () => {
  assert.equal(new Set(panels.map(({ id }) => id)).size, panels.length);
  assert.deepEqual(
    panels.flatMap(({ targets }) => targets.flatMap(({ expr }) => unknownIn(expr))),
    [],
  );
});
