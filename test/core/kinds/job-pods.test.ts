import assert from "node:assert/strict";
import { test } from "node:test";
import { recordedPods, type ShownPod, seenPods, shownAdmission } from "../../../src/core/kinds/job-pods.ts";
import { fromManifest } from "../../../src/core/kinds/manifest/from-manifest.ts";
import type { JsonObject } from "../../../src/runtime/json.ts";
import { OWN_KINDS } from "../../support/kinds.ts";
import { pytorch, Scene } from "../reconcile/scene.ts";
import { jobOf, START_MS, template } from "../reconcile/world.ts";

const kind = OWN_KINDS.kindOf("PyTorchJob");

/** `master-0 attempt 1 Running`, and what else there is to say. */
const said = (pods: readonly ShownPod[]) =>
  pods.map(({ name, attempt, phase, ready, restarts, reason, message }) => {
    const more = [ready ? "ready" : "", restarts > 0 ? `${restarts} restarts` : "", reason, message];
    return [`${name.slice(2)} attempt ${attempt} ${phase}`, ...more].filter((text) => text !== "").join(", ");
  });
const seen = (scene: Scene) => {
  const { pods } = scene.cluster.observe({ nowMs: scene.nowMs, lagMs: 0 });
  return said(seenPods({ job: scene.job, kind }, pods, scene.nowMs));
};
const recorded = ({ job }: Scene) => said(recordedPods({ job, kind }));

type Case = {
  readonly restartPolicy?: "Never";
  readonly play: (scene: Scene) => void;
  readonly seen: readonly string[];
  readonly recorded: readonly string[];
};

const cases: Record<string, Case> = {
  "no pod is created yet": {
    play: () => undefined,
    seen: ["master-0 attempt 1 NotCreated", "worker-0 attempt 1 NotCreated", "worker-1 attempt 1 NotCreated"],
    recorded: ["master-0 attempt 1 Pending", "worker-0 attempt 1 Pending", "worker-1 attempt 1 Pending"],
  },
  "one runs, one is restarted within its pod, and no node takes the third": {
    play: (scene) => {
      scene.step();
      scene.set("j-master-0", "Running");
      scene.set("j-worker-0", "Running", { restarts: 3 });
      scene.refuse("j-worker-1", "no room");
      scene.step();
    },
    seen: [
      "master-0 attempt 1 Running, ready",
      "worker-0 attempt 1 Running, ready, 3 restarts",
      "worker-1 attempt 1 Pending, Unschedulable, no room",
    ],
    recorded: [
      "master-0 attempt 1 Running, ready",
      "worker-0 attempt 1 Running, ready, 3 restarts",
      "worker-1 attempt 1 Pending, Unschedulable, no room",
    ],
  },
  "a failed pod is deleted before it starts again": {
    play: (scene) => {
      scene.start();
      scene.set("j-worker-0", "Failed", { exitCode: 1 });
      scene.step();
    },
    seen: [
      "master-0 attempt 1 Running, ready",
      "worker-0 attempt 1 Terminating, ExitCode, pod j-worker-0 ended with exit code 1 in container pytorch",
      "worker-1 attempt 1 Running, ready",
    ],
    recorded: ["master-0 attempt 1 Running, ready", "worker-0 attempt 2 Pending", "worker-1 attempt 1 Running, ready"],
  },
  "a failed pod waits for its next attempt": {
    play: (scene) => {
      scene.start();
      scene.set("j-worker-0", "Failed", { exitCode: 1 });
      scene.step();
      scene.cluster.collect();
      scene.step();
    },
    seen: [
      "master-0 attempt 1 Running, ready",
      `worker-0 attempt 2 NotCreated, Backoff, it starts again at ${new Date(START_MS + 10_000).toISOString()}`,
      "worker-1 attempt 1 Running, ready",
    ],
    recorded: ["master-0 attempt 1 Running, ready", "worker-0 attempt 2 Pending", "worker-1 attempt 1 Running, ready"],
  },
  "a pod that has succeeded and is gone": {
    play: (scene) => {
      scene.start();
      scene.set("j-worker-0", "Succeeded", { exitCode: 0 });
      scene.step();
      scene.cluster.things = scene.cluster.things.filter(({ name, kind }) => kind !== "pod" || name !== "j-worker-0");
    },
    seen: ["master-0 attempt 1 Running, ready", "worker-0 attempt 1 Succeeded", "worker-1 attempt 1 Running, ready"],
    recorded: [
      "master-0 attempt 1 Running, ready",
      "worker-0 attempt 1 Succeeded",
      "worker-1 attempt 1 Running, ready",
    ],
  },
  "the job has failed, and its clean-pod policy has deleted the running pods": {
    restartPolicy: "Never",
    play: (scene) => {
      scene.start();
      scene.set("j-worker-0", "Failed", { exitCode: 1 });
      scene.rest();
    },
    seen: [
      "master-0 attempt 1 Deleted",
      "worker-0 attempt 1 Failed, ExitCode, pod j-worker-0 ended with exit code 1 in container pytorch",
      "worker-1 attempt 1 Deleted",
    ],
    recorded: ["master-0 attempt 1 Deleted", "worker-0 attempt 1 Failed, ExitCode", "worker-1 attempt 1 Deleted"],
  },
  "the job waits again, and one pod of its former admission is still being deleted": {
    play: (scene) => {
      scene.start();
      const runPolicy = { ...scene.job.spec.runPolicy, suspend: true };
      scene.job = { ...scene.job, spec: { ...scene.job.spec, runPolicy } };
      scene.step();
      const left = scene.cluster.things.filter(({ kind, name }) => kind !== "pod" || name === "j-worker-1");
      scene.cluster.things = left;
    },
    seen: ["worker-1 attempt 1 Terminating, ready"],
    recorded: [],
  },
};
for (const [name, { restartPolicy = "OnFailure", play, ...wanted }] of Object.entries(cases)) {
  test(name, () => {
    const scene = new Scene(pytorch({ cleanPodPolicy: "Running" }, restartPolicy));
    play(scene);
    assert.deepEqual({ seen: seen(scene), recorded: recorded(scene) }, wanted);
  });
}

