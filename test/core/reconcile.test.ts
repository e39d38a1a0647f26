import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { isConditionTrue } from "../../src/core/job/conditions.ts";
import type { Job } from "../../src/core/job/job.ts";
import type { SentRunPolicy, SentSpec } from "../../src/core/job/sent.ts";
import type { Decision } from "../../src/core/reconcile/decision.ts";
import { reconcile, sweep } from "../../src/core/reconcile/reconcile.ts";
import type { JsonObject } from "../../src/runtime/json.ts";
import { objectAt } from "../../src/runtime/json.ts";
import { admit, CONFIG, jobOf, podStatus, recorded, START_MS, TinyCluster, template } from "./world.ts";

const pytorch = (
  runPolicy: SentRunPolicy = {},
  restartPolicy: "OnFailure" | "Never" | "ExitCode" = "OnFailure",
): SentSpec => ({
  kind: "PyTorchJob",
  replicaSpecs: {
    Master: { restartPolicy, template: template("pytorch") },
    Worker: { replicas: 2, restartPolicy, template: template("pytorch") },
  },
  runPolicy,
});

/** A job on one cluster whose worker makes no mistakes. */
class Scene {
  readonly cluster = new TinyCluster("c1");
  job: Job;
  nowMs = START_MS;

  constructor(sent: SentSpec) {
    this.job = admit(jobOf(sent), { cluster: "c1", nowMs: this.nowMs, number: 1 });
  }

  step(): Decision {
    const decision = reconcile(this.job, [this.cluster.observe({ nowMs: this.nowMs, lagMs: 0 })], this.nowMs, CONFIG);
    this.job = recorded(this.job, decision);
    for (const action of decision.actions) this.cluster.act(action, this.nowMs);
    return decision;
  }

  /** Steps, and lets the cluster carry deletions out, until nothing changes any more. */
  rest(): void {
    for (let round = 0; round < 10; round++) {
      this.step();
      this.cluster.collect();
    }
  }

  set(name: string, phase: string, of: Parameters<typeof podStatus>[2] = {}): void {
    this.cluster.setPod(this.cluster.pods().find((pod) => pod.name === name)!, podStatus(phase, "pytorch", of));
  }

  start(): this {
    this.step();
    for (const { name } of this.cluster.pods()) this.set(name, "Running");
    this.step();
    return this;
  }

  get podNames(): string[] {
    return this.cluster
      .pods()
      .map(({ name }) => name)
      .sort();
  }
}

const names = (decision: Decision, kind: string) =>
  decision.actions.flatMap((action) => {
    if (action.kind !== kind) return [];
    return ["manifest" in action ? objectAt(action.manifest, "metadata")["name"] : action.name];
  });

