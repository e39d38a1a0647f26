import assert from "node:assert/strict";
import { describe, test } from "node:test";
import fc from "fast-check";
import type { SentSpec } from "../../../src/core/job/request/sent.ts";
import type { Action } from "../../../src/core/reconcile/decision.ts";
import { reconcile } from "../../../src/core/reconcile/reconcile.ts";
import type { JsonObject } from "../../../src/runtime/json.ts";
import { arrayAt, objectAt, stringAt } from "../../../src/runtime/json.ts";
import { carryOut } from "../../../src/worker/carry-out.ts";
import { names, Scene } from "../reconcile/scene.ts";
import { CONFIG, recorded, template } from "../reconcile/world.ts";

const horovod = (replicas: number): SentSpec => ({
  kind: "MPIJob",
  replicaSpecs: { Launcher: { template: template("mpi") }, Worker: { replicas, template: template("mpi") } },
});

/** Adds members to an admitted gang, as the planner does. */
function grow(scene: Scene, workers: number): void {
  const members = { Launcher: 1, Worker: workers };
  const admissions = scene.job.admissions.map((admission) => ({ ...admission, members }));
  scene.job = { ...scene.job, admissions, version: scene.job.version + 1 };
}

function part(scene: Scene, kind: string): JsonObject | undefined {
  return scene.cluster.things.find(({ json, kind: thing }) => json["kind"] === kind && thing !== "anchor")?.json;
}

const hostsOf = (scene: Scene) =>
  String(objectAt(part(scene, "ConfigMap"), "data")["hostfile"])
    .split("\n")
    .flatMap((line) => line.split(" ")[0] || []);
const allowedOf = (scene: Scene) => {
  const [, exec] = arrayAt(part(scene, "Role"), "rules");
  return arrayAt({ exec }, "exec").length === 0 ? arrayAt(exec, "resourceNames") : [];
};
const workers = (count: number) => Array.from({ length: count }, (_, index) => `j-worker-${index}`);
const kindsOf = (actions: readonly Action[]) =>
  actions.map((action) =>
    "manifest" in action && action.kind.endsWith("Part") ? `${action.kind} ${action.manifest["kind"]}` : action.kind,
  );

describe("an MPIJob that scales while it runs", () => {
  test("grows: updates role and hosts file, then creates the pods, then changes nothing more", () => {
    const scene = new Scene(horovod(2), "mpi").start();
    assert.equal(scene.change({ replicas: { Worker: 3 } }), "changed");
    assert.deepEqual(kindsOf(scene.step().actions), [], "the planner has not added the member yet");
    grow(scene, 3);
    assert.deepEqual(kindsOf(scene.step().actions), [
      "updatePart ConfigMap",
      "updatePart ServiceAccount",
      "updatePart Role",
      "updatePart RoleBinding",
      "createPod",
    ]);
    assert.deepEqual([hostsOf(scene), allowedOf(scene)], [workers(3), workers(3)]);
    assert.deepEqual([scene.step().actions, scene.podNames.length], [[], 4]);
  });

  test("shrinks: a worker that leaves is no host any more, and the launcher may not reach it", () => {
    const scene = new Scene(horovod(3), "mpi").start();
    scene.change({ replicas: { Worker: 1 } });
    assert.deepEqual(names(scene.step(), "deletePod"), ["j-worker-1", "j-worker-2"]);
    assert.deepEqual([hostsOf(scene), allowedOf(scene)], [workers(1), workers(1)]);
    scene.cluster.collect();
    scene.nowMs += 5_000;
    scene.step();
    assert.deepEqual(scene.job.admissions[0]?.members, { Launcher: 1, Worker: 1 });
    assert.deepEqual(scene.step().actions, []);
    scene.change({ replicas: { Worker: 0 } });
    scene.rest();
    assert.deepEqual([hostsOf(scene), allowedOf(scene)], [[], []]);
    assert.equal(scene.job.status.phase, "RUNNING");
  });

  test("only workers can be scaled", () => {
    const scene = new Scene(horovod(2), "mpi").start();
    assert.equal(scene.change({ replicas: { Launcher: 0 } }), "invalid");
  });

  test("foreign changes of the config map are undone", () => {
    const scene = new Scene(horovod(2), "mpi").start();
    const map = scene.cluster.things.find(({ kind }) => kind === "configMap")!;
    const data = { ...objectAt(map.json, "data"), hostfile: "elsewhere slots=8\n", more: "x" };
    scene.cluster.change(map, { json: { ...map.json, data } });
    assert.equal(kindsOf(scene.step().actions)[0], "updatePart ConfigMap");
    assert.deepEqual(hostsOf(scene), workers(2));
    assert.equal(objectAt(part(scene, "ConfigMap"), "data")["more"], undefined);
    assert.deepEqual(scene.step().actions, []);
  });

  test("a late call of an older record changes nothing", () => {
    const scene = new Scene(horovod(2), "mpi").start();
    const old = scene.job;
    scene.change({ replicas: { Worker: 4 } });
    grow(scene, 4);
    scene.step();
    const seen = [scene.cluster.observe({ nowMs: scene.nowMs, lagMs: 0 })];
    const late = reconcile(old, seen, scene.nowMs, CONFIG).actions.filter(({ kind }) => kind === "updatePart");
    assert.equal(late.length, 4);
    for (const action of late) scene.cluster.act(action, scene.nowMs);
    assert.deepEqual([hostsOf(scene), allowedOf(scene)], [workers(4), workers(4)]);
  });

  test("a launcher that waits for workers does not wait for one that has left the hosts file", () => {
    const scene = new Scene(horovod(2), "mpi");
    scene.step();
    const launcher = scene.cluster.pods().find(({ name }) => name === "j-launcher")!;
    const [init] = arrayAt(objectAt(launcher.json, "spec"), "initContainers");
    assert.match(String(arrayAt(init, "command")[2]), /while grep -q "\^\$host " \/etc\/mpi\/hostfile; do/);
    assert.equal(stringAt(init, "image"), CONFIG.build.kubectlImage);
  });
});

