import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { admitted } from "../../../src/core/job/admission/admitted.ts";
import { isConditionTrue } from "../../../src/core/job/conditions.ts";
import type { Job } from "../../../src/core/job/job.ts";
import type { SentSpec } from "../../../src/core/job/request/sent.ts";
import { FORCE_AFTER_MS } from "../../../src/core/reconcile/force-delete.ts";
import { objectAt } from "../../../src/runtime/json.ts";
import { names, pytorch, Scene } from "./scene.ts";
import { admit, jobOf, START_MS, template } from "./world.ts";

/** A job whose number of workers may change while it runs. */
const dynamic = (replicas: number): SentSpec => ({
  kind: "TFJob",
  replicaSpecs: { Worker: { replicas, template: template("tensorflow"), restartPolicy: "OnFailure" } },
  kindSpec: { enableDynamicWorker: true },
});

const conditionsOf = (job: Job) =>
  Object.fromEntries(job.status.conditions.map(({ type, status, reason }) => [type, `${status} ${reason}`]));

describe("suspension", () => {
  test("deletes all objects of a running job under every policy, and releases its tokens after its pods", () => {
    const scene = new Scene(pytorch({ cleanPodPolicy: "None" })).start();
    scene.set("j-worker-0", "Succeeded", { exitCode: 0 });
    scene.step();
    scene.change({ suspend: true });
    const suspended = scene.step();
    assert.equal(scene.job.status.phase, "SUSPENDED");
    assert.deepEqual(conditionsOf(scene.job), {
      Created: "True PyTorchJobCreated",
      Running: "False PyTorchJobSuspended",
      PodsReady: "False PyTorchJobSuspended",
      Suspended: "True PyTorchJobSuspended",
    });
    assert.equal(names(suspended, "deletePod").length, 3);
    assert.deepEqual(scene.job.status.replicaStatuses["Worker"], { active: 0, succeeded: 1, failed: 0 });
    assert.equal(scene.job.status.startTimeMs, START_MS, "until it resumes");
    assert.equal(scene.job.admissions[0]?.tokensReleasedMs, null, "pods hold them");
    scene.rest();
    assert.deepEqual(scene.cluster.things, []);
    assert.deepEqual(scene.job.admissions, [], "released, gone and removed from the record");
    assert.deepEqual([scene.step().record, scene.step().recheckAtMs], [null, null], "it rests");
  });

  test("a resumed job waits again, and keeps its attempts when it starts under a new admission", () => {
    const scene = new Scene(pytorch({ activeDeadlineSeconds: 100 })).start();
    scene.set("j-worker-0", "Failed", { exitCode: 1 });
    scene.step();
    scene.change({ suspend: true });
    scene.rest();
    scene.nowMs += 10_000;
    scene.rest();
    scene.nowMs += 1_000_000;
    assert.equal(scene.step().record, null, "neither deadline nor anything else counts while it is suspended");
    scene.change({ suspend: false });
    scene.step();
    assert.equal(scene.job.status.phase, "WAITING");
    assert.equal(conditionsOf(scene.job)["Suspended"], "False PyTorchJobResumed");
    assert.equal(scene.job.status.startTimeMs, null);
    assert.equal(scene.job.status.attempts.user, 1);
    scene.job = admit(scene.job, { cluster: "c1", nowMs: scene.nowMs, number: 2 });
    const started = scene.step();
    assert.equal(scene.job.status.startTimeMs, scene.nowMs, "the deadline restarts");
    const attempts = started.actions.flatMap((action) => {
      if (action.kind !== "createPod") return [];
      const metadata = objectAt(action.manifest, "metadata");
      return [[metadata["name"], objectAt(metadata, "labels")["gangway.dev/attempt"]]];
    });
    assert.deepEqual(attempts, [
      ["j-master-0", "1"],
      ["j-worker-0", "2"],
      ["j-worker-1", "1"],
    ]);
  });

  test("a suspended waiting job leaves its queue, and returns to it when it is resumed", () => {
    const scene = new Scene(pytorch());
    scene.job = jobOf(pytorch());
    scene.change({ suspend: true });
    scene.step();
    assert.deepEqual([scene.job.status.phase, scene.job.status.waiting], ["SUSPENDED", null]);
    scene.change({ suspend: false });
    scene.change({ suspend: true });
    assert.equal(scene.step().record, null);
    scene.change({ suspend: false });
    scene.step();
    assert.deepEqual([scene.job.status.phase, scene.job.status.waiting?.reason], ["WAITING", "NotEvaluated"]);
  });

  test("a suspended job can be cancelled and deleted, and a job that has ended cannot be suspended", () => {
    const scene = new Scene(pytorch()).start();
    scene.change({ suspend: true });
    scene.rest();
    scene.job = { ...scene.job, cancel: { reason: "", atMs: scene.nowMs } };
    assert.equal(scene.change({ suspend: false }), "ending");
    scene.step();
    assert.equal(scene.job.status.phase, "CANCELLED");
    assert.ok(!isConditionTrue(scene.job.status.conditions, "Suspended"));
    assert.equal(scene.change({ suspend: false }), "terminal");
  });
});