describe("failures", () => {
  test("a failed pod is counted once, deleted at once, and started again as the next attempt after its backoff", () => {
    const scene = new Scene(pytorch()).start();
    scene.set("j-worker-0", "Failed", { exitCode: 1 });
    const failed = scene.step();
    assert.deepEqual(names(failed, "deletePod"), ["j-worker-0"]);
    assert.equal(scene.job.status.phase, "RESTARTING");
    assert.deepEqual(scene.job.status.attempts, {
      user: 1,
      system: 0,
      byReplica: { "Worker/0": 2 },
      notBeforeMs: { "Worker/0": START_MS + 10_000 },
      restartsSeen: {},
    });
    scene.cluster.collect();
    const waiting = scene.step();
    assert.deepEqual(names(waiting, "createPod"), []);
    assert.equal(waiting.recheckAtMs, START_MS + 10_000);
    assert.equal(scene.job.status.phase, "RUNNING");
    scene.nowMs += 10_000;
    const [again] = scene.step().actions.filter(({ kind }) => kind === "createPod") as { manifest: JsonObject }[];
    assert.equal(objectAt(objectAt(again?.manifest, "metadata"), "labels")["gangway.dev/attempt"], "2");
  });

  test("with scope GANG one failure restarts every pod, and none starts before all are gone", () => {
    const scene = new Scene(pytorch({ restartScope: "GANG" })).start();
    scene.set("j-worker-0", "Failed", { exitCode: 1 });
    assert.equal(names(scene.step(), "deletePod").length, 3);
    assert.equal(scene.job.status.attempts.user, 1);
    assert.deepEqual(scene.job.status.attempts.byReplica, { "Master/0": 2, "Worker/0": 2, "Worker/1": 2 });
    const [kept, ...gone] = scene.cluster.pods();
    scene.cluster.things = scene.cluster.things.filter((thing) => !gone.includes(thing));
    scene.nowMs += 60_000;
    assert.deepEqual(names(scene.step(), "createPod"), [], `${kept?.name} is still there`);
    scene.cluster.collect();
    assert.equal(names(scene.step(), "createPod").length, 3);
  });

  const ends = {
    "under Never the first failure is the job's": {
      sent: pytorch({}, "Never"),
      exitCode: 1,
      code: "ExitCode",
      user: 0,
    },
    "under Never even a kill without OOM is the job's": {
      sent: pytorch({}, "Never"),
      exitCode: 137,
      code: "SIGKILL",
      user: 0,
    },
    "under ExitCode a code below 128 is permanent": {
      sent: pytorch({}, "ExitCode"),
      exitCode: 127,
      code: "ExitCode",
      user: 0,
    },
    "a backoff limit of 0 ends the job at the first failure": {
      sent: pytorch({ backoffLimit: 0 }),
      exitCode: 1,
      code: "BackoffLimitExceeded",
      user: 1,
    },
    "a backoff limit of 1 ends the job at the first failure too": {
      sent: pytorch({ backoffLimit: 1 }),
      exitCode: 1,
      code: "BackoffLimitExceeded",
      user: 1,
    },
    "a system backoff limit of 1 ends the job at the first kill": {
      sent: pytorch({ systemBackoffLimit: 1 }),
      exitCode: 137,
      code: "SystemBackoffLimitExceeded",
      user: 0,
    },
  };
  for (const [name, { sent, exitCode, code, user }] of Object.entries(ends)) {
    test(name, () => {
      const scene = new Scene(sent).start();
      scene.set("j-worker-0", "Failed", { exitCode });
      scene.step();
      assert.equal(scene.job.status.phase, "FAILED");
      assert.equal(scene.job.status.failure?.code, code);
      assert.equal(scene.job.status.attempts.user, user);
      assert.equal(scene.job.status.replicaStatuses["Worker"]?.active, 1);
    });
  }

  test("under Never an evicted pod is the system's failure and is started again", () => {
    const scene = new Scene(pytorch({}, "Never")).start();
    scene.set("j-worker-0", "Failed", { reason: "Evicted" });
    scene.step();
    assert.equal(scene.job.status.phase, "RESTARTING");
    assert.deepEqual([scene.job.status.attempts.user, scene.job.status.attempts.system], [0, 1]);
  });

  test("container restarts of running pods count by their growth alone", () => {
    const scene = new Scene(pytorch({ backoffLimit: 3 })).start();
    scene.set("j-worker-0", "Running", { restarts: 2 });
    scene.step();
    scene.step();
    assert.equal(scene.job.status.attempts.user, 2);
    scene.set("j-worker-0", "Running", { restarts: 3 });
    scene.step();
    assert.equal(scene.job.status.failure?.code, "BackoffLimitExceeded");
  });

  test("a pod that is being deleted counts neither as active nor as failed, and is replaced without a new attempt", () => {
    const scene = new Scene(pytorch()).start();
    scene.set("j-worker-0", "Failed", { exitCode: 1 });
    scene.cluster.change(scene.cluster.pods().find(({ name }) => name === "j-worker-0")!, { deleting: true });
    scene.step();
    assert.deepEqual(scene.job.status.replicaStatuses["Worker"], { active: 1, succeeded: 0, failed: 0 });
    scene.cluster.collect();
    assert.deepEqual(names(scene.step(), "createPod"), ["j-worker-0"]);
    assert.deepEqual(scene.job.status.attempts.byReplica, {});
  });
});

