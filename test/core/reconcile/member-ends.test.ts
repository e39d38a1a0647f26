/** Members that have ended do not run a second time because their pods go. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { SentRunPolicy } from "../../../src/core/job/request/sent.ts";
import { reconcile } from "../../../src/core/reconcile/reconcile.ts";
import { names, pytorch, Scene } from "./scene.ts";
import { admit, CONFIG, template } from "./world.ts";

const twoWorkers = (runPolicy: SentRunPolicy = {}) => {
  const sent = pytorch(runPolicy);
  return new Scene({
    ...sent,
    replicaSpecs: { ...sent.replicaSpecs, Worker: { ...sent.replicaSpecs["Worker"]!, replicas: 2 } },
  });
};
/** Dynamic workers, whose failures do not end the job. */
const dynamic = (runPolicy: SentRunPolicy = {}) => {
  const worker = { replicas: 3, restartPolicy: "Never" as const, template: template("tensorflow") };
  const kindSpec = { enableDynamicWorker: true };
  return new Scene({ kind: "TFJob", replicaSpecs: { Worker: worker }, kindSpec, runPolicy }, "tensorflow");
};

/** Others remove a pod, as the node's removal does. */
const remove = (scene: Scene, name: string) => {
  scene.cluster.things = scene.cluster.things.filter((thing) => thing.kind !== "pod" || thing.name !== name);
};
const minutePasses = (scene: Scene) => {
  for (let round = 0; round < 12; round++) {
    scene.nowMs += 5_000;
    assert.deepEqual(names(scene.step(), "createPod"), []);
  }
};

describe("a member that has succeeded", () => {
  const succeeded = (scene: Scene) => {
    scene.start();
    scene.set("j-worker-0", "Succeeded", { exitCode: 0 });
    scene.step();
    remove(scene, "j-worker-0");
    return scene;
  };

  test("is not made again when its pod goes, and counts as before", () => {
    const scene = succeeded(twoWorkers());
    minutePasses(scene);
    const { status } = scene.job;
    assert.deepEqual(status.replicaStatuses["Worker"], { active: 1, succeeded: 1, failed: 0 });
    assert.equal(status.pods?.phases["Worker/0"], "SUCCESS");
    assert.deepEqual([status.phase, status.podProblems], ["RUNNING", undefined]);
    assert.equal(scene.job.admissions[0]?.belowMinSinceMs, null, "it counts for the minimum");
  });

  test("lets the job succeed with the others", () => {
    const sent = pytorch();
    const scene = new Scene({ ...sent, replicaSpecs: { Worker: { ...sent.replicaSpecs["Worker"]!, replicas: 2 } } });
    succeeded(scene);
    scene.set("j-worker-1", "Succeeded", { exitCode: 0 });
    scene.step();
    assert.equal(scene.job.status.phase, "SUCCEEDED");
  });

  test("starts anew with the whole gang", () => {
    const scene = succeeded(twoWorkers({ restartScope: "GANG" }));
    scene.set("j-worker-1", "Failed", { exitCode: 1 });
    scene.rest();
    assert.equal(scene.job.admissions[0]?.ended, undefined);
    scene.nowMs += 60_000;
    scene.rest();
    assert.deepEqual(scene.podNames, ["j-master-0", "j-worker-0", "j-worker-1"]);
  });

  test("starts anew under the next admission", () => {
    const scene = succeeded(twoWorkers());
    scene.change({ suspend: true });
    scene.rest();
    scene.change({ suspend: false });
    scene.rest();
    scene.job = admit(scene.job, { cluster: "c1", nowMs: scene.nowMs, number: 2 });
    scene.rest();
    assert.deepEqual(scene.podNames, ["j-master-0", "j-worker-0", "j-worker-1"]);
  });

  test("is known although no pass has seen its pod as ended", () => {
    const scene = twoWorkers().start();
    scene.set("j-worker-0", "Succeeded", { exitCode: 0 });
    const seen = scene.cluster.observe({ nowMs: scene.nowMs, lagMs: 0 });
    const gone = seen.pods.filter(({ name }) => name === "j-worker-0");
    const lost = gone.map((pod) => ({ ...pod, deleting: true, endedFirst: true }));
    const pods = seen.pods.filter(({ name }) => name !== "j-worker-0");
    const decision = reconcile(scene.job, [{ ...seen, pods, lost }], scene.nowMs, CONFIG);
    assert.deepEqual(names(decision, "createPod"), []);
    assert.deepEqual(decision.record?.admissions[0]?.ended, { "Worker/0": "SUCCEEDED" });
  });

  test("is made again if it went while nobody watched, or ended because it was deleted", () => {
    const scene = twoWorkers().start();
    const pod = scene.cluster.pods().find(({ name }) => name === "j-worker-0")!;
    scene.cluster.change(pod, { deleting: true, deletedMs: scene.nowMs });
    scene.set("j-worker-0", "Succeeded", { exitCode: 0 });
    scene.step();
    assert.equal(scene.job.admissions[0]?.ended, undefined);
    remove(scene, "j-worker-0");
    assert.deepEqual(names(scene.step(), "createPod"), ["j-worker-0"]);
  });
});

test("a pod that a late call makes of a member that has ended is deleted", () => {
  const scene = twoWorkers().start();
  const pod = scene.cluster.pods().find(({ name }) => name === "j-worker-0")!;
  scene.set("j-worker-0", "Succeeded", { exitCode: 0 });
  scene.step();
  remove(scene, "j-worker-0");
  scene.step();
  scene.cluster.things = [...scene.cluster.things, { ...pod, uid: "late" }];
  assert.deepEqual(names(scene.step(), "deletePod"), ["j-worker-0"]);
  assert.deepEqual(scene.job.status.replicaStatuses["Worker"]?.succeeded, 1);
});

describe("a member that has failed", () => {
  test("for good is not made again when its pod goes, and is not required", () => {
    const scene = dynamic().start();
    scene.set("j-worker-0", "Failed", { exitCode: 1 });
    scene.step();
    remove(scene, "j-worker-0");
    minutePasses(scene);
    assert.deepEqual(scene.job.status.replicaStatuses["Worker"], { active: 2, succeeded: 0, failed: 1 });
    assert.equal(scene.job.admissions[0]?.belowMinSinceMs, null);
  });

  test("for good ends the job with the others, although their pods are gone", () => {
    const scene = dynamic().start();
    for (const name of ["j-worker-0", "j-worker-1", "j-worker-2"]) {
      scene.set(name, "Failed", { exitCode: 1 });
      scene.step();
      remove(scene, name);
    }
    assert.equal(scene.job.status.phase, "FAILED");
  });

  test("and is retried has not ended", () => {
    const scene = twoWorkers().start();
    scene.set("j-worker-0", "Failed", { exitCode: 1 });
    scene.step();
    assert.equal(scene.job.admissions[0]?.ended, undefined);
    scene.cluster.collect();
    scene.nowMs += 10_000;
    assert.deepEqual(names(scene.step(), "createPod"), ["j-worker-0"]);
  });

  test("is forgotten by a scale-down", () => {
    const scene = dynamic({ schedulingPolicy: { minAvailable: 1 } }).start();
    scene.set("j-worker-2", "Failed", { exitCode: 1 });
    scene.step();
    assert.equal(scene.change({ replicas: { Worker: 2 } }), "changed");
    scene.rest();
    assert.equal(scene.job.admissions[0]?.ended, undefined);
  });
});
