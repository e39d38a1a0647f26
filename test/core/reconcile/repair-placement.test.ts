/** Pods are made for their planned nodes, and made again for other ones where the scheduler does not take them. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { liveAdmission } from "../../../src/core/job/job.ts";
import { LABEL } from "../../../src/core/job/labels.ts";
import { withRuns } from "../../../src/core/job/placement/placement.ts";
import { nodeAllows } from "../../../src/core/pods/node-match.ts";
import { objectAt, stringAt, stringMapAt } from "../../../src/runtime/json.ts";
import { names, pytorch, Scene } from "./scene.ts";

const REFUSED = "0/3 nodes are available";
const NODES = ["n0", "n1", "n2", "n3"];

const run = (role: string, first: number, node: string, others: readonly string[] = []) => {
  return { role, first, count: 1, node, others };
};

/** A master and two workers on n0, n1 and n2. n3 takes each of them too. */
function planned(): Scene {
  const scene = new Scene(pytorch());
  const runs = [run("Master", 0, "n0", ["n3"]), run("Worker", 0, "n1", ["n3"]), run("Worker", 1, "n2", ["n3"])];
  scene.placement = withRuns(null, runs);
  scene.step();
  scene.step();
  return scene;
}

function podOf(scene: Scene, name: string) {
  return scene.cluster.pods().find((pod) => pod.name === name) ?? assert.fail(`no pod ${name}`);
}

/** The nodes that may take a pod. */
function nodesOf(scene: Scene, name: string): readonly string[] {
  const spec = objectAt(podOf(scene, name).json, "spec");
  return NODES.filter((node) => nodeAllows(spec, { name: node, labels: {}, taints: [], unschedulable: false }));
}

function versionOf(scene: Scene, name: string): string | undefined {
  return stringMapAt(objectAt(podOf(scene, name).json, "metadata"), "labels")[LABEL.placement];
}

function repairOf({ job }: Scene) {
  return liveAdmission(job)?.repair ?? null;
}

/** Steps after a time. */
function stepAfter(scene: Scene, ms: number) {
  scene.nowMs += ms;
  return scene.step();
}

describe("a planned pod", () => {
  test("may run on its node, or on one that takes it too", () => {
    const scene = planned();
    assert.deepEqual(nodesOf(scene, "j-master-0"), ["n0", "n3"]);
    assert.deepEqual(nodesOf(scene, "j-worker-1"), ["n2", "n3"]);
    assert.equal(versionOf(scene, "j-worker-1"), "1");
  });

  test("goes by labels alone without a plan, as one of an older planner", () => {
    const scene = new Scene(pytorch());
    scene.step();
    scene.step();
    assert.deepEqual(nodesOf(scene, "j-master-0"), NODES);
    assert.equal(versionOf(scene, "j-master-0"), undefined);
    const spec = objectAt(podOf(scene, "j-master-0").json, "spec");
    assert.equal("topologySpreadConstraints" in spec, false);
  });

  test("that the scheduler refuses waits for other nodes after 20 s", () => {
    const scene = planned();
    scene.refuse("j-worker-1", REFUSED);
    assert.equal(stepAfter(scene, 19_999).recheckAtMs, scene.nowMs + 1);
    assert.equal(repairOf(scene), null);
    stepAfter(scene, 1);
    assert.deepEqual(repairOf(scene), { version: 1, times: 1, members: ["Worker/1"] });
    assert.equal(stepAfter(scene, 60_000).record, null, "it waits for an answer");
  });

  test("is made again for its new node, and nothing counts as a failure", () => {
    const scene = planned();
    scene.refuse("j-worker-1", REFUSED);
    stepAfter(scene, 20_000);
    scene.placement = withRuns(scene.placement, [run("Worker", 1, "n3")]);
    assert.deepEqual(names(scene.step(), "deletePod"), ["j-worker-1"]);
    scene.rest();
    assert.deepEqual(nodesOf(scene, "j-worker-1"), ["n3"]);
    assert.equal(versionOf(scene, "j-worker-1"), "2");
    assert.equal(versionOf(scene, "j-worker-0"), "1", "the others stay");
    const { system, user } = scene.job.status.attempts;
    assert.deepEqual([system, user], [0, 0]);
  });

  test("that was bound meanwhile stays where it is", () => {
    const scene = planned();
    scene.refuse("j-worker-1", REFUSED);
    stepAfter(scene, 20_000);
    scene.bind("j-worker-1", "n3");
    scene.placement = withRuns(scene.placement, [run("Worker", 1, "n1")]);
    assert.deepEqual(names(scene.step(), "deletePod"), []);
  });

  test("is planned anew three times, after 20, 40 and 80 s, and then the start timeout decides", () => {
    const scene = planned();
    for (const [times, waitMs] of [20_000, 40_000, 80_000].entries()) {
      scene.refuse("j-worker-1", REFUSED);
      stepAfter(scene, waitMs - 1);
      assert.equal(repairOf(scene)?.times ?? 0, times);
      stepAfter(scene, 1);
      assert.equal(repairOf(scene)?.times, times + 1);
      scene.placement = withRuns(scene.placement, [run("Worker", 1, `n${times + 3}`)]);
      scene.rest();
    }
    scene.refuse("j-worker-1", REFUSED);
    stepAfter(scene, 300_000);
    assert.equal(repairOf(scene)?.times, 3);
  });

  test("begins to count again once all pods are on nodes", () => {
    const scene = planned();
    scene.refuse("j-worker-1", REFUSED);
    stepAfter(scene, 20_000);
    for (const name of scene.podNames) scene.bind(name, "n3");
    scene.step();
    assert.equal(repairOf(scene), null);
  });

  test("is not steered where a gang scheduler of the cluster chooses nodes", () => {
    const scene = new Scene(pytorch());
    scene.placement = withRuns(null, [run("Master", 0, "n0")]);
    scene.cluster.scheduler = "volcano";
    scene.rest();
    const spec = objectAt(scene.cluster.pods()[0]?.json ?? {}, "spec");
    assert.equal(stringAt(spec, "schedulerName") ?? "volcano", "volcano");
    assert.equal(objectAt(spec, "affinity")["nodeAffinity"], undefined);
  });
});