describe("what is not this gang's", () => {
  test("a foreign pod that holds a name is neither adopted nor deleted, and is reported once", () => {
    const scene = new Scene(pytorch());
    const json = { metadata: { name: "j-worker-0", uid: "foreign" }, status: { phase: "Running" } };
    scene.cluster.things.push({ kind: "pod", name: "j-worker-0", uid: "foreign", json, deleting: false });
    const first = scene.step();
    assert.deepEqual(names(first, "createPod").sort(), ["j-master-0", "j-worker-1"]);
    assert.deepEqual(
      first.record?.events.map(({ reason }) => reason),
      ["PyTorchJobStarting", "FailedCreatePod"],
    );
    const second = scene.step();
    assert.deepEqual(second.record, null);
    assert.ok(second.recheckAtMs !== null && second.recheckAtMs > scene.nowMs);
    assert.ok(scene.podNames.includes("j-worker-0"));
  });

  test("pods beyond the members and remains of unknown admissions are deleted", () => {
    const scene = new Scene(pytorch()).start();
    const [pod] = scene.cluster.pods();
    const stray = (name: string, labels: JsonObject) => {
      const metadata = objectAt(pod?.json, "metadata");
      const json = {
        ...pod?.json,
        metadata: { ...metadata, name, uid: name, labels: { ...objectAt(metadata, "labels"), ...labels } },
      };
      scene.cluster.things.push({ kind: "pod", name, uid: name, json, deleting: false });
    };
    stray("beyond", { "training.kubeflow.org/replica-type": "worker", "training.kubeflow.org/replica-index": "7" });
    stray("unknown-role", { "training.kubeflow.org/replica-type": "chief" });
    stray("older", { "gangway.dev/admission": "0" });
    const decision = scene.step();
    assert.deepEqual(names(decision, "deletePod").sort(), ["beyond", "older", "unknown-role"]);
    assert.equal(decision.record?.status.replicaStatuses["Worker"]?.active, 3);
    assert.equal(decision.record?.status.replicaStatuses["Master"]?.active, 1);
  });

  test("of two pods in one place the older is kept", () => {
    const scene = new Scene(pytorch()).start();
    const pod = scene.cluster.pods().find(({ name }) => name === "j-worker-0");
    const metadata = {
      ...objectAt(pod?.json, "metadata"),
      name: "twin",
      uid: "twin",
      creationTimestamp: "2030-01-01T00:00:00Z",
    };
    scene.cluster.things.unshift({
      kind: "pod",
      name: "twin",
      uid: "twin",
      json: { ...pod?.json, metadata },
      deleting: false,
    });
    assert.deepEqual(names(scene.step(), "deletePod"), ["twin"]);
  });

  test("everything that is seen of a job without a record is swept", () => {
    const scene = new Scene(pytorch()).start();
    const actions = sweep([scene.cluster.observe({ nowMs: scene.nowMs, lagMs: 0 })], scene.job);
    assert.deepEqual(
      actions.map(({ kind }) => kind),
      ["deletePod", "deletePod", "deletePod", "deleteService", "deleteService", "deleteService", "deleteAnchor"],
    );
  });
});

