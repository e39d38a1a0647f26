import assert from "node:assert/strict";
import { test } from "node:test";
import { countActions, countRecord } from "../../src/telemetry/count-changes.ts";
import { createTelemetry } from "../../src/telemetry/events.ts";
import type { Meter, MetricLabels } from "../../src/telemetry/metrics.ts";
import { pytorch, Scene } from "../core/reconcile/scene.ts";
import { OWN_KINDS } from "../support/kinds.ts";

function measured() {
  const counts = new Map<string, number>();
  const record = (metric: string, value: number, labels: MetricLabels = {}) => {
    const { kind, cluster, object, change, phase, reason } = labels as Record<string, string | undefined>;
    const key = [metric, kind, cluster, object, change, phase, reason].filter(Boolean).join(" ");
    counts.set(key, (counts.get(key) ?? 0) + value);
  };
  const meter = { record, read: () => {} } as Meter;
  return { counts, telemetry: createTelemetry({ level: "silent", file: "/dev/null", meter }) };
}

test("a job's restarts, end and objects are counted once each, by kind and cluster", () => {
  const { counts, telemetry } = measured();
  const one = new Scene(pytorch({ backoffLimit: 2, cleanPodPolicy: "All" }));
  const step = () => {
    const { job } = one;
    const decision = one.step();
    countRecord({ telemetry, kinds: OWN_KINDS }, job, decision);
    countActions(
      { telemetry, kinds: OWN_KINDS },
      job,
      decision.actions.map((action) => ({ action, outcome: { kind: "done" } })),
    );
    one.cluster.collect();
  };
  step();
  for (const { name } of one.cluster.pods()) one.set(name, "Running");
  step();
  one.set("j-worker-0", "Failed", { exitCode: 1 });
  for (let round = 0; round < 3; round++) step();
  one.nowMs += 60_000;
  step();
  one.set("j-worker-0", "Failed", { exitCode: 1 });
  for (let round = 0; round < 3; round++) step();
  assert.deepEqual(Object.fromEntries(counts), {
    "jobChanges PyTorchJob c1 failed": 1,
    "jobChanges PyTorchJob c1 restarted": 1,
    "jobsEnded FAILED BackoffLimitExceeded": 1,
    "objectChanges PyTorchJob c1 pod created": 4,
    "objectChanges PyTorchJob c1 pod deleted": 4,
    "objectChanges PyTorchJob c1 pod failed": 2,
    "objectChanges PyTorchJob c1 service created": 3,
    "objectChanges PyTorchJob c1 service deleted": 3,
  });
});