const command = fc.oneof(
  fc.record({ kind: fc.constant("scale" as const), to: fc.nat({ max: 5 }) }),
  fc.record({ kind: fc.constant("grow" as const) }),
  // `works`: the number of calls that succeed before one fails. `lagMs`: the age of the cache.
  fc.record({ kind: fc.constant("step" as const), works: fc.nat({ max: 8 }), lagMs: fc.nat({ max: 20_000 }) }),
  fc.record({ kind: fc.constant("collect" as const) }),
  fc.record({ kind: fc.constant("lose" as const) }),
);

test("despite failed calls and slow caches, hosts file and role name the members, and writes end", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(command, { maxLength: 40 }), async (commands) => {
      const scene = new Scene(horovod(2), "mpi").start();
      for (const one of commands) {
        scene.nowMs += 1_000;
        scene.cluster.remember(scene.nowMs);
        if (one.kind === "scale") scene.change({ replicas: { Worker: one.to } });
        else if (one.kind === "grow") growAsAsked(scene);
        else if (one.kind === "collect") scene.cluster.collect();
        else if (one.kind === "lose") lose(scene);
        else await unluckyStep(scene, one);
      }
      growAsAsked(scene);
      settle(scene);
      const count = scene.job.spec.replicaSpecs["Worker"]?.replicas ?? 0;
      assert.deepEqual(scene.job.admissions[0]?.members, { Launcher: 1, Worker: count });
      assert.deepEqual(hostsOf(scene), workers(count));
      // A resize that is taken back after half of its writes leaves names in the role until the next pod starts.
      const allowed = new Set(allowedOf(scene));
      assert.deepEqual(
        workers(count).filter((name) => !allowed.has(name)),
        [],
      );
      assert.deepEqual(scene.podNames, ["j-launcher", ...workers(count)]);
      const last = scene.step();
      assert.deepEqual([last.actions, last.record], [[], null]);
    }),
  );
});

function growAsAsked(scene: Scene): void {
  const wanted = scene.job.spec.replicaSpecs["Worker"]?.replicas ?? 0;
  if (wanted > (scene.job.admissions[0]?.members["Worker"] ?? 0)) grow(scene, wanted);
}

/** Deletes the config map. */
function lose(scene: Scene): void {
  scene.cluster.things = scene.cluster.things.filter(({ kind }) => kind !== "configMap");
}

/** A step of a worker whose calls fail after the first `works` calls. */
async function unluckyStep(scene: Scene, { works, lagMs }: { works: number; lagMs: number }): Promise<void> {
  const decision = reconcile(scene.job, [scene.cluster.observe({ nowMs: scene.nowMs, lagMs })], scene.nowMs, CONFIG);
  scene.job = recorded(scene.job, decision);
  let left = works;
  const act = async (action: Action) => {
    if (left-- <= 0) return { kind: "failed", reason: "Unavailable", message: "away" } as const;
    scene.cluster.act(action, scene.nowMs);
    return { kind: "done" } as const;
  };
  await carryOut(act, decision.actions, new AbortController().signal);
}

function settle(scene: Scene): void {
  for (let round = 0; round < 6; round++) {
    scene.nowMs += 6_000;
    scene.rest();
    for (const { name } of scene.cluster.pods()) scene.set(name, "Running");
  }
}
