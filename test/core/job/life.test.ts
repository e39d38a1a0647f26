import assert from "node:assert/strict";
import { test } from "node:test";
import { reconcile } from "../../../src/core/reconcile/reconcile.ts";
import { admit, CONFIG, jobOf, podStatus, recorded, START_MS, TinyCluster, template } from "../reconcile/world.ts";

test("a PyTorchJob starts, runs, succeeds, is cleaned up, releases its tokens, and its record is deleted", () => {
  const cluster = new TinyCluster("c1");
  let job = jobOf({
    kind: "PyTorchJob",
    replicaSpecs: { Master: { template: template("pytorch") }, Worker: { replicas: 2, template: template("pytorch") } },
    runPolicy: { cleanPodPolicy: "All", ttlSecondsAfterFinished: 60 },
  });
  let nowMs = START_MS;
  const phases: string[] = [];
  const step = () => {
    const decision = reconcile(job, [cluster.observe({ nowMs, lagMs: 0 })], nowMs, CONFIG);
    job = recorded(job, decision);
    for (const action of decision.actions) cluster.act(action, nowMs);
    if (phases.at(-1) !== job.status.phase) phases.push(job.status.phase);
    nowMs += 1000;
    return decision;
  };
  step();
  job = admit(job, { cluster: "c1", nowMs, number: 1 });
  const first = step();
  assert.deepEqual(
    first.actions.map(({ kind }) => kind),
    ["createAnchor", "createService", "createService", "createService", "createPod", "createPod", "createPod"],
  );
  for (const pod of cluster.pods()) cluster.setPod(pod, podStatus("Running", "pytorch"));
  step();
  assert.equal(step().record, null);
  cluster.setPod(cluster.pods()[0]!, podStatus("Succeeded", "pytorch", { exitCode: 0 }));
  step();
  assert.equal(job.admissions[0]?.state, "ended");
  step();
  cluster.collect();
  cluster.collect();
  assert.deepEqual(cluster.things, []);
  step();
  assert.notEqual(job.admissions[0]?.tokensReleasedMs, null);
  assert.equal(job.deleteTimeMs, null);
  nowMs += 60_000;
  step();
  assert.notEqual(job.deleteTimeMs, null);
  assert.equal(step().forget, true);
  assert.deepEqual(phases, ["WAITING", "STARTING", "RUNNING", "SUCCEEDED"]);
});
