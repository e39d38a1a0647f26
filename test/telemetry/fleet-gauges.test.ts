import assert from "node:assert/strict";
import { test } from "node:test";
import type { FleetSurvey } from "../../src/core/admin/fleet-survey.ts";
import { boundedLabel, boundedReadings } from "../../src/telemetry/bounded-labels.ts";
import { FLAVOR_SERIES_MAX, showSurvey } from "../../src/telemetry/fleet-gauges.ts";
import { createPrometheus } from "../../src/telemetry/prometheus.ts";

const NOTHING: FleetSurvey = { clusters: [], queues: [], flavors: [], jobs: [] };

async function shown() {
  const prometheus = await createPrometheus();
  let survey: FleetSurvey | null = null;
  showSurvey(prometheus, () => survey);
  return {
    set: (now: FleetSurvey | null) => {
      survey = now;
    },
    scrape: async () =>
      (await prometheus.scrape()).body
        .split("\n")
        .filter((line) => /^gangway_(queue_(used|nominal|borrowed)|flavor_\w+|cluster_state|jobs)\{/.test(line)),
  };
}

test("a survey is shown until the next one, and nothing by a process that does not survey", async () => {
  const { set, scrape } = await shown();
  assert.deepEqual(await scrape(), []);
  set({
    clusters: [{ cluster: "east", state: "UNUSABLE", isIn: true }],
    queues: [{ queue: "ml", flavor: "gpu/h100", used: 6, nominal: 4, borrowed: 2 }],
    flavors: [{ cluster: "east", flavor: "gpu/h100", allocatable: 16, free: 10 }],
    jobs: [
      { phase: "RUNNING", reason: "", jobs: 3 },
      { phase: "WAITING", reason: "NoCapacity", jobs: 2 },
    ],
  });
  assert.deepEqual(await scrape(), [
    'gangway_queue_used{queue="ml",flavor="gpu/h100"} 6',
    'gangway_queue_nominal{queue="ml",flavor="gpu/h100"} 4',
    'gangway_queue_borrowed{queue="ml",flavor="gpu/h100"} 2',
    'gangway_flavor_allocatable{cluster="east",flavor="gpu/h100"} 16',
    'gangway_cluster_state{cluster="east",state="UNUSABLE"} 1',
    'gangway_flavor_free{cluster="east",flavor="gpu/h100"} 10',
    'gangway_jobs{phase="RUNNING",reason=""} 3',
    'gangway_jobs{phase="WAITING",reason="NoCapacity"} 2',
  ]);
  set({ ...NOTHING, jobs: [{ phase: "RUNNING", reason: "", jobs: 1 }] });
  assert.deepEqual(await scrape(), ['gangway_jobs{phase="RUNNING",reason=""} 1']);
  set(null);
  assert.deepEqual(await scrape(), []);
});

test("queues beyond the bound are summed by flavor, so that the total stays right", async () => {
  const { set, scrape } = await shown();
  const more = 10;
  const queues = Array.from({ length: FLAVOR_SERIES_MAX + more }, (_, at) => ({
    queue: `q${String(at).padStart(6, "0")}`,
    flavor: at % 2 === 0 ? "even" : "odd",
    used: 1,
    nominal: 2,
    borrowed: 0,
  }));
  set({ ...NOTHING, queues });
  const used = (await scrape()).filter((line) => line.startsWith("gangway_queue_used{"));
  assert.equal(used.length, FLAVOR_SERIES_MAX + 2);
  assert.deepEqual(used.slice(-2), [
    'gangway_queue_used{queue="(other)",flavor="even"} 5',
    'gangway_queue_used{queue="(other)",flavor="odd"} 5',
  ]);
  const sum = used.reduce((total, line) => total + Number(line.split(" ").at(-1)), 0);
  assert.equal(sum, FLAVOR_SERIES_MAX + more);
});

test("readings within the bound stay as they are", () => {
  const readings = [{ value: 1, labels: { queue: "a" } }];
  assert.deepEqual(boundedReadings(readings, { label: "queue", most: 1 }), readings);
});

test("names are labels of their own as they come, until there are too many", () => {
  const label = boundedLabel(2);
  assert.deepEqual(["a", "b", "c", "a", "d"].map(label), ["a", "b", "(other)", "a", "(other)"]);
});