describe("a request to undo an admission", () => {
  const eviction = { admission: 1, reason: "QueueStopped", message: "queue q is stopped" };
  const evict = (job: Job): Job => ({ ...job, status: { ...job.status, eviction } });

  test("deletes all objects, releases the tokens after the pods, and lets the job wait without a failure", () => {
    const scene = new Scene(pytorch({ cleanPodPolicy: "None", activeDeadlineSeconds: 100 })).start();
    scene.job = evict(scene.job);
    const undone = scene.step();
    const { phase, waiting, backoff, startTimeMs, attempts, failure } = scene.job.status;
    assert.deepEqual(
      [phase, waiting?.reason, backoff, startTimeMs, failure],
      ["WAITING", "QueueStopped", null, null, null],
    );
    assert.equal(waiting?.message, "Admission 1 to cluster c1 is undone: queue q is stopped.");
    assert.equal(attempts.user + attempts.system, 0);
    assert.equal(conditionsOf(scene.job)["Running"], "False QueueStopped");
    assert.deepEqual(
      undone.record?.events.map(({ reason }) => reason),
      ["PyTorchJobQueueStopped"],
    );
    assert.equal(names(undone, "deletePod").length, 3);
    assert.equal(scene.job.admissions[0]?.tokensReleasedMs, null, "pods hold them");
    assert.equal(scene.job.status.eviction, undefined, "it is carried out");
    scene.rest();
    assert.deepEqual(scene.cluster.things, []);
    assert.deepEqual(scene.job.admissions, [], "released, gone and removed from the record");
    assert.deepEqual([scene.step().record, scene.step().recheckAtMs], [null, null], "it rests");
  });

  const preemption = {
    admission: 1,
    reason: "Preempted",
    message: "it was preempted for ml/train, whose queue takes back its own quota",
    preemption: "InCohortReclamation",
  } as const;
  const preempt = (scene: Scene, admission = 1) => {
    scene.job = { ...scene.job, status: { ...scene.job.status, eviction: { ...preemption, admission } } };
    return scene.step();
  };

  test("for another gang shows who preempted it, keeps the attempts, and lets it back off", () => {
    const scene = new Scene(pytorch()).start();
    scene.set("j-worker-0", "Failed", { exitCode: 1 });
    scene.step();
    scene.cluster.collect();
    const { attempts: before } = scene.job.status;
    assert.equal(before.user, 1);
    const undone = preempt(scene);
    const { phase, waiting, backoff, attempts, conditions } = scene.job.status;
    const message = `Admission 1 to cluster c1 is undone: ${preemption.message}.`;
    assert.deepEqual([phase, waiting], ["WAITING", { reason: "Backoff", message, sinceMs: scene.nowMs }]);
    const shown = conditions.find(({ type }) => type === "Preempted");
    assert.deepEqual([shown?.status, shown?.reason, shown?.message], ["True", "InCohortReclamation", message]);
    assert.equal(conditionsOf(scene.job)["Running"] ?? conditionsOf(scene.job)["Restarting"], "False Preempted");
    assert.deepEqual([attempts.user, attempts.byReplica, attempts.preemptions], [1, before.byReplica, 1]);
    assert.deepEqual(backoff, { undone: 0, notBeforeMs: scene.nowMs + 1_000, why: preemption.message });
    assert.deepEqual(
      undone.record?.events.map(({ type, reason }) => `${type} ${reason}`),
      ["Warning PyTorchJobPreempted"],
    );
    assert.ok(
      undone.actions.every((action) => action.kind !== "deletePod" || !action.force),
      "pods get their grace",
    );
  });

  test("for another gang keeps the count of starts that have failed, and prefers no other cluster", () => {
    const scene = new Scene(pytorch()).start();
    const backoff = { undone: 2, notBeforeMs: 1, lastCluster: "c2", why: "no node was ready" };
    scene.job = { ...scene.job, status: { ...scene.job.status, backoff } };
    scene.set("j-worker-0", "Pending");
    preempt(scene);
    const notBeforeMs = scene.nowMs + 1_000;
    assert.deepEqual(scene.job.status.backoff, { undone: 2, notBeforeMs, why: preemption.message });
  });

  test("for another gang doubles the backoff each time, and the condition ends with the next admission", () => {
    const scene = new Scene(pytorch()).start();
    for (let time = 1; time <= 12; time += 1) {
      preempt(scene, time);
      const { backoff, attempts } = scene.job.status;
      const waitMs = (backoff?.notBeforeMs ?? 0) - scene.nowMs;
      assert.deepEqual([attempts.preemptions, waitMs], [time, Math.min(1_000 * 2 ** (time - 1), 600_000)]);
      scene.rest();
      const next = admit(scene.job, { cluster: "c1", nowMs: scene.nowMs, number: time + 1 });
      const live = next.admissions.at(-1);
      assert.ok(live);
      scene.job = { ...next, status: admitted(scene.job, live, scene.nowMs).status };
      assert.equal(conditionsOf(scene.job)["Preempted"], "False Admitted");
      scene.step();
    }
  });

  test("of an older admission changes nothing", () => {
    const scene = new Scene(pytorch()).start();
    scene.job = { ...scene.job, status: { ...scene.job.status, eviction: { ...eviction, admission: 7 } } };
    assert.deepEqual(names(scene.step(), "deletePod"), []);
    assert.equal(scene.job.status.phase, "RUNNING");
  });

  test("does not keep a job from being cancelled or suspended", () => {
    const cancelled = new Scene(pytorch()).start();
    cancelled.job = { ...evict(cancelled.job), cancel: { reason: "enough", atMs: 1 } };
    cancelled.step();
    assert.equal(cancelled.job.status.phase, "CANCELLED");
    const suspended = new Scene(pytorch()).start();
    suspended.change({ suspend: true });
    suspended.job = evict(suspended.job);
    suspended.step();
    assert.deepEqual([suspended.job.status.phase, suspended.job.status.eviction], ["SUSPENDED", undefined]);
  });
});

