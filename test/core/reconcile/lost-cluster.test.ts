import assert from "node:assert/strict";
import { test } from "node:test";
import { OUTSTANDING_MS } from "../../../src/core/reconcile/decision-draft.ts";
import type { Loss } from "../../../src/core/reconcile/observed.ts";
import { MOVE_AFTER_MS } from "../../../src/core/reconcile/undo/lost-cluster.ts";
import { pytorch, Scene } from "./scene.ts";

/** A gang in a cluster that counts as lost, and may return. */
class Lost extends Scene {
  loss: Loss | null = null;

  override observe() {
    if (this.loss === null) return super.observe();
    return [{ cluster: "c1", loss: this.loss, pods: [], services: [], configMaps: [] } as const];
  }

  loses(loss: Partial<Loss> = {}) {
    this.loss = { fence: "99", sinceMs: 1, silenceMs: 60_000, policy: "WAIT", ...loss };
  }

  returns() {
    this.loss = null;
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

const MINUTE_MS = 60_000;

/** When a gang that ran asks for another place: its own time, what its namespace says, and the silence. */
const moves: readonly (readonly [
  own: number | undefined,
  policy: Loss["policy"],
  silenceMs: number,
  moves: boolean,
])[] = [
  [undefined, "WAIT", 1e9, false],
  [undefined, "MOVE", MOVE_AFTER_MS - 1, false],
  [undefined, "MOVE", MOVE_AFTER_MS, true],
  [0, "MOVE", 1e9, false],
  [2 * MINUTE_MS, "WAIT", 2 * MINUTE_MS - 1, false],
  [2 * MINUTE_MS, "WAIT", 2 * MINUTE_MS, true],
  [20 * MINUTE_MS, "MOVE", MOVE_AFTER_MS, false],
];

for (const [own, policy, silenceMs, isMoving] of moves) {
  test(`a job with moveAfter ${own} and ${policy} ${isMoving ? "moves" : "stays"} after ${silenceMs} ms`, () => {
    for (const before of Object.values(ran)) {
      const scene = new Lost(pytorch(own === undefined ? {} : { moveAfterMs: own }));
      before(scene);
      const { admissions } = scene.job;
      scene.loses({ policy, silenceMs });
      const { actions, recheckAtMs } = scene.step();
      assert.deepEqual(actions, []);
      assert.equal(scene.job.status.move?.admission, isMoving ? 1 : undefined);
      assert.deepEqual(scene.job.admissions, admissions, "it keeps its admission until another one is recorded");
      const waits = policy === "MOVE" ? (own ?? MOVE_AFTER_MS) : (own ?? 0);
      if (!isMoving && waits > 0) assert.ok((recheckAtMs ?? 0) <= scene.nowMs + waits - silenceMs + 1000);
    }
  });
}

test("a gang that was to move stays once its cluster answers, or once it is to wait after all", () => {
  for (const change of [(scene: Lost) => scene.returns(), (scene: Lost) => scene.loses({ silenceMs: 1e9 })]) {
    const scene = new Lost(pytorch());
    scene.start();
    const { job } = scene;
    scene.loses({ policy: "MOVE", silenceMs: 1e9 });
    scene.step();
    assert.equal(scene.job.status.move?.admission, 1);
    scene.step();
    change(scene);
    scene.rest();
    assert.equal(scene.job.status.move, undefined);
    assert.deepEqual(scene.job.admissions, job.admissions);
    assert.deepEqual([scene.job.status.phase, scene.job.status.attempts], [job.status.phase, job.status.attempts]);
  }
});

for (const [what, end] of Object.entries(ends)) {
  test(`the tokens of a gang that was to move are free once it ends: ${what}`, () => {
    for (const before of Object.values(ran)) {
      const scene = new Lost(pytorch());
      before(scene);
      scene.loses({ policy: "MOVE", silenceMs: 1e9 });
      scene.step();
      end(scene);
      for (let at = 0; at < 4; at += 1) {
        scene.step();
        scene.nowMs += OUTSTANDING_MS;
      }
      const [left] = scene.job.admissions;
      assert.notEqual(left?.state, "live");
      assert.notEqual(left?.tokensReleasedMs, null);
      assert.equal(left?.goneMs, null);
    }
  });
}

test("a gang that is to move gives up no members any more: nobody would see them go", () => {
  const scene = new Lost(pytorch());
  scene.start();
  const shrink = { admission: 1, keeps: { Worker: 1 } };
  scene.job = { ...scene.job, status: { ...scene.job.status, shrink } };
  scene.loses({ policy: "MOVE", silenceMs: 1e9 });
  scene.step();
  assert.deepEqual([scene.job.status.move?.admission, scene.job.status.shrink], [1, undefined]);
});

for (const [what, end] of Object.entries(ends)) {
  test(`what was stopped in a lost cluster is given up once a gang there would move: ${what}`, () => {
    for (const policy of ["MOVE", "WAIT"] as const) {
      const scene = new Lost(pytorch());
      scene.start();
      scene.loses({ policy, silenceMs: MOVE_AFTER_MS - 1000 });
      end(scene);
      scene.step();
      const { recheckAtMs } = scene.step();
      const [stopped] = scene.job.admissions;
      assert.deepEqual([stopped?.state === "live", stopped?.tokensReleasedMs], [false, null], "it may still run");
      if (policy === "MOVE") assert.ok((recheckAtMs ?? 0) <= scene.nowMs + 1000, "somebody looks again");
      scene.loses({ policy, silenceMs: MOVE_AFTER_MS });
      for (let at = 0; at < 4; at += 1) {
        scene.step();
        scene.nowMs += OUTSTANDING_MS;
      }
      assert.equal(scene.job.admissions[0]?.tokensReleasedMs !== null, policy === "MOVE");
    }
  });
}

test("a request of an earlier loss is made anew, and one that was answered gives nothing up", () => {
  const scene = new Lost(pytorch());
  scene.start();
  scene.loses({ policy: "MOVE", silenceMs: 1e9 });
  scene.step();
  scene.loses({ policy: "MOVE", silenceMs: 1e9, sinceMs: 7 });
  scene.step();
  assert.equal(scene.job.status.move?.lostMs, 7);
  scene.loses({ policy: "MOVE", silenceMs: 60_000, sinceMs: 8 });
  scene.step();
  assert.equal(scene.job.status.move, undefined);
  scene.loses({ policy: "MOVE", silenceMs: 1e9, sinceMs: 8 });
  scene.step();
  scene.returns();
  scene.job = { ...scene.job, cancel: { reason: "", atMs: scene.nowMs } };
  scene.step();
  assert.equal(scene.job.admissions[0]?.abandonedMs, undefined, "its pods are seen");
});
