import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { parse } from "yaml";
import { METRIC_SOURCES } from "../../src/telemetry/metric-sources.ts";
import { METRICS, type MetricDefinition, type MetricKey } from "../../src/telemetry/metrics.ts";
import { assertRecorded } from "../support/recorded-text.ts";

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
type Dashboard = {
  readonly uid: string;
  readonly panels: readonly Panel[];
  readonly templating: { readonly list: readonly { readonly type: string; readonly query: string }[] };
};
const dashboards = ["dashboard.json", "dashboard-operators.json"].map((file) => JSON.parse(read(file)) as Dashboard);

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

test("each fault that stops jobs or calls has an alert", () => {
  const asked = rules.map(({ expr }) => expr).join("\n");
  for (const series of ["internal_errors_total", "loop_failures_total", "buckets_held", "cluster_silence_seconds"]) {
    assert.ok(asked.includes(`gangway_${series}`), series);
  }
});

test("every panel and every variable of the dashboards uses series that exist", () => {
  assert.equal(new Set(dashboards.map(({ uid }) => uid)).size, dashboards.length);
  for (const { panels, templating } of dashboards) {
    assert.equal(new Set(panels.map(({ id }) => id)).size, panels.length);
    const queries = templating.list.filter(({ type }) => type === "query").map(({ query }) => query);
    const exprs = panels.flatMap(({ targets }) => targets.map(({ expr }) => expr));
    assert.deepEqual([...exprs, ...queries].flatMap(unknownIn), []);
    for (const expr of exprs) assert.match(expr, /gangway_/);
  }
});

/** Series of what operators ask about. */
const SHOWN = [
  ...["queue_used", "queue_nominal", "queue_borrowed", "flavor_allocatable", "flavor_free", "jobs", "jobs_ended_total"],
  ...["admission_wait_seconds", "api_call_duration_seconds", "internal_errors_total", "cluster_silence_seconds"],
  ...["bucket_moves_total", "buckets_held", "queue_depth"],
];

test("the operators' dashboard shows use, quota and GPUs, jobs, waits, calls, clusters and buckets", () => {
  const exprs = dashboards[1]?.panels.flatMap(({ targets }) => targets.map(({ expr }) => expr)).join("\n") ?? "";
  for (const series of SHOWN) assert.match(exprs, new RegExp(`gangway_${series}(_bucket|_count)?\\b`), series);
});

test("panels and alerts join the values of processes as the page of metrics says", () => {
  const sources = new Map(Object.entries(METRICS).map(([key, { name }]) => [name, METRIC_SOURCES[key as MetricKey]]));
  const exprs = [...rules, ...dashboards.flatMap(({ panels }) => panels.flatMap(({ targets }) => targets))];
  for (const { expr } of exprs) {
    for (const [, joined = "", name = ""] of expr.matchAll(/(sum|max|min)(?: by \([^)]*\))? ?\((gangway_\w+)/g)) {
      assert.equal(joined, sources.get(name as never)?.joinedBy, expr);
    }
  }
});

test("the rules for the Prometheus operator are the same ones", () => {
  const [, groups = ""] = read("alerts.yaml").split(/^(?=groups:)/m);
  const indented = groups.replaceAll(/^(?=.)/gm, "  ");
  const head = [
    "# The rules of ../../alerts.yaml for the Prometheus operator. A test writes this file from them:",
    "#   GANGWAY_RECORD=transcripts npm test -- test/deploy/monitoring.test.ts",
    "apiVersion: monitoring.coreos.com/v1",
    "kind: PrometheusRule",
    "metadata:",
    "  name: gangway",
    "spec:",
  ];
  const file = new URL("../../deploy/kubernetes/monitoring/prometheus-rule.yaml", import.meta.url);
  assertRecorded(file, `${head.join("\n")}\n${indented}`);
  assert.deepEqual(parse(readFileSync(file, "utf8")).spec, parse(read("alerts.yaml")));
});
