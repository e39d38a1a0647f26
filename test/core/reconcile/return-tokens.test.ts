/** Members that have ended give their tokens back while the others run on, and never run without them. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { drainingAdmission, type Job, liveAdmission } from "../../../src/core/job/job.ts";
import type { SentRunPolicy } from "../../../src/core/job/request/sent.ts";
import { holdingMembers } from "../../../src/core/job/roles.ts";
import type { Admission } from "../../../src/core/job/status.ts";
import { OUTSTANDING_MS } from "../../../src/core/reconcile/decision-draft.ts";
import { reconcile } from "../../../src/core/reconcile/reconcile.ts";
import { names, Scene } from "./scene.ts";
import { admit, CONFIG, FLAVORS, template } from "./world.ts";

/** A gang of four workers with one GPU each, and a master without, all of which run. */
const gang = (runPolicy: SentRunPolicy = {}, restartPolicy: "OnFailure" | "Never" = "OnFailure") => {
  const scene = new Scene({
    kind: "PyTorchJob",
    replicaSpecs: {
      Master: { restartPolicy, template: template("pytorch") },
      Worker: { replicas: 4, restartPolicy, template: template("pytorch", 1) },
    },
    runPolicy,
  });
  return running(scene);
};
/** Dynamic workers, whose number may change and whose failures do not end the job. */
const dynamic = () => {
  const worker = { replicas: 4, restartPolicy: "Never" as const, template: template("tensorflow", 1) };
  const kindSpec = { enableDynamicWorker: true };
  const runPolicy = { schedulingPolicy: { minAvailable: 1 } };
  return running(new Scene({ kind: "TFJob", replicaSpecs: { Worker: worker }, kindSpec, runPolicy }, "tensorflow"));
};
const running = (scene: Scene) => {
  scene.job = withAdmission(scene.job, { flavors: FLAVORS });
  scene.start();
  scene.nowMs += 60_000;
  return scene;
};
const withAdmission = (job: Job, changed: Partial<Admission>): Job => ({
  ...job,
  admissions: job.admissions.map((one) => ({ ...one, ...changed })),
});

const admissionOf = (scene: Scene) => scene.job.admissions.at(-1)!;
const holding = (scene: Scene) => holdingMembers(admissionOf(scene))["Worker"];
const succeed = (scene: Scene, ...workers: readonly number[]) => {
  for (const index of workers) scene.set(`j-worker-${index}`, "Succeeded", { exitCode: 0 });
  return scene.step();
};
const remove = (scene: Scene, name: string) => {
  scene.cluster.things = scene.cluster.things.filter((thing) => thing.kind !== "pod" || thing.name !== name);
};
const reasons = (decision: ReturnType<Scene["step"]>) => decision.record?.events.map(({ reason }) => reason) ?? [];

describe("a member that has ended", () => {
  test("gives its tokens back once its pod has ended, and stays a member", () => {
    const scene = gang();
    const decision = succeed(scene, 1, 3);
    assert.deepEqual(admissionOf(scene).returned, { Worker: [1, 3] });
    assert.deepEqual(admissionOf(scene).members, { Master: 1, Worker: 4 });
    assert.equal(holding(scene), 2);
    assert.ok(reasons(decision).includes("TokensReleased"));
    assert.equal(scene.step().record, null, "nothing more is recorded");
    assert.deepEqual([scene.job.status.phase, admissionOf(scene).belowMinSinceMs], ["RUNNING", null]);
  });

  test("gives them back together with those that end later", () => {
    const scene = gang();
    succeed(scene, 3);
    succeed(scene, 0, 2);
    assert.deepEqual(admissionOf(scene).returned, { Worker: [0, 2, 3] });
  });

  test("for good by a failure gives them back too", () => {
    const scene = dynamic();
    scene.set("j-worker-2", "Failed", { exitCode: 1 });
    scene.step();
    assert.deepEqual(admissionOf(scene).returned, { Worker: [2] });
    assert.equal(admissionOf(scene).belowMinSinceMs, null, "it is not required");
  });

  test("gives back nothing if its pods request no tokens, or the gang holds none", () => {
    const scene = gang();
    scene.job = withAdmission(scene.job, { flavors: {} });
    succeed(scene, 1);
    assert.equal(admissionOf(scene).returned, undefined);
    const other = dynamic();
    other.job = withAdmission(other.job, { flavors: { "example.com/tpu": "tpu/v5" } });
    succeed(other, 1);
    assert.equal(admissionOf(other).returned, undefined);
  });

  test("keeps them while a container of its pod runs on", () => {
    const scene = gang();
    const pod = scene.cluster.pods().find(({ name }) => name === "j-worker-1")!;
    const ended = { name: "pytorch", ready: false, state: { terminated: { exitCode: 0 } } };
    const beside = { name: "beside", ready: true, state: { running: {} } };
    scene.cluster.setPod(pod, { phase: "Running", containerStatuses: [ended, beside] });
    scene.step();
    assert.deepEqual(admissionOf(scene).ended, { "Worker/1": "SUCCEEDED" });
    assert.equal(admissionOf(scene).returned, undefined);
    succeed(scene, 1);
    assert.deepEqual(admissionOf(scene).returned, { Worker: [1] });
  });

  test("and whose failure is retried keeps them", () => {
    const scene = gang();
    scene.set("j-worker-1", "Failed", { exitCode: 1 });
    scene.step();
    assert.equal(admissionOf(scene).returned, undefined);
  });

  test("keeps them until no late call can make its pod again", () => {
    const scene = gang();
    scene.nowMs -= 60_000;
    assert.equal(succeed(scene, 1).recheckAtMs, scene.nowMs + OUTSTANDING_MS);
    assert.equal(admissionOf(scene).returned, undefined);
    scene.nowMs += OUTSTANDING_MS;
    scene.step();
    assert.deepEqual(admissionOf(scene).returned, { Worker: [1] });
  });

  test("gives them back also if its pod goes at once", () => {
    const scene = gang();
    scene.nowMs -= 60_000;
    succeed(scene, 1);
    remove(scene, "j-worker-1");
    scene.step();
    assert.equal(admissionOf(scene).returned, undefined, "a call from before may be under way");
    scene.nowMs += OUTSTANDING_MS;
    scene.step();
    assert.deepEqual(admissionOf(scene).returned, { Worker: [1] });
  });

  test("waits for a list of the cluster if only a watch knows its end", () => {
    const scene = gang();
    scene.set("j-worker-1", "Succeeded", { exitCode: 0 });
    const seen = scene.cluster.observe({ nowMs: scene.nowMs, lagMs: 0 });
    const gone = seen.pods.filter(({ name }) => name === "j-worker-1");
    const lost = gone.map((pod) => ({ ...pod, deleting: true, endedFirst: true }));
    const pods = seen.pods.filter(({ name }) => name !== "j-worker-1");
    const decision = reconcile(scene.job, [{ ...seen, pods, lost }], scene.nowMs, CONFIG);
    const [admission] = decision.record?.admissions ?? [];
    assert.deepEqual([admission?.ended, admission?.returned], [{ "Worker/1": "SUCCEEDED" }, undefined]);
  });
});

