import assert from "node:assert/strict";
import { test } from "node:test";
import type { CleanPodPolicy } from "../../../src/core/job/spec.ts";
import type { ContainerLogLink } from "../../../src/core/kinds/log-links.ts";
import { podInfo } from "../../../src/core/kinds/pod-info.ts";
import { OWN_KINDS } from "../../support/kinds.ts";
import { pytorch, Scene } from "../reconcile/scene.ts";
import { jobOf, START_MS } from "../reconcile/world.ts";

type Case = {
  readonly sent?: readonly [{ readonly cleanPodPolicy: CleanPodPolicy }, ("OnFailure" | "Never")?];
  readonly play: (scene: Scene) => void;
  readonly phase: string;
  /** Master/0, Worker/0, Worker/1: phase and retry. */
  readonly pods: readonly string[];
  readonly reason: RegExp;
};

/** One pod of the running gang ends, and a pass observes it. */
const ended = (name: string, exitCode: number) => (scene: Scene) => {
  scene.start().set(name, exitCode === 0 ? "Succeeded" : "Failed", { exitCode });
  scene.step();
};

const cancelled = (scene: Scene) => {
  scene.job = { ...scene.job, cancel: { reason: "wrong data", atMs: scene.nowMs } };
  scene.rest();
};

const cases: Record<string, Case> = {
  "a gang that was just admitted has its pods queued": {
    play: () => undefined,
    phase: "QUEUED",
    pods: ["QUEUED 0", "QUEUED 0", "QUEUED 0"],
    reason: /^$/,
  },
  "running pods and pods that have not started differ": {
    play: (scene) => {
      scene.step();
      scene.set("j-worker-1", "Running");
      scene.step();
    },
    phase: "INITIALIZING",
    pods: ["QUEUED 0", "QUEUED 0", "RUNNING 0"],
    reason: /^$/,
  },
  "a gang that runs": {
    play: (scene) => void scene.start(),
    phase: "RUNNING",
    pods: ["RUNNING 0", "RUNNING 0", "RUNNING 0"],
    reason: /PyTorchJob j is running/,
  },
  "a restarted pod has one more retry": {
    play: ended("j-worker-0", 1),
    phase: "INITIALIZING",
    pods: ["RUNNING 0", "QUEUED 1", "RUNNING 0"],
    reason: /restarting because 1 Worker replica\(s\) failed: j-worker-0/,
  },
  "a pod that failed for good fails the job, and the others are ABORTED": {
    sent: [{ cleanPodPolicy: "Running" }, "Never"],
    play: ended("j-worker-1", 1),
    phase: "PERMANENT_FAILURE",
    pods: ["ABORTED 0", "ABORTED 0", "PERMANENT_FAILURE 0"],
    reason: /exit|j-worker-1/,
  },
  "after a job has succeeded, pods that still ran are ABORTED": {
    play: ended("j-master-0", 0),
    phase: "SUCCESS",
    pods: ["SUCCESS 0", "ABORTED 0", "ABORTED 0"],
    reason: /successfully completed/,
  },
  "under clean-pod policy None they still run": {
    sent: [{ cleanPodPolicy: "None" }],
    play: ended("j-master-0", 0),
    phase: "SUCCESS",
    pods: ["SUCCESS 0", "RUNNING 0", "RUNNING 0"],
    reason: /successfully completed/,
  },
  "the pods of a cancelled gang are ABORTED": {
    play: (scene) => cancelled(scene.start()),
    phase: "ABORTED",
    pods: ["ABORTED 0", "ABORTED 0", "ABORTED 0"],
    reason: /wrong data/,
  },
};

const RUNNING = [{ cleanPodPolicy: "Running" }] as const;
for (const [name, { sent: [policy, restartPolicy] = RUNNING, play, phase, pods, reason }] of Object.entries(cases)) {
  test(name, () => {
    const scene = new Scene(pytorch(policy, restartPolicy));
    play(scene);
    const info = podInfo(scene.job, OWN_KINDS.kindOf(scene.job.spec.kind), []);
    assert.equal(info.phase, phase);
    assert.match(info.reason, reason);
    assert.deepEqual(
      info.externalResources.map((pod) => [pod.externalId, pod.replica, pod.index]),
      [
        ["j-master-0", "Master/0", 0],
        ["j-worker-0", "Worker/0", 1],
        ["j-worker-1", "Worker/1", 2],
      ],
    );
    assert.deepEqual(
      info.externalResources.map((pod) => `${pod.phase} ${pod.retryAttempt}`),
      pods,
    );
    assert.equal(info.version, scene.job.version);
  });
}

test("a waiting job has a reason and its time, and no pods", () => {
  const waiting = { reason: "QueueQuota", message: "the queue is full", sinceMs: START_MS + 5 };
  const job = jobOf(pytorch());
  const info = podInfo({ ...job, status: { ...job.status, waiting } }, OWN_KINDS.kindOf(job.spec.kind), []);
  assert.deepEqual(
    [info.phase, info.reason, info.occurredAtMs, info.externalResources],
    ["WAITING_FOR_RESOURCES", "the queue is full", START_MS + 5, []],
  );
});

test("a job that was cancelled while it restarted says also why it restarted", () => {
  const scene = new Scene(pytorch());
  const infoOf = () => podInfo(scene.job, OWN_KINDS.kindOf(scene.job.spec.kind), []);
  ended("j-worker-0", 1)(scene);
  assert.equal(scene.job.status.phase, "RESTARTING");
  const { reason, additionalReasons } = infoOf();
  assert.deepEqual(additionalReasons, [], "while the job restarts, its reason says so");
  cancelled(scene);
  assert.deepEqual([infoOf().phase, infoOf().additionalReasons], ["ABORTED", [{ reason, occurredAtMs: null }]]);
});

test("the log links of a container are shown with its pod, and pods of another admission were not seen", () => {
  const scene = new Scene(pytorch());
  scene.start();
  const link = { replica: "Worker/1", container: "pytorch", name: "logs", uri: "https://logs.test/1" };
  const { job } = scene;
  const pods = { admission: 2, phases: job.status.pods?.phases ?? {} };
  const kind = OWN_KINDS.kindOf(job.spec.kind);
  const shown = podInfo({ ...job, status: { ...job.status, pods } }, kind, [link as ContainerLogLink]);
  assert.deepEqual(
    shown.externalResources.map(({ phase, logs }) => [phase, logs]),
    [
      ["QUEUED", []],
      ["QUEUED", []],
      ["QUEUED", [link]],
    ],
  );
});
