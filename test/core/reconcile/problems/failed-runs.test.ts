import assert from "node:assert/strict";
import { test } from "node:test";
import { failedRuns } from "../../../../src/core/reconcile/problems/failed-runs.ts";
import type { JsonObject } from "../../../../src/runtime/json.ts";
import { OWN_KINDS } from "../../../support/kinds.ts";
import { pytorch, Scene } from "../scene.ts";

function runsOf(scene: Scene) {
  const kind = OWN_KINDS.kindOf("PyTorchJob")!;
  const inputs = { job: scene.job, kind, nowMs: scene.nowMs, config: {} };
  return failedRuns(inputs, scene.observe()).map(({ replica, container }) => `${replica} ${container}`);
}

function setContainers(scene: Scene, name: string, statuses: readonly JsonObject[]): void {
  const pod = scene.cluster.pods().find((one) => one.name === name)!;
  scene.cluster.setPod(pod, { phase: "Failed", conditions: [], containerStatuses: [...statuses] });
}

const ended = (name: string, exitCode: number): JsonObject => ({
  name,
  restartCount: 0,
  ready: false,
  state: { terminated: { exitCode, reason: exitCode === 0 ? "Completed" : "Error" } },
});

test("the container that the failure is blamed on comes first, and one that has ended well is left out", () => {
  const scene = new Scene(pytorch()).start();
  setContainers(scene, "j-worker-0", [ended("proxy", 7), ended("done", 0), ended("pytorch", 1)]);
  assert.deepEqual(runsOf(scene), ["Worker/0 pytorch", "Worker/0 proxy"]);
});

test("a pod that fails for good comes before one that is restarted", () => {
  const scene = new Scene(pytorch({}, "ExitCode")).start();
  setContainers(scene, "j-master-0", [ended("pytorch", 137)]);
  setContainers(scene, "j-worker-1", [ended("pytorch", 1)]);
  assert.deepEqual(runsOf(scene), ["Worker/1 pytorch", "Master/0 pytorch"]);
});

test("nothing is read of pods that a deletion ends, and of a job that is being deleted", () => {
  const scene = new Scene(pytorch()).start();
  setContainers(scene, "j-worker-0", [ended("pytorch", 1)]);
  scene.job = { ...scene.job, deleteTimeMs: scene.nowMs };
  assert.deepEqual(runsOf(scene), []);
});
