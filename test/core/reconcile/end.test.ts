import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { isConditionTrue } from "../../../src/core/job/conditions.ts";
import type { SentRunPolicy } from "../../../src/core/job/request/sent.ts";
import { reconcile } from "../../../src/core/reconcile/reconcile.ts";
import { names, pytorch, Scene } from "./scene.ts";
import { CONFIG, jobOf, recorded, START_MS, template } from "./world.ts";

describe("the end", () => {
  const policies = {
    "policy All leaves nothing": { policy: "All", left: [], objects: 0 },
    "policy Running leaves pods that have ended": { policy: "Running", left: ["j-master-0", "j-worker-0"], objects: 5 },
    "policy None leaves every pod": { policy: "None", left: ["j-master-0", "j-worker-0", "j-worker-1"], objects: 7 },
  } as const;
  for (const [name, { policy, left, objects }] of Object.entries(policies)) {
    test(name, () => {
      const scene = new Scene(pytorch({ cleanPodPolicy: policy })).start();
      scene.set("j-worker-0", "Succeeded", { exitCode: 0 });
      scene.set("j-master-0", "Succeeded", { exitCode: 0 });
      scene.rest();
      assert.equal(scene.job.status.phase, "SUCCEEDED");
      assert.deepEqual(scene.podNames, left);
      assert.equal(scene.cluster.things.length, objects);
      const holds = policy === "None";
      assert.equal(scene.job.admissions[0]?.tokensReleasedMs === null, holds, "tokens follow pods, not status");
    });
  }

  const limits: Record<string, { readonly sent: SentRunPolicy; readonly reach: (scene: Scene) => void }> = {
    "the backoff limit": {
      sent: { backoffLimit: 1 },
      reach: (scene) => scene.set("j-worker-0", "Failed", { exitCode: 1 }),
    },
    "the system backoff limit": {
      sent: { systemBackoffLimit: 1 },
      reach: (scene) => scene.set("j-worker-0", "Failed", { reason: "Evicted" }),
    },
    "the active deadline": {
      sent: { activeDeadlineSeconds: 60 },
      reach: (scene) => {
        scene.set("j-worker-0", "Failed", { exitCode: 1 });
        scene.nowMs += 60_000;
      },
    },
  };
  const ended = ["j-worker-0"];
  const everyPod = ["j-master-0", "j-worker-0", "j-worker-1"];
  const atLimit: Record<string, { readonly sent?: SentRunPolicy; readonly old?: true; readonly left: string[] }> = {
    "frees what still runs if no policy was written": { left: ended },
    "leaves every pod if None was written": { sent: { cleanPodPolicy: "None" }, left: everyPod },
    "leaves nothing if All was written": { sent: { cleanPodPolicy: "All" }, left: [] },
    "follows the policy at limits before the other": {
      sent: { cleanPodPolicy: "All", cleanPodPolicyAtLimit: "None" },
      left: everyPod,
    },
    "leaves every pod of a job that an older version has recorded": { old: true, left: everyPod },
  };
  for (const [limit, { sent, reach }] of Object.entries(limits)) {
    for (const [name, { sent: policies, old, left }] of Object.entries(atLimit)) {
      test(`${limit} ${name}`, () => {
        const scene = new Scene(pytorch({ ...sent, ...policies }));
        if (old) {
          const { cleanPodPolicyAtLimit: _new, ...runPolicy } = scene.job.spec.runPolicy;
          scene.job = { ...scene.job, spec: { ...scene.job.spec, runPolicy } };
        }
        scene.start();
        reach(scene);
        scene.rest();
        assert.equal(scene.job.status.phase, "FAILED");
        assert.deepEqual(scene.podNames, left);
        assert.equal(scene.job.admissions[0]?.tokensReleasedMs !== null, left !== everyPod, "tokens follow pods");
      });
    }
  }

  test("a pod that fails for good leaves every pod, although its reason is that of a limit", () => {
    const scene = new Scene(pytorch({}, "Never")).start();
    scene.set("j-worker-0", "Failed", { reason: "DeadlineExceeded" });
    scene.rest();
    assert.equal(scene.job.status.failure?.code, "DeadlineExceeded");
    assert.deepEqual(scene.podNames, everyPod);
  });

  test("tokens of a pod that the policy keeps are released once the pod ends", () => {
    const scene = new Scene(pytorch({ cleanPodPolicy: "None" })).start();
    scene.set("j-master-0", "Succeeded", { exitCode: 0 });
    scene.set("j-worker-0", "Succeeded", { exitCode: 0 });
    scene.rest();
    assert.equal(scene.job.admissions[0]?.tokensReleasedMs, null);
    scene.set("j-worker-1", "Failed", { exitCode: 1 });
    scene.step();
    assert.equal(scene.job.admissions[0]?.tokensReleasedMs, scene.nowMs);
  });

  test("a cancelled job keeps ended pods by its policy, and no running pod", () => {
    const scene = new Scene(pytorch({ cleanPodPolicy: "None" })).start();
    scene.set("j-worker-0", "Succeeded", { exitCode: 0 });
    scene.step();
    scene.job = { ...scene.job, cancel: { reason: "enough", atMs: scene.nowMs } };
    scene.rest();
    assert.deepEqual(scene.podNames, ["j-worker-0"]);
    assert.ok(isConditionTrue(scene.job.status.conditions, "Cancelled"));
    assert.notEqual(scene.job.admissions[0]?.tokensReleasedMs, null);
  });

  test("requested pods that are not seen yet keep their tokens until they would have been seen", () => {
    const scene = new Scene(pytorch());
    const unseen = [scene.cluster.observe({ nowMs: scene.nowMs, lagMs: 0 })];
    scene.step();
    scene.job = { ...scene.job, cancel: { reason: "", atMs: scene.nowMs } };
    scene.job = recorded(scene.job, reconcile(scene.job, unseen, scene.nowMs, CONFIG));
    assert.equal(scene.job.status.phase, "CANCELLED");
    const stale = reconcile(scene.job, unseen, scene.nowMs, CONFIG);
    assert.deepEqual([stale.record, stale.recheckAtMs], [null, scene.nowMs + 5_000]);
    const later = reconcile(scene.job, unseen, scene.nowMs + 5_000, CONFIG);
    assert.equal(later.record?.admissions[0]?.tokensReleasedMs, scene.nowMs + 5_000);
  });

  test("a pod that a late call creates after the tokens were released is deleted under every policy", () => {
    const scene = new Scene(pytorch({ cleanPodPolicy: "None" })).start();
    for (const { name } of scene.cluster.pods()) scene.set(name, "Succeeded", { exitCode: 0 });
    scene.rest();
    assert.notEqual(scene.job.admissions[0]?.tokensReleasedMs, null);
    scene.set("j-worker-1", "Running");
    assert.deepEqual(names(scene.step(), "deletePod"), ["j-worker-1"]);
  });

  test("the record of a deleted job is removed only after all its objects are gone", () => {
    const scene = new Scene(pytorch({ cleanPodPolicy: "None" })).start();
    scene.job = { ...scene.job, deleteTimeMs: scene.nowMs };
    assert.equal(scene.step().forget, false);
    assert.equal(scene.step().forget, false);
    scene.rest();
    assert.deepEqual(scene.cluster.things, []);
    assert.equal(scene.step().forget, true);
  });

  test("a waiting job that is deleted ends, and its record is removed in the next pass", () => {
    const scene = new Scene(pytorch());
    scene.job = { ...jobOf(pytorch()), deleteTimeMs: scene.nowMs };
    assert.equal(scene.step().recheckAtMs, scene.nowMs);
    assert.equal(scene.job.status.phase, "CANCELLED");
    assert.equal(scene.step().forget, true);
  });

  test("the deadline fails the job without any event, and its clean-pod policy applies", () => {
    const scene = new Scene(pytorch({ activeDeadlineSeconds: 60, cleanPodPolicy: "Running" })).start();
    assert.equal(scene.step().recheckAtMs, START_MS + 60_000);
    scene.nowMs += 60_000;
    scene.rest();
    assert.equal(scene.job.status.failure?.code, "DeadlineExceeded");
    assert.deepEqual(scene.podNames, []);
  });

  test("the maximum run time counts from the admission, and keeps no pod that runs", () => {
    const scene = new Scene(
      pytorch({ maxRuntimeMs: 60_000, activeDeadlineSeconds: 90, cleanPodPolicy: "None" }),
    ).start();
    const { admitTimeMs } = scene.job.admissions[0]!;
    assert.equal(scene.step().recheckAtMs, admitTimeMs + 60_000);
    scene.set("j-worker-0", "Succeeded", { exitCode: 0 });
    scene.nowMs = admitTimeMs + 60_000;
    scene.rest();
    assert.equal(scene.job.status.failure?.code, "MaxRuntimeExceeded");
    assert.match(scene.job.status.failure?.message ?? "", /longer than its maximum run time of 60 s/);
    assert.deepEqual(scene.podNames, ["j-worker-0"]);
    assert.notEqual(scene.job.admissions[0]?.tokensReleasedMs, null);
  });

  test("a time to live of 0 deletes the job once its end is recorded", () => {
    const scene = new Scene(pytorch({ ttlSecondsAfterFinished: 0, cleanPodPolicy: "All" })).start();
    scene.set("j-master-0", "Succeeded", { exitCode: 0 });
    scene.step();
    assert.equal(scene.job.deleteTimeMs, null);
    scene.rest();
    assert.notEqual(scene.job.deleteTimeMs, null);
  });

  test("a job whose time to live is over is not deleted in a pass that still deletes its objects", () => {
    const scene = new Scene(pytorch({ ttlSecondsAfterFinished: 0, cleanPodPolicy: "All" })).start();
    scene.set("j-master-0", "Succeeded", { exitCode: 0 });
    const observed = [scene.cluster.observe({ nowMs: scene.nowMs, lagMs: 0 })];
    scene.job = recorded(scene.job, reconcile(scene.job, observed, scene.nowMs, CONFIG));
    assert.equal(scene.job.status.phase, "SUCCEEDED");
    const again = reconcile(scene.job, observed, scene.nowMs + 1_000, CONFIG);
    assert.ok(again.actions.length > 0, "nothing was deleted yet");
    assert.equal(again.record?.deleteTimeMs ?? null, null);
  });

  test("an admission that ends during a pod's deletion counts from now: a replacement may be under way", () => {
    const scene = new Scene(pytorch()).start();
    scene.nowMs += 60_000;
    scene.cluster.change(scene.cluster.pods().find(({ name }) => name === "j-worker-0")!, { deleting: true });
    scene.job = { ...scene.job, cancel: { reason: "", atMs: scene.nowMs } };
    scene.step();
    assert.equal(scene.job.admissions[0]?.belowMinSinceMs, scene.nowMs);
  });

  test("when the time to live is over, the job is deleted and its record is removed", () => {
    const scene = new Scene(pytorch({ ttlSecondsAfterFinished: 60 })).start();
    for (const { name } of scene.cluster.pods()) scene.set(name, "Succeeded", { exitCode: 0 });
    scene.rest();
    assert.equal(scene.step().recheckAtMs, START_MS + 60_000);
    scene.nowMs += 60_000;
    scene.step();
    assert.equal(scene.job.deleteTimeMs, scene.nowMs);
    scene.rest();
    assert.deepEqual(scene.cluster.things, []);
    assert.equal(scene.step().forget, true);
  });
});

