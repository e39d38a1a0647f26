/** Pods that come to their planned nodes and to others are counted once, by the worker that made them. */
import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";
import { withRuns } from "../../src/core/job/placement/placement.ts";
import type { Observed } from "../../src/core/reconcile/observed.ts";
import { ArrivedPods, type PodArrival } from "../../src/worker/arrived-pods.ts";
import { pytorch, Scene } from "../core/reconcile/scene.ts";

const run = (role: string, node: string) => ({ role, first: 0, count: role === "Master" ? 1 : 2, node, others: [] });
const placement = withRuns(null, [run("Master", "n0"), run("Worker", "n1")]);

let reported: PodArrival[] = [];
let pods: ArrivedPods;
let scene: Scene;

/** A gang whose pods a step has made. */
beforeEach(() => {
  reported = [];
  pods = new ArrivedPods((placed) => reported.push(placed));
  scene = new Scene(pytorch());
  scene.placement = placement;
});

function step(): void {
  const { actions } = scene.step();
  pods.noteMade(
    scene.job.uid,
    actions.map((action) => ({ action, outcome: { kind: "done" as const } })),
  );
}

function see(observed: Observed = scene.observe()): void {
  pods.see(scene.job, observed, scene.placement);
}

test("a pod counts once it is on a node, and once only", () => {
  step();
  step();
  see();
  assert.deepEqual(reported, []);
  scene.bind("j-master-0", "n0");
  scene.bind("j-worker-1", "n7");
  see();
  see();
  assert.deepEqual(reported, [
    { cluster: "c1", onPlan: true },
    { cluster: "c1", onPlan: false },
  ]);
});

test("pods that another worker has made do not count", () => {
  scene.step();
  scene.step();
  scene.bind("j-master-0", "n0");
  see();
  assert.deepEqual(reported, []);
});

test("pods that were not planned do not count", () => {
  scene.placement = null;
  step();
  step();
  scene.bind("j-master-0", "n0");
  see();
  assert.deepEqual(reported, []);
});

test("pods of a job that belongs to another worker now do not count", () => {
  step();
  step();
  pods.forgetWhere((jobUid) => jobUid === scene.job.uid);
  scene.bind("j-master-0", "n0");
  see();
  assert.deepEqual(reported, []);
});

test("a pod whose creation failed does not count", () => {
  const failed = { kind: "failed" as const, reason: "Forbidden", message: "no" };
  scene.step();
  const { actions } = scene.step();
  pods.noteMade(
    scene.job.uid,
    actions.map((action) => ({ action, outcome: failed })),
  );
  scene.bind("j-master-0", "n0");
  see();
  assert.deepEqual(reported, []);
});
