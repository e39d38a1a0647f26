/** Objects name the fence of their admission, which tells it from another one with the same number. */
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { LABEL } from "../../../src/core/job/labels.ts";
import { reconcile, sweep } from "../../../src/core/reconcile/reconcile.ts";
import { objectAt, stringMapAt } from "../../../src/runtime/json.ts";
import { pytorch, Scene } from "./scene.ts";
import { CONFIG } from "./world.ts";

class Fenced extends Scene {
  /** The record's live admission has this fence from now on. Undefined: an older version has admitted the gang. */
  record(fence: string | undefined): void {
    const admissions = this.job.admissions.map(({ fence: _before, ...admission }) => {
      return fence === undefined ? admission : { ...admission, fence };
    });
    this.job = { ...this.job, admissions };
  }

  fenceOf({ json }: Fenced["cluster"]["things"][number]): string | undefined {
    return stringMapAt(objectAt(json, "metadata"), "labels")[LABEL.fence];
  }

  /** Objects lose the label, as if an older version had made them. */
  age(isOld: (at: number) => boolean): void {
    for (const [at, thing] of this.cluster.things.entries()) {
      if (!isOld(at)) continue;
      const metadata = objectAt(thing.json, "metadata");
      const { [LABEL.fence]: _fence, ...labels } = stringMapAt(metadata, "labels");
      this.cluster.change(thing, { json: { ...thing.json, metadata: { ...metadata, labels } } });
    }
  }

  get uids(): readonly string[] {
    return this.cluster.things.filter(({ deleting }) => !deleting).map(({ uid }) => uid);
  }
}

const started = (fence: string | undefined): Fenced => {
  const scene = new Fenced(pytorch());
  scene.record(fence);
  return scene.start() as Fenced;
};

test("every object of an admission names its fence; none does of an admission without one", () => {
  const scene = started("50");
  assert.ok(scene.cluster.things.length > 5);
  assert.deepEqual(new Set(scene.cluster.things.map((thing) => scene.fenceOf(thing))), new Set(["50"]));
  assert.ok(started(undefined).cluster.things.every((thing) => scene.fenceOf(thing) === undefined));
});

test("objects of an older version have no fence, and none of them is deleted or made again for that", () => {
  fc.assert(
    fc.property(fc.array(fc.boolean(), { minLength: 12, maxLength: 12 }), (old) => {
      const scene = started("50");
      const before = scene.uids;
      scene.age((at) => old[at] === true);
      scene.rest();
      assert.deepEqual(scene.uids, before);
      assert.equal(scene.job.status.phase, "RUNNING");
    }),
  );
});

test("what an admission left whose number another one has now is deleted, and the new gang gets its own", () => {
  for (const fence of ["51", undefined]) {
    const scene = started("50");
    const before = new Set(scene.uids);
    scene.record(fence);
    const first = scene.step();
    const deleted = new Set(first.actions.flatMap((action) => ("uid" in action ? [action.uid] : [])));
    assert.deepEqual(deleted, before, "all of it, and nothing else is there");
    scene.rest();
    assert.ok(scene.uids.every((uid) => !before.has(uid)));
    assert.deepEqual(new Set(scene.cluster.things.map((thing) => scene.fenceOf(thing))), new Set([fence]));
    assert.equal(scene.podNames.length, 3);
  }
});

test("of a job whose record is gone everything is deleted, whatever fences its objects name", () => {
  const scene = started("50");
  scene.age((at) => at % 2 === 0);
  const actions = sweep(scene.observe(), { uid: scene.job.uid, namespace: scene.job.namespace });
  assert.deepEqual(actions.map((action) => ("uid" in action ? action.uid : "")).sort(), [...scene.uids].sort());
});

test("in a cluster that is not adopted nothing is decided of a job with objects that no record knows", () => {
  const unadopted = (scene: Fenced) => scene.observe().map((seen) => ({ ...seen, unadopted: true as const }));
  const decide = (scene: Fenced) => reconcile(scene.job, unadopted(scene), scene.nowMs, CONFIG);
  const known = started("50");
  known.set("j-worker-0", "Failed");
  assert.ok(decide(known).record !== null, "what is known goes on");
  const cases: Readonly<Record<string, (scene: Fenced) => void>> = {
    "another admission has the number": (scene) => scene.record("51"),
    "no admission is recorded": (scene) => {
      scene.job = { ...scene.job, admissions: [], status: { ...scene.job.status, phase: "WAITING" } };
    },
    "it is deleted": (scene) => {
      scene.record("51");
      scene.job = { ...scene.job, deleteTimeMs: scene.nowMs };
    },
  };
  for (const [what, change] of Object.entries(cases)) {
    const scene = started("50");
    change(scene);
    assert.deepEqual(decide(scene), { record: null, forget: false, actions: [], recheckAtMs: null }, what);
    assert.deepEqual(sweep(unadopted(scene), { uid: scene.job.uid, namespace: "ns" }), []);
    scene.step();
    assert.ok(
      scene.cluster.things.some(({ deleting }) => deleting),
      `${what}: once it is adopted`,
    );
  }
});

test("pods by which a gang has grown since the back-up stay until their cluster is adopted", () => {
  const scene = started("50");
  const pod = scene.cluster.pods().find(({ name }) => name === "j-worker-1") ?? assert.fail();
  const metadata = objectAt(pod.json, "metadata");
  const labels = { ...stringMapAt(metadata, "labels"), [LABEL.replicaIndex]: "7" };
  const json = { ...pod.json, metadata: { ...metadata, name: "j-worker-7", uid: "grown", labels } };
  scene.cluster.things = [...scene.cluster.things, { ...pod, name: "j-worker-7", uid: "grown", json }];
  const unadopted = scene.observe().map((seen) => ({ ...seen, unadopted: true as const }));
  const deletes = (decision: ReturnType<typeof reconcile>) =>
    decision.actions.flatMap((action) => ("uid" in action ? [action.uid] : []));
  assert.deepEqual(deletes(reconcile(scene.job, unadopted, scene.nowMs, CONFIG)), []);
  assert.deepEqual(deletes(scene.step()), ["grown"]);
});