describe("the start timeout", () => {
  test("undoes an admission that stays below its minimum, and the job waits with backoff", () => {
    const scene = new Scene(pytorch({ schedulingPolicy: { scheduleTimeoutSeconds: 120 } }));
    assert.equal(scene.step().recheckAtMs, START_MS + 5_000);
    scene.set("j-master-0", "Running");
    for (const name of ["j-worker-0", "j-worker-1"]) scene.refuse(name, "no node has room");
    scene.step();
    assert.equal(scene.step().recheckAtMs, START_MS + 120_000);
    scene.nowMs += 120_000;
    const undone = scene.step();
    assert.equal(scene.job.status.phase, "WAITING");
    const why = "2 Worker pods do not run: Unschedulable (no node has room)";
    const notBeforeMs = scene.nowMs + 30_000;
    assert.deepEqual(scene.job.status.backoff, { undone: 1, notBeforeMs, lastCluster: "c1", why });
    assert.equal(scene.job.status.waiting?.reason, "Backoff");
    assert.match(
      scene.job.status.waiting?.message ?? "",
      /admission 1 is undone: 2 Worker pods do not run: Unschedulable/,
    );
    assert.equal(scene.job.status.podProblems, undefined);
    assert.equal(scene.job.status.startTimeMs, null);
    assert.ok(!isConditionTrue(scene.job.status.conditions, "Running"));
    assert.deepEqual(names(undone, "deleteAnchor"), ["j-admission-1"]);
    assert.equal(scene.job.admissions[0]?.state, "undone");
    scene.rest();
    assert.deepEqual(scene.cluster.things, []);
    assert.deepEqual(scene.job.admissions, [], "released, gone and removed from the record");
  });

  test("an undone admission keeps its tokens while its anchor exists: a late call could still create a pod", () => {
    const scene = new Scene(pytorch({ schedulingPolicy: { scheduleTimeoutSeconds: 120 } }));
    scene.step();
    scene.nowMs += 120_000;
    scene.step();
    scene.cluster.things = scene.cluster.things.filter(({ kind }) => kind === "anchor");
    scene.nowMs += 60_000;
    scene.step();
    assert.deepEqual([scene.job.admissions[0]?.state, scene.job.admissions[0]?.tokensReleasedMs], ["undone", null]);
    scene.cluster.collect();
    scene.step();
    assert.deepEqual(scene.job.admissions, [], "released, gone and removed from the record");
  });

  /** Dynamic workers, whose failures do not end the job: `failed` of them fail for good, and `running` others run. */
  const forgiven = {
    "a worker that failed for good does not count as one that runs": {
      min: 1,
      failed: 1,
      running: 0,
      up: false,
    },
    "a worker that failed for good is not required": { min: 4, failed: 1, running: 3, up: true },
    "the remaining workers must all run if they are fewer than the minimum": {
      min: 4,
      failed: 1,
      running: 2,
      up: false,
    },
    "as many remaining workers as the minimum are enough": { min: 2, failed: 2, running: 2, up: true },
    "fewer remaining workers than the minimum are not enough": { min: 2, failed: 2, running: 1, up: false },
  };
  for (const [name, { min, failed, running, up }] of Object.entries(forgiven)) {
    test(name, () => {
      const replicaSpecs = {
        Worker: { replicas: 4, restartPolicy: "Never" as const, template: template("tensorflow") },
      };
      const runPolicy = { schedulingPolicy: { minAvailable: min, scheduleTimeoutSeconds: 120 } };
      const kindSpec = { enableDynamicWorker: true };
      const scene = new Scene({ kind: "TFJob", replicaSpecs, runPolicy, kindSpec }, "tensorflow");
      scene.step();
      for (let index = 0; index < failed; index += 1) scene.set(`j-worker-${index}`, "Failed", { exitCode: 1 });
      for (let index = failed; index < failed + running; index += 1) scene.set(`j-worker-${index}`, "Running");
      scene.step();
      assert.equal(scene.job.admissions[0]?.belowMinSinceMs, up ? null : START_MS);
      scene.nowMs += 120_000;
      scene.step();
      assert.equal(scene.job.status.phase, up ? "RUNNING" : "WAITING");
    });
  }

  test("a timeout of 0 never ends", () => {
    const scene = new Scene(pytorch({ schedulingPolicy: { scheduleTimeoutSeconds: 0 } }));
    scene.step();
    scene.nowMs += 86_400_000;
    scene.step();
    assert.equal(scene.job.status.phase, "STARTING");
  });

  test("a gang that reaches its minimum forgets earlier undone admissions", () => {
    const scene = new Scene(pytorch());
    const backoff = { undone: 3, notBeforeMs: START_MS, lastCluster: "c2" };
    scene.job = { ...scene.job, status: { ...scene.job.status, backoff } };
    scene.start();
    assert.equal(scene.job.status.backoff, null);
    assert.equal(scene.job.admissions[0]?.belowMinSinceMs, null);
    assert.ok(isConditionTrue(scene.job.status.conditions, "PodsReady"));
  });
});