describe("a gang that gave tokens back", () => {
  test("waits for all its tokens if it restarts as a whole", () => {
    const scene = gang({ restartScope: "GANG", backoffLimit: 5 });
    succeed(scene, 1, 2);
    scene.set("j-worker-0", "Failed", { exitCode: 1 });
    const decision = scene.step();
    const [admission] = scene.job.admissions;
    assert.deepEqual([scene.job.status.phase, admission?.state], ["WAITING", "undone"]);
    assert.deepEqual(admission?.returned, { Worker: [1, 2] }, "the others hold theirs until their pods are gone");
    assert.equal(scene.job.status.attempts.user, 1, "the failure is counted once");
    assert.equal(
      scene.job.status.backoff?.notBeforeMs,
      scene.nowMs + 10_000,
      "the restart's backoff passes in the queue",
    );
    assert.ok(reasons(decision).includes("PyTorchJobGangRestart"));
    assert.match(scene.job.status.waiting?.message ?? "", /restarts as a whole, and 2 member\(s\)/);
    scene.rest();
    assert.deepEqual(scene.podNames, []);
    assert.equal(drainingAdmission(scene.job), null);
    scene.job = admit(scene.job, { cluster: "c1", nowMs: scene.nowMs, number: 2, flavors: FLAVORS });
    scene.nowMs += 10_000;
    scene.rest();
    assert.equal(scene.podNames.length, 5, "all members run anew");
    assert.equal(liveAdmission(scene.job)?.returned, undefined);
  });

  test("restarts in place if no tokens were given back", () => {
    const scene = gang({ restartScope: "GANG", backoffLimit: 5 });
    scene.set("j-master-0", "Failed", { exitCode: 1 });
    scene.step();
    assert.equal(scene.job.status.phase, "RESTARTING");
  });

  test("restarts one member in place", () => {
    const scene = gang({ backoffLimit: 5 });
    succeed(scene, 1);
    scene.set("j-worker-0", "Failed", { exitCode: 1 });
    scene.step();
    assert.equal(scene.job.status.phase, "RESTARTING");
    scene.cluster.collect();
    scene.nowMs += 10_000;
    assert.deepEqual(names(scene.step(), "createPod"), ["j-worker-0"]);
    assert.equal(holding(scene), 3);
  });

  test("forgets members that it gives up, whatever their tokens", () => {
    const scene = dynamic();
    for (const index of [1, 3]) succeed(scene, index);
    assert.equal(scene.change({ replicas: { Worker: 3 } }), "changed");
    scene.rest();
    const admission = admissionOf(scene);
    assert.deepEqual(
      [admission.members, admission.returned, admission.ended],
      [{ Worker: 3 }, { Worker: [1] }, { "Worker/1": "SUCCEEDED" }],
    );
  });

  test("does not run a member again that it was about to give up", () => {
    const scene = dynamic();
    succeed(scene, 3);
    remove(scene, "j-worker-3");
    scene.change({ replicas: { Worker: 3 } });
    scene.step();
    assert.equal(scene.change({ replicas: { Worker: 4 } }), "changed");
    assert.deepEqual(names(scene.step(), "createPod"), []);
    assert.deepEqual(admissionOf(scene).returned, { Worker: [3] });
  });

  test("keeps what it gave back until the rest is released", () => {
    const scene = gang();
    succeed(scene, 1);
    scene.change({ suspend: true });
    scene.step();
    const { state, ended, returned } = admissionOf(scene);
    assert.deepEqual([state, ended, returned], ["undone", undefined, { Worker: [1] }]);
    assert.equal(holding(scene), 3);
  });
});
