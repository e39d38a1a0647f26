import assert from "node:assert/strict";
import { test } from "node:test";
import { OUTSTANDING_MS } from "../../../src/core/reconcile/decision-draft.ts";
import { pytorch, Scene } from "./scene.ts";

/** A gang in a cluster that counts as lost, and may return. */
class Lost extends Scene {
  lostFence: string | null = null;

  override observe() {
    if (this.lostFence === null) return super.observe();
    return [{ cluster: "c1", lostFence: this.lostFence, pods: [], services: [], configMaps: [] } as const];
  }

  loses() {
    this.lostFence = "99";
  }

  returns() {
    this.lostFence = null;
  }
}

const neverRan: Readonly<Record<string, (scene: Lost) => void>> = {
  "it was just admitted": () => undefined,
  "its pods were created": (scene) => void scene.step(),
};

const ran: Readonly<Record<string, (scene: Lost) => void>> = {
  "it runs": (scene) => void scene.start(),
  "one pod of it runs": (scene) => {
    scene.step();
    scene.set("j-worker-0", "Running");
    scene.step();
  },
  "a member has succeeded": (scene) => {
    scene.start();
    scene.set("j-worker-1", "Succeeded");
    scene.step();
  },
  "a pod has failed and starts again": (scene) => {
    scene.start();
    scene.set("j-worker-0", "Failed");
    scene.step();
  },
};

for (const [what, before] of Object.entries(neverRan)) {
  test(`a gang that was not seen running leaves a lost cluster: ${what}`, () => {
    const scene = new Lost(pytorch());
    before(scene);
    const { attempts, backoff } = scene.job.status;
    scene.loses();
    scene.step();
    const { phase, waiting } = scene.job.status;
    assert.deepEqual([phase, waiting?.reason], ["WAITING", "ClusterLost"]);
    scene.nowMs += OUTSTANDING_MS;
    for (let at = 0; at < 3; at += 1) assert.deepEqual(scene.step().actions, [], "nothing is asked of a lost cluster");
    const [left] = scene.job.admissions;
    assert.deepEqual([left?.state, left?.goneMs], ["undone", null], "what is left of it is not known");
    assert.notEqual(left?.tokensReleasedMs, null);
    const { attempts: after, backoff: backoffAfter } = scene.job.status;
    assert.deepEqual([after.user, after.system, backoffAfter], [attempts.user, attempts.system, backoff]);
    scene.returns();
    scene.rest();
    assert.deepEqual(scene.job.admissions, [], "what was left has been deleted");
    assert.deepEqual(
      scene.observe().flatMap(({ pods }) => pods),
      [],
    );
  });
}

for (const [what, before] of Object.entries(ran)) {
  test(`a gang that was seen running waits for its lost cluster, and nothing is decided meanwhile: ${what}`, () => {
    const scene = new Lost(pytorch());
    before(scene);
    const { job } = scene;
    scene.loses();
    for (let hour = 0; hour < 3; hour += 1) {
      scene.nowMs += 3_600_000;
      assert.deepEqual(scene.step().actions, []);
    }
    assert.deepEqual(scene.job.admissions, job.admissions);
    assert.deepEqual([scene.job.status.phase, scene.job.status.attempts], [job.status.phase, job.status.attempts]);
  });
}

/** What may be asked of a job meanwhile. */
const ends: Readonly<Record<string, (scene: Lost) => void>> = {
  "it is cancelled": (scene) => {
    scene.job = { ...scene.job, cancel: { reason: "", atMs: scene.nowMs } };
  },
  "it is deleted": (scene) => {
    scene.job = { ...scene.job, deleteTimeMs: scene.nowMs };
  },
  "it is preempted": (scene) => {
    const eviction = { admission: 1, reason: "Preempted", message: "for another one" };
    scene.job = { ...scene.job, status: { ...scene.job.status, eviction } };
  },
};

for (const [what, end] of Object.entries(ends)) {
  test(`tokens in a lost cluster are free if nothing was seen running there, else they are held: ${what}`, () => {
    for (const [before, isFree] of [
      ...Object.values(neverRan).map((one) => [one, true] as const),
      ...Object.values(ran).map((one) => [one, false] as const),
    ]) {
      const scene = new Lost(pytorch());
      before(scene);
      scene.loses();
      end(scene);
      for (let at = 0; at < 4; at += 1) {
        scene.step();
        scene.nowMs += OUTSTANDING_MS;
      }
      const [left] = scene.job.admissions;
      assert.notEqual(left?.state, "live");
      assert.equal(left?.tokensReleasedMs !== null, isFree);
      assert.equal(left?.goneMs, null);
    }
  });
}

test("an admission made after the cluster's return stays, although this worker has not heard of the return", () => {
  const scene = new Lost(pytorch());
  const [admission] = scene.job.admissions;
  assert.ok(admission);
  for (const [fence, phase] of [
    ["99", "WAITING"],
    ["100", "ADMITTED"],
    ["1000000000000000000000", "ADMITTED"],
  ] as const) {
    const one = new Lost(pytorch());
    one.job = { ...one.job, admissions: [{ ...admission, fence }] };
    one.loses();
    one.step();
    assert.equal(one.job.status.phase, phase);
  }
});
