import assert from "node:assert/strict";
import { test } from "node:test";
import { createTelemetry } from "../../src/telemetry/events.ts";
import { createPrometheus } from "../../src/telemetry/prometheus.ts";

test("the depth of each queue is shown until the queue is deleted", async () => {
  const prometheus = await createPrometheus();
  const telemetry = createTelemetry({ level: "silent", file: null, meter: prometheus });
  const shown = async () => {
    const { body } = await prometheus.scrape();
    return body.split("\n").filter((line) => line.startsWith("gangway_queue_depth{"));
  };
  assert.deepEqual(await shown(), []);
  const planned = (depths: Readonly<Record<string, number>>) =>
    telemetry.planned({ planMs: 1, depths: new Map(Object.entries(depths)), reservations: 0 });
  planned({ ml: 2, nlp: 0 });
  assert.deepEqual(await shown(), ['gangway_queue_depth{queue="ml"} 2', 'gangway_queue_depth{queue="nlp"} 0']);
  planned({ ml: 0 });
  assert.deepEqual(await shown(), ['gangway_queue_depth{queue="ml"} 0']);
});

test("a planner that does not lead any more shows no queues, and no reservation", async () => {
  const prometheus = await createPrometheus();
  const telemetry = createTelemetry({ level: "silent", file: null, meter: prometheus });
  const shown = async () =>
    (await prometheus.scrape()).body.split("\n").filter((line) => /^gangway_(queue_depth|reservations)\b/.test(line));
  telemetry.planned({ planMs: 1, depths: new Map([["ml", 2]]), reservations: 1 });
  assert.deepEqual(await shown(), ['gangway_queue_depth{queue="ml"} 2', "gangway_reservations 1"]);
  telemetry.plannerRested();
  assert.deepEqual(await shown(), ["gangway_reservations 0"]);
});
