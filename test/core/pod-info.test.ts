import assert from "node:assert/strict";
import { test } from "node:test";
import type { CleanPodPolicy } from "../../src/core/job/spec.ts";
import { podInfo } from "../../src/core/kinds/pod-info.ts";
import { pytorch, Scene } from "./scene.ts";
import { jobOf, START_MS } from "./world.ts";

type Case = {
  readonly sent?: readonly [{ readonly cleanPodPolicy: CleanPodPolicy }, ("OnFailure" | "Never")?];
  readonly play: (scene: Scene) => void;
  readonly phase: string;
  /** Master/0, Worker/0, Worker/1: phase and retry. */
  readonly pods: readonly string[];
  readonly reason: RegExp;
};

/** One pod of the gang that runs ends, and that is seen. */
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
  "pods that run and pods that do not yet are told apart": {
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
  "a pod that failed and starts again has one retry more": {
    play: ended("j-worker-0", 1),
    phase: "INITIALIZING",
    pods: ["RUNNING 0", "QUEUED 1", "RUNNING 0"],
    reason: /restarting because 1 Worker replica\(s\) failed: j-worker-0/,
  },
  "a pod that failed for good is the job's failure, and the others were stopped": {
    sent: [{ cleanPodPolicy: "Running" }, "Never"],
    play: ended("j-worker-1", 1),
    phase: "PERMANENT_FAILURE",
    pods: ["ABORTED 0", "ABORTED 0", "PERMANENT_FAILURE 0"],
    reason: /exit|j-worker-1/,
  },
  "of a job that succeeded, pods that were still at work were stopped": {
    play: ended("j-master-0", 0),
    phase: "SUCCESS",
    pods: ["SUCCESS 0", "ABORTED 0", "ABORTED 0"],
    reason: /successfully completed/,
  },
  "under clean-pod policy None they run on": {
    sent: [{ cleanPodPolicy: "None" }],
    play: ended("j-master-0", 0),
    phase: "SUCCESS",
    pods: ["SUCCESS 0", "RUNNING 0", "RUNNING 0"],
    reason: /successfully completed/,
  },
  "a cancelled gang was stopped": {
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
    const info = podInfo(scene.job, []);
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

test("a job that waits says why and since when, and names no pods", () => {
  const waiting = { reason: "QueueQuota", message: "the queue is full", sinceMs: START_MS + 5 };
  const job = jobOf(pytorch());
  const info = podInfo({ ...job, status: { ...job.status, waiting } }, []);
  assert.deepEqual(
    [info.phase, info.reason, info.occurredAtMs, info.externalResources],
    ["WAITING_FOR_RESOURCES", "the queue is full", START_MS + 5, []],
  );
});
