import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { OUTSTANDING_MS } from "../../../src/core/reconcile/decision-draft.ts";
import { pytorch, Scene } from "./scene.ts";

/** What has happened to a gang before its cluster is given up. */
const befores: Readonly<Record<string, (scene: Scene) => void>> = {
  "it was just admitted": () => undefined,
  "its pods start": (scene) => void scene.step(),
  "it runs": (scene) => void scene.start(),
  "a pod has failed": (scene) => {
    scene.start();
    scene.set("j-worker-0", "Failed");
    scene.step();
  },
  "a member has succeeded": (scene) => {
    scene.start();
    scene.set("j-worker-1", "Succeeded");
    scene.step();
  },
  "a pod is on a silent node": (scene) => {
    scene.start();
    scene.silentNode("j-worker-0");
    scene.step();
  },
  "its cluster has been silent": (scene) => {
    scene.start();
    scene.isLost = true;
    scene.nowMs += 3_600_000;
    scene.step();
    scene.isLost = false;
  },
};

class GivenUp extends Scene {
  isGivenUp = false;

  override observe() {
    if (!this.isGivenUp) return super.observe();
    return [{ cluster: "c1", forgotten: true, pods: [], services: [], configMaps: [] } as const];
  }
}

test("a gang whose cluster is given up waits again at once, holds nothing, and nothing is counted against it", () => {
  fc.assert(
    fc.property(fc.constantFrom(...Object.keys(befores)), fc.nat({ max: 1 }), (before, laterSteps) => {
      const scene = new GivenUp(pytorch());
      befores[before]?.(scene);
      const { attempts, backoff } = scene.job.status;
      scene.isGivenUp = true;
      const decision = scene.step();
      const { phase, waiting } = scene.job.status;
      assert.deepEqual([phase, waiting?.reason], ["WAITING", "ClusterGivenUp"]);
      assert.ok(decision.record !== null);
      // Creates may be under way until then.
      scene.nowMs += OUTSTANDING_MS;
      for (let at = 0; at < 2 + laterSteps; at += 1) scene.step();
      assert.deepEqual(scene.job.admissions, [], "its tokens are released, and nothing of it is left");
      const { attempts: after, backoff: backoffAfter } = scene.job.status;
      assert.deepEqual([after.user, after.system, backoffAfter], [attempts.user, attempts.system, backoff]);
    }),
  );
});

test("a gang that ends meanwhile ends, and is not admitted again", () => {
  const scene = new GivenUp(pytorch());
  scene.start();
  scene.job = { ...scene.job, cancel: { reason: "", atMs: scene.nowMs } };
  scene.isGivenUp = true;
  for (let at = 0; at < 3; at += 1) scene.step();
  assert.equal(scene.job.status.phase, "CANCELLED");
});