describe("a changed number of replicas", () => {
  test("after scaling down, surplus pods are deleted, and their members are given up once they are gone", () => {
    const scene = new Scene(dynamic(4), "tensorflow").start();
    assert.equal(scene.change({ replicas: { worker: 2 } }), "changed");
    const down = scene.step();
    assert.deepEqual(names(down, "deletePod"), ["j-worker-2", "j-worker-3"]);
    assert.deepEqual(names(down, "deleteService"), ["j-worker-2", "j-worker-3"]);
    assert.deepEqual(scene.job.status.replicaStatuses["Worker"]?.active, 4, "counted until they are seen to go");
    scene.cluster.collect();
    assert.equal(scene.step().recheckAtMs, START_MS + 5_000, "a late call may still make one");
    assert.deepEqual(scene.job.admissions[0]?.members, { Worker: 4 });
    scene.nowMs += 5_000;
    scene.step();
    assert.deepEqual(scene.job.admissions[0]?.members, { Worker: 2 });
    assert.deepEqual(scene.podNames, ["j-worker-0", "j-worker-1"]);
    assert.equal(scene.job.status.phase, "RUNNING");
    assert.equal(scene.step().record, null);
  });

  test("members that the planner takes are given up once they are gone, and the gang runs on", () => {
    const scene = new Scene(dynamic(4), "tensorflow").start();
    const shrink = { admission: 1, keeps: { Worker: 3 } };
    scene.job = { ...scene.job, status: { ...scene.job.status, shrink, resizedMs: scene.nowMs } };
    assert.deepEqual(names(scene.step(), "deletePod"), ["j-worker-3"]);
    scene.cluster.collect();
    scene.step();
    assert.deepEqual(scene.job.admissions[0]?.members, { Worker: 4 }, "a late call may still make one");
    scene.nowMs += 5_000;
    const last = scene.step();
    assert.deepEqual(scene.job.admissions[0]?.members, { Worker: 3 });
    assert.deepEqual(
      last.record?.events.map(({ reason }) => reason),
      ["TokensReleased"],
    );
    assert.deepEqual([scene.job.status.phase, scene.job.status.shrink], ["RUNNING", undefined]);
    assert.equal(scene.step().record, null);
  });

  test("a request to give up members ends with the admission", () => {
    const scene = new Scene(dynamic(4), "tensorflow").start();
    const shrink = { admission: 1, keeps: { Worker: 3 } };
    scene.job = { ...scene.job, status: { ...scene.job.status, shrink } };
    scene.change({ suspend: true });
    scene.step();
    assert.deepEqual([scene.job.status.phase, scene.job.status.shrink], ["SUSPENDED", undefined]);
  });

  test("members are never given up while a pod of theirs still runs", () => {
    const scene = new Scene(dynamic(2), "tensorflow").start();
    scene.change({ replicas: { Worker: 1 } });
    scene.nowMs += 60_000;
    scene.step();
    assert.deepEqual(scene.job.admissions[0]?.members, { Worker: 2 });
  });

  test("after scaling up again in time, members stay, and missing pods are created", () => {
    const scene = new Scene(dynamic(3), "tensorflow").start();
    scene.change({ replicas: { Worker: 1 } });
    scene.step();
    scene.change({ replicas: { Worker: 3 } });
    scene.cluster.collect();
    assert.deepEqual(names(scene.step(), "createPod"), ["j-worker-1", "j-worker-2"]);
    assert.deepEqual(scene.job.admissions[0]?.members, { Worker: 3 });
  });

  test("after scaling up, pods are created only for members that the planner has added", () => {
    const scene = new Scene(dynamic(1), "tensorflow").start();
    scene.change({ replicas: { Worker: 3 } });
    assert.deepEqual(names(scene.step(), "createPod"), []);
    scene.job = {
      ...scene.job,
      admissions: scene.job.admissions.map((admission) => ({ ...admission, members: { Worker: 2 } })),
    };
    assert.deepEqual(names(scene.step(), "createPod"), ["j-worker-1"]);
  });

  test("a gang of fixed size is resized only before admission, and a minimum of all replicas stays that", () => {
    const scene = new Scene(pytorch());
    assert.equal(scene.change({ replicas: { Worker: 4 } }), "fixedSize");
    scene.job = jobOf(pytorch());
    assert.equal(scene.change({ replicas: { Worker: 4 } }), "changed");
    assert.equal(scene.job.spec.runPolicy.schedulingPolicy.minAvailable, 5);
    scene.job = jobOf(pytorch({ schedulingPolicy: { minAvailable: 2 } }));
    scene.change({ replicas: { Worker: 0 } });
    assert.equal(scene.job.spec.runPolicy.schedulingPolicy.minAvailable, 1, "never more than all");
  });

  test("an elastic policy limits how far an admitted gang is scaled", () => {
    const elasticPolicy = { minReplicas: 2, maxReplicas: 4 };
    const worker = { replicas: 3, template: template("pytorch") };
    for (const [kind, container] of [
      ["PyTorchJob", "pytorch"],
      ["PaddleJob", "paddle"],
    ] as const) {
      const sent = {
        kind,
        replicaSpecs: { Worker: { ...worker, template: template(container) } },
        kindSpec: { elasticPolicy },
      };
      const outcomes = [1, 2, 4, 5].map((count) => new Scene(sent, container).change({ replicas: { Worker: count } }));
      assert.deepEqual(outcomes, ["invalid", "changed", "changed", "invalid"], kind);
    }
  });

  test("the minimum of an admitted gang never rises, since room for more is not guaranteed", () => {
    const scene = new Scene(dynamic(2), "tensorflow");
    scene.change({ replicas: { Worker: 4 } });
    assert.equal(scene.job.spec.runPolicy.schedulingPolicy.minAvailable, 2);
    scene.change({ replicas: { Worker: 1 } });
    assert.equal(scene.job.spec.runPolicy.schedulingPolicy.minAvailable, 1);
  });
});

