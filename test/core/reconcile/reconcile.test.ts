import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { isInterruptible } from "../../../src/core/job/interruptible.ts";
import { reconcile, sweep } from "../../../src/core/reconcile/reconcile.ts";
import type { JsonObject } from "../../../src/runtime/json.ts";
import { arrayAt, objectAt, stringMapAt } from "../../../src/runtime/json.ts";
import { names, pytorch, Scene } from "./scene.ts";
import { CONFIG, podStatus, START_MS, template } from "./world.ts";

describe("failures", () => {
  test("a failed pod is counted once, deleted at once, and restarted as the next attempt after its backoff", () => {
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
      last: {
        code: "ExitCode",
        kind: "USER",
        message: "pod j-worker-0 ended with exit code 1 in container pytorch",
        container: "pytorch",
        exitCode: 1,
        atMs: START_MS,
      },
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

  test("with scope GANG one failure restarts every pod, and no pod starts before all are gone", () => {
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
    "under Never the first failure ends the job": {
      sent: pytorch({}, "Never"),
      exitCode: 1,
      code: "ExitCode",
      user: 0,
    },
    "under Never even a kill without OOM ends the job": {
      sent: pytorch({}, "Never"),
      exitCode: 137,
      code: "Interrupted",
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

  const stuck = (scene: Scene, name: string, reason: string, sinceMs = scene.nowMs) =>
    scene.cluster.setPod(scene.cluster.pods().find((pod) => pod.name === name)!, {
      phase: "Pending",
      conditions: [
        { type: "PodScheduled", status: "True" },
        { type: "Ready", status: "False", lastTransitionTime: new Date(sinceMs).toISOString() },
      ],
      containerStatuses: [{ name: "pytorch", ready: false, state: { waiting: { reason } } }],
    });

  test("a pod whose image cannot be pulled is restarted after its grace period, and counted once", () => {
    const scene = new Scene(pytorch({ backoffLimit: 2 }));
    scene.step();
    for (const name of ["j-master-0", "j-worker-1"]) scene.refuse(name, "no node has room");
    stuck(scene, "j-worker-0", "ImagePullBackOff");
    assert.equal(scene.step().recheckAtMs, scene.nowMs + 180_000);
    scene.nowMs += 179_999;
    assert.deepEqual(names(scene.step(), "deletePod"), []);
    scene.nowMs += 1;
    assert.deepEqual(names(scene.step(), "deletePod"), ["j-worker-0"]);
    scene.rest();
    assert.deepEqual([scene.job.status.attempts.user, scene.job.status.attempts.system], [1, 0]);
    assert.equal(scene.job.status.phase, "RESTARTING");
  });

  test("an invalid image name ends the job, and its pod is deleted although policy None keeps pods", () => {
    const scene = new Scene(pytorch({ cleanPodPolicy: "None", backoffLimit: 5 }));
    scene.step();
    scene.set("j-worker-1", "Running");
    stuck(scene, "j-worker-0", "InvalidImageName");
    scene.rest();
    const { phase, failure, attempts } = scene.job.status;
    assert.deepEqual([phase, failure?.code, failure?.kind], ["FAILED", "|InvalidImageName", "USER"]);
    assert.deepEqual([attempts.user, failure?.container], [0, "pytorch"]);
    assert.deepEqual(scene.podNames, ["j-master-0", "j-worker-1"]);
  });

  test("a permanent failure ends even a job whose kind forgives failures of workers", () => {
    const replicaSpecs = { Worker: { replicas: 2, template: template("tensorflow") } };
    const scene = new Scene({ kind: "TFJob", replicaSpecs, kindSpec: { enableDynamicWorker: true } }, "tensorflow");
    scene.step();
    stuck(scene, "j-worker-0", "CreateContainerConfigError");
    scene.step();
    assert.equal(scene.job.status.failure?.code, "|CreateContainerConfigError");
  });

  test("a container that cannot run by the cluster's fault counts against the system budget", () => {
    const scene = new Scene(pytorch({ systemBackoffLimit: 1 }));
    scene.step();
    stuck(scene, "j-worker-0", "RunContainerError");
    scene.step();
    assert.equal(scene.job.status.failure?.code, "SystemBackoffLimitExceeded");
    assert.deepEqual([scene.job.status.attempts.user, scene.job.status.attempts.system], [0, 1]);
  });

  test("a pod succeeds once its primary container has succeeded, although a sidecar still runs", () => {
    const scene = new Scene(pytorch({ cleanPodPolicy: "Running" }, "Never")).start();
    const status = podStatus("Running", "pytorch", { exitCode: 0 });
    const containerStatuses = [...arrayAt(status, "containerStatuses"), { name: "proxy", state: { running: {} } }];
    const master = scene.cluster.pods().find(({ name }) => name === "j-master-0")!;
    scene.cluster.setPod(master, { ...status, containerStatuses });
    scene.step();
    assert.equal(scene.job.status.phase, "SUCCEEDED");
    assert.deepEqual(scene.job.status.replicaStatuses["Master"], { active: 0, succeeded: 1, failed: 0 });
    scene.rest();
    assert.deepEqual(scene.podNames, []);
  });

  test("a success despite a lack of memory is a failure and is restarted", () => {
    const scene = new Scene(pytorch()).start();
    const state = { terminated: { exitCode: 0, reason: "OOMKilled" } };
    const worker = scene.cluster.pods().find(({ name }) => name === "j-worker-0")!;
    scene.cluster.setPod(worker, { phase: "Succeeded", containerStatuses: [{ name: "pytorch", state }] });
    assert.deepEqual(names(scene.step(), "deletePod"), ["j-worker-0"]);
    assert.equal(scene.job.status.attempts.user, 1);
  });

  test("under Never an evicted pod is a system failure and is restarted", () => {
    const scene = new Scene(pytorch({}, "Never")).start();
    scene.set("j-worker-0", "Failed", { reason: "Evicted" });
    scene.step();
    assert.equal(scene.job.status.phase, "RESTARTING");
    assert.deepEqual([scene.job.status.attempts.user, scene.job.status.attempts.system], [0, 1]);
  });

  test("after too many system failures an interruptible job starts pods that are not interruptible", () => {
    const scene = new Scene(pytorch({ interruptible: true, interruptibleFailureThreshold: 2 })).start();
    const label = (name: string) => {
      const pod = scene.cluster.pods().find((one) => one.name === name);
      return stringMapAt(objectAt(pod?.json, "metadata"), "labels")["gangway.dev/interruptible"];
    };
    const evict = (name: string) => {
      scene.set(name, "Failed", { reason: "Evicted" });
      const events = scene.step().record?.events ?? [];
      const warnings = events.filter(({ reason }) => reason === "PyTorchJobNotInterruptible").length;
      scene.cluster.collect();
      scene.nowMs += 60_000;
      scene.step();
      return [label(name), warnings];
    };
    assert.equal(label("j-worker-0"), "true");
    assert.deepEqual(evict("j-worker-0"), ["true", 0]);
    assert.deepEqual(evict("j-worker-1"), ["false", 1]);
    assert.equal(label("j-worker-0"), "true", "what runs stays what it is");
    assert.deepEqual(evict("j-worker-0"), ["false", 0]);
  });

  test("user failures keep a job interruptible, and by default one system failure ends that", () => {
    const { spec } = new Scene(pytorch({ interruptible: true })).job;
    const steady = { ...spec, runPolicy: { ...spec.runPolicy, interruptible: false } };
    assert.equal(isInterruptible(spec, { system: 0 }), true);
    assert.equal(isInterruptible(spec, { system: 1 }), false);
    assert.equal(isInterruptible(steady, { system: 0 }), false);
  });

  test("container restarts of running pods are counted by their increase", () => {
    const scene = new Scene(pytorch({ backoffLimit: 3 })).start();
    scene.set("j-worker-0", "Running", { restarts: 2 });
    scene.step();
    scene.step();
    assert.equal(scene.job.status.attempts.user, 2);
    scene.set("j-worker-0", "Running", { restarts: 3 });
    scene.step();
    assert.equal(scene.job.status.attempts.user, 3);
    assert.equal(scene.job.status.failure?.code, "BackoffLimitExceeded");
  });

  test("a pod under deletion counts neither as active nor as failed, and is replaced without a new attempt", () => {
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

describe("pods that the platform disrupts and deletes", () => {
  const disrupt = (scene: Scene, name: string) =>
    scene.cluster.disrupt(scene.cluster.pods().find((pod) => pod.name === name)!, scene.nowMs);
  const counted = ({ job }: Scene) => [job.status.attempts.user, job.status.attempts.system];

  test("count once, against the system budget, and are restarted under every policy", () => {
    for (const policy of ["OnFailure", "Never", "ExitCode"] as const) {
      const scene = new Scene(pytorch({}, policy)).start();
      disrupt(scene, "j-worker-0");
      scene.step();
      scene.step();
      scene.cluster.collect();
      scene.step();
      assert.deepEqual(counted(scene), [0, 1], policy);
      assert.deepEqual(scene.job.status.attempts.byReplica, { "Worker/0": 2 });
      assert.equal(scene.podNames.includes("j-worker-0"), false, "not before its backoff is over");
      scene.nowMs += 10_000;
      assert.deepEqual(names(scene.step(), "createPod"), ["j-worker-0"]);
    }
  });

  test("count once although their containers fail while they are being stopped", () => {
    const scene = new Scene(pytorch()).start();
    disrupt(scene, "j-worker-0");
    scene.step();
    scene.set("j-worker-0", "Failed", { exitCode: 143 });
    scene.step();
    assert.deepEqual(counted(scene), [0, 1]);
  });

  test("count although they were gone before the next look, and are replaced without further delay", () => {
    const scene = new Scene(pytorch({ restartScope: "GANG" })).start();
    disrupt(scene, "j-worker-0");
    scene.cluster.collect();
    assert.deepEqual(names(scene.step(), "deletePod").sort(), ["j-master-0", "j-worker-1"]);
    scene.cluster.collect();
    scene.nowMs += 10_000;
    assert.deepEqual(names(scene.step(), "createPod").sort(), ["j-master-0", "j-worker-0", "j-worker-1"]);
    assert.deepEqual(counted(scene), [0, 1]);
  });

  test("do not count once they have succeeded", () => {
    const scene = new Scene(pytorch()).start();
    scene.set("j-worker-0", "Succeeded", { exitCode: 0 });
    disrupt(scene, "j-worker-0");
    scene.step();
    assert.deepEqual(counted(scene), [0, 0]);
  });

  test("restart the whole gang with scope GANG", () => {
    const scene = new Scene(pytorch({ restartScope: "GANG" })).start();
    disrupt(scene, "j-worker-0");
    assert.deepEqual(names(scene.step(), "deletePod").sort(), ["j-master-0", "j-worker-1"]);
    assert.deepEqual(counted(scene), [0, 1]);
  });

  test("end the job when the system budget is spent", () => {
    const scene = new Scene(pytorch({ systemBackoffLimit: 1 })).start();
    disrupt(scene, "j-worker-0");
    scene.step();
    const { failure } = scene.job.status;
    assert.deepEqual([failure?.code, failure?.kind], ["SystemBackoffLimitExceeded", "SYSTEM"]);
  });
});

describe("clusters and objects beyond the gang", () => {
  test("without a view of the cluster only the deadline is checked", () => {
    const scene = new Scene(pytorch({ activeDeadlineSeconds: 60 })).start();
    const blind = reconcile(scene.job, [], scene.nowMs, CONFIG);
    assert.deepEqual(blind, { record: null, forget: false, actions: [], recheckAtMs: scene.nowMs + 5_000 });
    assert.equal(reconcile(scene.job, [], START_MS + 60_000, CONFIG).record?.status.phase, "FAILED");
  });

  test("a foreign pod with the name of a member is neither adopted nor deleted, and is reported once", () => {
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

  test("pods beyond the members, and pods of unknown admissions, are deleted", () => {
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

  test("of two pods in one slot the older is kept", () => {
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

  test("all objects of a job without a record are deleted", () => {
    const scene = new Scene(pytorch()).start();
    const actions = sweep([scene.cluster.observe({ nowMs: scene.nowMs, lagMs: 0 })], scene.job);
    assert.deepEqual(
      actions.map(({ kind }) => kind),
      ["deletePod", "deletePod", "deletePod", "deleteService", "deleteService", "deleteService", "deleteAnchor"],
    );
  });
});
