import assert from "node:assert/strict";
import { test } from "node:test";
import type { PlannedVictim, PreemptionRecord, PreemptOutcome } from "../../src/core/plan/model/preemption.ts";
import type { PlannerStore } from "../../src/planner/ports.ts";
import { systemClock } from "../../src/runtime/clock.ts";
import { createTelemetry } from "../../src/telemetry/events.ts";
import type { Meter } from "../../src/telemetry/metrics.ts";
import { observePlannerStore } from "../../src/telemetry/observe-stores.ts";
import { NOW, newJob, plannedFor } from "../store/jobs.ts";
import { OWN_KINDS } from "../support/kinds.ts";

const victim = (reason: PlannedVictim["reason"]): PlannedVictim => {
  return { jobUid: newJob().uid, queue: "theirs", admission: 1, members: {}, reason };
};

const recordOf = (queue: string, victims: readonly PlannedVictim[]): PreemptionRecord => {
  return { planned: plannedFor(newJob({ queue })), victims, queue };
};

test("each victim that is asked to go counts once, by its cause and the queue that it makes room for", async () => {
  const counts: unknown[] = [];
  const meter: Meter = { record: (...given) => void counts.push(given), read: () => {} };
  const telemetry = createTelemetry({ level: "silent", file: "/dev/null", meter });
  const [a, b, c] = [victim("InCohortReclamation"), victim("InClusterQueue"), victim("InCohortFairSharing")];
  const outcomes: readonly PreemptOutcome[] = [
    { kind: "recorded", evicted: [a, b] },
    { kind: "stale" },
    { kind: "recorded", evicted: [] },
  ];
  const answering: Pick<PlannerStore, "recordAdmissions" | "recordPreemptions"> = {
    recordAdmissions: async () => [],
    recordPreemptions: async () => outcomes,
  };
  const ports = { clock: systemClock(), telemetry, kinds: OWN_KINDS, tracing: null };
  const store = observePlannerStore(answering, ports);
  const records = [recordOf("ml", [a, b]), recordOf("nlp", [c]), recordOf("nlp", [a])];
  assert.deepEqual(await store.recordPreemptions(records, 1, NOW), outcomes);
  assert.deepEqual(counts, [
    ["preemptions", 1, { reason: "InCohortReclamation", queue: "ml" }],
    ["preemptions", 1, { reason: "InClusterQueue", queue: "ml" }],
  ]);
});