test("members of a JobSet whose replica type may not start yet say so", () => {
  const group = (name: string, more: JsonObject = {}) => ({
    name,
    template: { spec: { template: { spec: { containers: [{ name: "main", image: "busybox:1.36" }] } } } },
    ...more,
  });
  const dependsOn = [{ name: "first", status: "Ready" }];
  const jobSet = fromManifest(
    {
      apiVersion: "jobset.x-k8s.io/v1alpha2",
      kind: "JobSet",
      metadata: { name: "j" },
      spec: { replicatedJobs: [group("first"), group("second", { dependsOn })] },
    },
    OWN_KINDS,
  );
  assert.ok(jobSet.kind === "read");
  const scene = new Scene(jobSet.manifest.spec, "main");
  scene.step();
  const { pods } = scene.cluster.observe({ nowMs: scene.nowMs, lagMs: 0 });
  const shown = seenPods({ job: scene.job, kind: OWN_KINDS.kindOf("JobSet") }, pods, scene.nowMs);
  assert.deepEqual(
    said(shown).map((text) => text.replace(", as the order of the job says", "")),
    [
      "first-0-0 attempt 1 Pending",
      ["second-0-0 attempt 1 NotCreated", "WaitsForOthers", "its replica type starts after others"].join(", "),
    ],
  );
});

test("a job that waits has no pods", () => {
  const job = jobOf(pytorch());
  assert.deepEqual([recordedPods({ job, kind }), seenPods({ job, kind }, [], START_MS)], [[], []]);
});

test("the first 100 pods are recorded one by one, and all are seen", () => {
  const replicaSpecs = { Worker: { replicas: 130, template: template("main") } };
  const scene = new Scene({ kind: "Job", replicaSpecs }, "main").start();
  assert.equal(recorded(scene).length, 100);
  assert.equal(seen(scene).length, 130);
  assert.equal(Object.keys(scene.job.status.pods?.facts ?? {}).length, 100);
  assert.deepEqual(
    new Set(seen(scene).map((one) => one.replace(/^worker-\d+/, ""))),
    new Set([" attempt 1 Running, ready"]),
  );
});

test("of two pods of one replica the newer attempt is shown, and of those the one that stays", () => {
  const scene = new Scene(pytorch()).start();
  const { pods } = scene.cluster.observe({ nowMs: scene.nowMs, lagMs: 0 });
  const [master] = pods;
  assert.ok(master);
  const shown = (...others: readonly Partial<typeof master>[]) => {
    const all = others.map((of) => ({ ...master, ...of }));
    return seenPods({ job: scene.job, kind }, all, scene.nowMs)[0]?.node;
  };
  assert.equal(shown({ attempt: 1, nodeName: "old" }, { attempt: 2, nodeName: "new" }), "new");
  assert.equal(shown({ deleting: true, nodeName: "leaves" }, { nodeName: "stays" }), "stays");
  assert.equal(shown({ admission: 7, nodeName: "other admission" }), "");
  assert.equal(shown({ jobUid: "other", nodeName: "other job" }), "");
});