describe("a pod whose deletion does not end", () => {
  const stuck = (of: { lost?: boolean; phase?: string }) => {
    const scene = new Scene(pytorch()).start();
    if (of.phase !== undefined) scene.set("j-worker-1", of.phase, { exitCode: 0 });
    const pod = scene.cluster.pods().find(({ name }) => name === "j-worker-1")!;
    scene.cluster.change(pod, { deleting: true, deletedMs: scene.nowMs, lost: of.lost ?? false });
    return scene;
  };
  const forced = (scene: Scene) =>
    scene.step().actions.flatMap((action) => (action.kind === "deletePod" && action.force ? [action.name] : []));

  test("is deleted by force after a grace period if its node is gone, and is then replaced", () => {
    const scene = stuck({ lost: true });
    assert.deepEqual(forced(scene), []);
    scene.nowMs += FORCE_AFTER_MS - 1;
    const waiting = scene.step();
    assert.equal(waiting.recheckAtMs, START_MS + FORCE_AFTER_MS);
    scene.nowMs += 1;
    assert.deepEqual(forced(scene), ["j-worker-1"]);
    assert.deepEqual(names(scene.step(), "createPod"), ["j-worker-1"]);
  });

  test("is deleted by force if its containers have ended", () => {
    const scene = stuck({ phase: "Succeeded" });
    scene.nowMs += FORCE_AFTER_MS;
    assert.deepEqual(forced(scene), ["j-worker-1"]);
  });

  test("is waited for if its node exists and it may still run", () => {
    const scene = stuck({});
    scene.nowMs += 100 * FORCE_AFTER_MS;
    assert.deepEqual(forced(scene), []);
  });

  test("keeps a suspended job's tokens only until it is deleted by force", () => {
    const scene = stuck({ lost: true });
    scene.change({ suspend: true });
    scene.rest();
    assert.equal(scene.job.admissions[0]?.tokensReleasedMs, null);
    scene.nowMs += FORCE_AFTER_MS;
    scene.rest();
    assert.deepEqual([scene.cluster.things, scene.job.admissions], [[], []]);
  });
});
