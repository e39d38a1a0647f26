import assert from "node:assert/strict";
import { test } from "node:test";
import { gang } from "../../cluster/gang.ts";
import { until } from "../../cluster/harness.ts";
import { already, done, type Scene, signal, uidOf } from "./scene.ts";

/** Tests which objects are deleted, and which are collected after their anchor. */
export function deletion(of: Scene): void {
  test("only the object with the given uid is deleted", async () => {
    const actions = of.actions();
    const { createAnchor, createPod, deletePod, job } = gang();
    await actions.act(createAnchor, signal);
    await actions.act(createPod(), signal);
    const uid = uidOf(await of.get("pods", `${job}-worker-0`));
    assert.deepEqual(await actions.act(deletePod("00000000-0000-0000-0000-000000000000"), signal), already);
    assert.equal(uidOf(await of.get("pods", `${job}-worker-0`)), uid);
    assert.deepEqual(await actions.act(deletePod(uid), signal), done);
    assert.deepEqual(await actions.act({ ...deletePod(uid), name: "never-was" }, signal), already);
    await until(async () => (await of.get("pods", `${job}-worker-0`)) === null, "the pod is gone");
  });

  test("objects of an anchor are collected after it, also those that a late worker creates under its uid", async () => {
    const actions = of.actions();
    const { createAnchor, createPod, createService, deleteAnchor, anchor, job } = gang();
    for (const action of [createAnchor, createPod(), createService]) {
      assert.deepEqual(await actions.act(action, signal), done);
    }
    const uid = uidOf(await of.get("configmaps", anchor));
    assert.deepEqual(await actions.act(deleteAnchor("00000000-0000-0000-0000-000000000000"), signal), already);
    assert.deepEqual(await of.actions().act(deleteAnchor(uid), signal), done);
    assert.deepEqual(await actions.act(createPod(1), signal), done, "its uid is still believed");
    for (const [resource, name] of [
      ["pods", `${job}-worker-0`],
      ["pods", `${job}-worker-1`],
      ["services", `${job}-worker-0`],
    ] as const) {
      await until(async () => (await of.get(resource, name)) === null, `${resource} ${name} collected`);
    }
  });
}
