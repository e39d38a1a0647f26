import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { reconcile } from "../../../src/core/reconcile/reconcile.ts";
import { pytorch, Scene } from "./scene.ts";
import { CONFIG, START_MS } from "./world.ts";

describe("counting failures", () => {
  test("under ExitCode a pod with exit code 128 is restarted", () => {
    const scene = new Scene(pytorch({}, "ExitCode")).start();
    scene.set("j-worker-0", "Failed", { exitCode: 128 });
    scene.step();
    assert.equal(scene.job.status.phase, "RESTARTING");
    assert.deepEqual(scene.job.status.attempts.byReplica, { "Worker/0": 2 });
  });

  test("with scope GANG every member waits as long as the member with the most attempts", () => {
    const scene = new Scene(pytorch({ restartScope: "GANG" }));
    const { status } = scene.job;
    scene.job = { ...scene.job, status: { ...status, attempts: { ...status.attempts, byReplica: { "Master/0": 3 } } } };
    scene.start();
    scene.set("j-worker-0", "Failed", { exitCode: 1 });
    scene.step();
    const atMs = START_MS + 40_000;
    assert.deepEqual(scene.job.status.attempts.notBeforeMs, { "Master/0": atMs, "Worker/0": atMs, "Worker/1": atMs });
  });

  for (const budget of ["user", "system"] as const) {
    test(`a spent ${budget} budget ends the job only when another failure is counted against it`, () => {
      const scene = new Scene(pytorch({ backoffLimit: 2, systemBackoffLimit: 2 }));
      const { status } = scene.job;
      scene.job = { ...scene.job, status: { ...status, attempts: { ...status.attempts, [budget]: 2 } } };
      scene.start();
      scene.set("j-worker-0", "Failed", budget === "user" ? { reason: "Evicted" } : { exitCode: 1 });
      scene.step();
      assert.equal(scene.job.status.phase, "RESTARTING", "a failure of the other budget");
      scene.set("j-worker-1", "Failed", budget === "user" ? { exitCode: 1 } : { reason: "Evicted" });
      scene.step();
      assert.equal(scene.job.status.phase, "FAILED");
    });
  }

  test("a system backoff limit of 0 ends the job at the first failure of the system", () => {
    const scene = new Scene(pytorch({ systemBackoffLimit: 0 })).start();
    scene.set("j-worker-0", "Failed", { reason: "Evicted" });
    scene.step();
    assert.equal(scene.job.status.failure?.code, "SystemBackoffLimitExceeded");
  });
});

describe("an incident", () => {
  const MINUTE_MS = 60_000;
  const large = (workers: number) => {
    const sent = pytorch({ systemBackoffLimit: 3 });
    const worker = sent.replicaSpecs["Worker"]!;
    return new Scene({ ...sent, replicaSpecs: { ...sent.replicaSpecs, Worker: { ...worker, replicas: workers } } });
  };
  /** Disrupts a pod, and waits until the gang runs again. */
  const disrupt = (scene: Scene, ...names: string[]) => {
    for (const name of names) scene.set(name, "Failed", { reason: "Evicted" });
    scene.step();
    scene.cluster.collect();
  };
  const counted = (scene: Scene) => scene.job.status.attempts.system;

  test("of a large gang counts once, whether its disruptions are seen together or one after the other", () => {
    const scene = large(24).start();
    disrupt(scene, "j-worker-0", "j-worker-1", "j-worker-2", "j-worker-3");
    for (let index = 4; index < 24; index++) {
      scene.nowMs += 2_500;
      disrupt(scene, `j-worker-${index}`);
    }
    assert.deepEqual([scene.job.status.phase, counted(scene)], ["RESTARTING", 1]);
    assert.equal(Object.keys(scene.job.status.attempts.byReplica).length, 24, "every pod has its next attempt");
  });

  const cases: Record<string, { waitMs: number; system: number }> = {
    "goes on 1 ms before a minute is over": { waitMs: MINUTE_MS - 1, system: 1 },
    "is over after a minute": { waitMs: MINUTE_MS, system: 2 },
  };
  for (const [name, { waitMs, system }] of Object.entries(cases)) {
    test(name, () => {
      const scene = large(4).start();
      disrupt(scene, "j-worker-0");
      scene.nowMs += waitMs;
      disrupt(scene, "j-worker-1");
      assert.equal(counted(scene), system);
    });
  }

  test("does not go on in the next admission", () => {
    const scene = large(4).start();
    disrupt(scene, "j-worker-0");
    const { attempts } = scene.job.status;
    assert.deepEqual(attempts.incident, { admission: 1, sinceMs: scene.nowMs });
    const incident = { admission: 7, sinceMs: scene.nowMs };
    scene.job = { ...scene.job, status: { ...scene.job.status, attempts: { ...attempts, incident } } };
    disrupt(scene, "j-worker-1");
    assert.equal(counted(scene), 2);
  });

  test("is not taken for one by a program that is killed again and again", () => {
    const scene = large(4).start();
    for (const name of ["j-worker-0", "j-worker-1"]) {
      scene.set(name, "Failed", { exitCode: 137 });
      scene.step();
      scene.cluster.collect();
    }
    assert.equal(counted(scene), 2);
  });

  test("that repeats each minute spends the budget", () => {
    const scene = large(4).start();
    for (let index = 0; index < 3; index++) {
      disrupt(scene, `j-worker-${index}`);
      scene.nowMs += MINUTE_MS;
    }
    assert.equal(scene.job.status.failure?.code, "SystemBackoffLimitExceeded");
  });
});

describe("a pod that its cluster refuses for good", () => {
  const refuse = (scene: Scene, attempt: number) => {
    const why = { reason: "FailedCreatePod", code: "Invalid", message: "too large" };
    const refused = { admission: 1, name: "j-worker-0", attempt, ...why };
    const observed = [scene.cluster.observe({ nowMs: scene.nowMs, lagMs: 0 })];
    return reconcile(scene.job, observed, scene.nowMs, CONFIG, { refused }).record?.status;
  };
  const withoutWorker = () => {
    const scene = new Scene(pytorch()).start();
    scene.set("j-worker-0", "Failed", { exitCode: 1 });
    scene.step();
    scene.cluster.collect();
    return scene;
  };

  test("fails the job if it is of the attempt that the record names", () => {
    const status = refuse(withoutWorker(), 2);
    assert.deepEqual([status?.phase, status?.failure?.code], ["FAILED", "Invalid"]);
    assert.match(status?.failure?.message ?? "", /c1 refuses pod j-worker-0: too large/);
  });

  test("does not matter if it is of an older attempt", () => {
    assert.notEqual(refuse(withoutWorker(), 1)?.phase, "FAILED");
  });
});

describe("the minimum", () => {
  test("counts pods that have succeeded", () => {
    const scene = new Scene(pytorch());
    scene.step();
    scene.set("j-worker-0", "Succeeded", { exitCode: 0 });
    for (const name of ["j-master-0", "j-worker-1"]) scene.set(name, "Running");
    scene.step();
    assert.equal(scene.job.admissions[0]?.belowMinSinceMs, null);
  });
});