test("a pod that is not created says why", () => {
  const scene = new Scene(pytorch()).start();
  const says = (replicaType: string, reason: string) => {
    const problem = { replicaType, reason, message: "m", pods: 1, sinceMs: START_MS };
    const status = { ...scene.job.status, podProblems: { atMs: START_MS, problems: [problem] } };
    return said(seenPods({ job: { ...scene.job, status }, kind }, [], scene.nowMs))[0];
  };
  for (const reason of ["FailedCreatePod", "FailedCreateAnchor", "NameTaken", "PodGroupPending"]) {
    assert.equal(says("Master", reason), `master-0 attempt 1 NotCreated, ${reason}, m`);
  }
  assert.equal(says("Master", "Unschedulable"), "master-0 attempt 1 NotCreated", "another pod's problem");
  assert.equal(says("Worker", "FailedCreatePod"), "master-0 attempt 1 NotCreated", "another type's problem");
});

test("a pod is no longer said to wait at the time when it may start again", () => {
  const scene = new Scene(pytorch()).start();
  const attempts = { ...scene.job.status.attempts, notBeforeMs: { "Master/0": START_MS } };
  const job = { ...scene.job, status: { ...scene.job.status, attempts } };
  assert.equal(seenPods({ job, kind }, [], START_MS)[0]?.reason, "");
});

test("a pod shows when it was created, and one that waits for long is still Pending", () => {
  const scene = new Scene(pytorch());
  scene.step();
  const { pods } = scene.cluster.observe({ nowMs: scene.nowMs, lagMs: 0 });
  const waiting = {
    name: "pytorch",
    restarts: 0,
    ready: false,
    terminated: null,
    runningSinceMs: null,
    lastTerminated: null,
  };
  const containers = [{ ...waiting, waiting: { reason: "ImagePullBackOff", message: "" } }];
  const conditions = [
    { type: "PodScheduled", status: "True", reason: "", message: "", sinceMs: START_MS },
    { type: "Ready", status: "False", reason: "", message: "", sinceMs: START_MS },
  ];
  const stuck = pods.map((pod) => ({ ...pod, containers, conditions }));
  const shown = (views: typeof pods) => seenPods({ job: scene.job, kind: undefined }, views, START_MS + 3_600_000)[0];
  const first = shown(stuck);
  assert.deepEqual([first?.phase, first?.reason, first?.createTimeMs], ["Pending", "ImagePullBackOff", START_MS]);
  assert.equal(shown(stuck.map((pod) => ({ ...pod, createTimeMs: 0 })))?.createTimeMs, null);
  const running = stuck.map((pod) => ({ ...pod, phase: "Running" as const, containers: [] }));
  assert.equal(shown(running)?.phase, "Running", "also if the kind is not known");
});

test("what was recorded of an earlier admission is not shown", () => {
  const scene = new Scene(pytorch()).start();
  const facts = { "Master/0": { node: "n", ready: true as const } };
  const shown = (admission: number, more: object = { facts }) => {
    const pods = { admission, phases: { "Master/0": "RUNNING" as const }, ...more };
    return recordedPods({ job: { ...scene.job, status: { ...scene.job.status, pods } }, kind })[0];
  };
  assert.deepEqual([shown(1)?.phase, shown(1)?.node, shown(1)?.ready], ["Running", "n", true]);
  assert.deepEqual([shown(7)?.phase, shown(7)?.node, shown(7)?.ready], ["Pending", "", false]);
  const old = shown(1, {});
  assert.deepEqual([old?.phase, old?.node, old?.ready], ["Running", "", false], "a record of an older version");
});

test("the former admission is shown only while its pods may exist", () => {
  const scene = new Scene(pytorch()).start();
  const [admission] = scene.job.admissions;
  assert.ok(admission);
  const shown = (goneMs: number | null) => {
    const job = { ...scene.job, admissions: [{ ...admission, state: "undone" as const, goneMs }] };
    return shownAdmission(job)?.number ?? null;
  };
  assert.deepEqual([shown(null), shown(START_MS)], [1, null]);
});

test("a pod whose primary container has ended well has succeeded, although a sidecar runs", () => {
  const scene = new Scene(pytorch()).start();
  const { pods } = scene.cluster.observe({ nowMs: scene.nowMs, lagMs: 0 });
  const container = {
    restarts: 0,
    ready: false,
    waiting: null,
    terminated: null,
    runningSinceMs: null,
    lastTerminated: null,
  };
  const ended = { ...container, name: "pytorch", terminated: { exitCode: 0, reason: "Completed", message: "" } };
  const views = pods.map((pod) => ({ ...pod, containers: [{ ...container, name: "log" }, ended] }));
  assert.equal(seenPods({ job: scene.job, kind }, views, scene.nowMs)[0]?.phase, "Succeeded");
});