describe("the end", () => {
  const policies = {
    "policy All leaves nothing": { policy: "All", left: [], objects: 0 },
    "policy Running leaves pods that have ended": { policy: "Running", left: ["j-master-0", "j-worker-0"], objects: 6 },
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

  test("tokens that a policy lets a pod hold are released once that pod ends", () => {
    const scene = new Scene(pytorch({ cleanPodPolicy: "None" })).start();
    scene.set("j-master-0", "Succeeded", { exitCode: 0 });
    scene.set("j-worker-0", "Succeeded", { exitCode: 0 });
    scene.rest();
    assert.equal(scene.job.admissions[0]?.tokensReleasedMs, null);
    scene.set("j-worker-1", "Failed", { exitCode: 1 });
    scene.step();
    assert.equal(scene.job.admissions[0]?.tokensReleasedMs, scene.nowMs);
  });

  test("a cancelled job keeps pods that have ended by its policy, and none that runs", () => {
    const scene = new Scene(pytorch({ cleanPodPolicy: "None" })).start();
    scene.set("j-worker-0", "Succeeded", { exitCode: 0 });
    scene.step();
    scene.job = { ...scene.job, cancel: { reason: "enough", atMs: scene.nowMs } };
    scene.rest();
    assert.deepEqual(scene.podNames, ["j-worker-0"]);
    assert.ok(isConditionTrue(scene.job.status.conditions, "Cancelled"));
    assert.notEqual(scene.job.admissions[0]?.tokensReleasedMs, null);
  });

  test("a deleted job goes with all it has, and is forgotten only then", () => {
    const scene = new Scene(pytorch({ cleanPodPolicy: "None" })).start();
    scene.job = { ...scene.job, deleteTimeMs: scene.nowMs };
    assert.equal(scene.step().forget, false);
    assert.equal(scene.step().forget, false);
    scene.rest();
    assert.deepEqual(scene.cluster.things, []);
    assert.equal(scene.step().forget, true);
  });

  test("a waiting job that is deleted ends, and is forgotten in the next pass", () => {
    const scene = new Scene(pytorch());
    scene.job = { ...jobOf(pytorch()), deleteTimeMs: scene.nowMs };
    assert.equal(scene.step().recheckAtMs, scene.nowMs);
    assert.equal(scene.job.status.phase, "CANCELLED");
    assert.equal(scene.step().forget, true);
  });

  test("the deadline fails the job without any event to wake it, with its policy honoured", () => {
    const scene = new Scene(pytorch({ activeDeadlineSeconds: 60, cleanPodPolicy: "Running" })).start();
    assert.equal(scene.step().recheckAtMs, START_MS + 60_000);
    scene.nowMs += 60_000;
    scene.rest();
    assert.equal(scene.job.status.failure?.code, "DeadlineExceeded");
    assert.deepEqual(scene.podNames, []);
  });

  test("a time to live of 0 deletes the job once its end is recorded", () => {
    const scene = new Scene(pytorch({ ttlSecondsAfterFinished: 0, cleanPodPolicy: "All" })).start();
    scene.set("j-master-0", "Succeeded", { exitCode: 0 });
    scene.step();
    assert.equal(scene.job.deleteTimeMs, null);
    scene.rest();
    assert.notEqual(scene.job.deleteTimeMs, null);
  });
});

describe("the start timeout", () => {
  test("undoes an admission that stays below its minimum, and the gang waits with backoff", () => {
    const scene = new Scene(pytorch({ schedulingPolicy: { scheduleTimeoutSeconds: 120 } }));
    assert.equal(scene.step().recheckAtMs, START_MS + 5_000);
    scene.set("j-master-0", "Running");
    scene.nowMs += 120_000;
    const undone = scene.step();
    assert.equal(scene.job.status.phase, "WAITING");
    assert.deepEqual(scene.job.status.backoff, { undone: 1, notBeforeMs: scene.nowMs + 30_000, lastCluster: "c1" });
    assert.equal(scene.job.status.waiting?.reason, "Backoff");
    assert.equal(scene.job.status.startTimeMs, null);
    assert.ok(!isConditionTrue(scene.job.status.conditions, "Running"));
    assert.deepEqual(names(undone, "deleteAnchor"), ["j-admission-1"]);
    assert.equal(scene.job.admissions[0]?.state, "undone");
    scene.rest();
    assert.deepEqual(scene.cluster.things, []);
    assert.deepEqual(scene.job.admissions, [], "released, gone and dropped");
  });

  test("0 waits for ever", () => {
    const scene = new Scene(pytorch({ schedulingPolicy: { scheduleTimeoutSeconds: 0 } }));
    scene.step();
    scene.nowMs += 86_400_000;
    scene.step();
    assert.equal(scene.job.status.phase, "STARTING");
  });

  test("a gang that comes up forgets what was undone before", () => {
    const scene = new Scene(pytorch());
    const backoff = { undone: 3, notBeforeMs: START_MS, lastCluster: "c2" };
    scene.job = { ...scene.job, status: { ...scene.job.status, backoff } };
    scene.start();
    assert.equal(scene.job.status.backoff, null);
    assert.equal(scene.job.admissions[0]?.belowMinSinceMs, null);
    assert.ok(isConditionTrue(scene.job.status.conditions, "PodsReady"));
  });
});
