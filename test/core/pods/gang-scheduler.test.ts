import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import type { SentRunPolicy, SentSpec } from "../../../src/core/job/request/sent.ts";
import { minResources, type RoleOfGang } from "../../../src/core/pods/build/min-resources.ts";
import type { GangScheduler } from "../../../src/core/pods/build/pod-group.ts";
import { parseMilli } from "../../../src/core/pods/quantity.ts";
import type { Decision } from "../../../src/core/reconcile/decision.ts";
import type { JsonObject } from "../../../src/runtime/json.ts";
import { objectAt, stringAt, stringMapAt } from "../../../src/runtime/json.ts";
import { names, pytorch, Scene } from "../reconcile/scene.ts";
import { template } from "../reconcile/world.ts";

const requests = fc.record({ cpu: fc.integer({ min: 0, max: 64 }).map(String), memory: fc.constant("1Gi") });
const roles = fc.uniqueArray(
  fc.record({
    role: fc.constantFrom("Worker", "Master", "PS", "Chief", "Other"),
    replicas: fc.integer({ min: 0, max: 5 }),
    template: requests.map((one) => ({ spec: { containers: [{ name: "c", resources: { requests: one } }] } })),
  }),
  { selector: ({ role }) => role },
);
const cpu = (list: Readonly<Record<string, string>>) => Number(parseMilli(list["cpu"] ?? "0"));

test("minimum resources grow with the minimum up to the whole gang, and ignore the order of roles", () => {
  fc.assert(
    fc.property(roles, fc.nat(30), (gang: readonly RoleOfGang[], min) => {
      const some = minResources(min, gang);
      assert.ok(cpu(some) <= cpu(minResources(min + 1, gang)));
      assert.deepEqual(minResources(min, gang.toReversed()), some);
      assert.deepEqual(minResources(0, gang), {});
      const total = gang.reduce((sum, { replicas }) => sum + replicas, 0);
      assert.deepEqual(minResources(total, gang), minResources(total + 9, gang));
    }),
  );
});

function scene(scheduler: GangScheduler | null, sent: SentSpec = pytorch()): Scene {
  const made = new Scene(sent);
  made.cluster.scheduler = scheduler;
  return made;
}

const manifests = (decision: Decision, kind: string): JsonObject[] =>
  decision.actions.flatMap((action) => (action.kind === kind && "manifest" in action ? [action.manifest] : []));
const group = (one: Scene) => one.cluster.things.find(({ kind }) => kind === "podGroup");
const setPhase = (one: Scene, phase: string) =>
  one.cluster.change(group(one)!, { json: { ...group(one)!.json, status: { phase } } });

test("pods for volcano are created once it has accepted their group, and name the group", () => {
  const one = scene("volcano");
  const first = one.step();
  assert.deepEqual(names(first, "createPodGroup"), ["j"]);
  assert.deepEqual([...names(first, "createPod"), ...names(first, "createService")], []);
  assert.equal(one.job.status.startTimeMs, null);
  setPhase(one, "Pending");
  assert.deepEqual(names(one.step(), "createPod"), []);
  setPhase(one, "Inqueue");
  const [pod] = manifests(one.step(), "createPod");
  const annotations = stringMapAt(objectAt(pod, "metadata"), "annotations");
  assert.deepEqual(annotations, { "scheduling.k8s.io/group-name": "j", "volcano.sh/task-spec": "master" });
  assert.equal(stringAt(objectAt(pod, "spec"), "schedulerName"), "volcano");
  assert.deepEqual(one.step().actions, [], "nothing is written again");
});

test("for scheduler-plugins, group and pods are created together, without a timeout that nobody asked for", () => {
  const one = scene("scheduler-plugins");
  const first = one.step();
  const [made] = manifests(first, "createPodGroup");
  assert.deepEqual(objectAt(made, "spec"), { minMember: 3, minResources: {} });
  const [pod] = manifests(first, "createPod");
  assert.equal(stringMapAt(objectAt(pod, "metadata"), "labels")["scheduling.x-k8s.io/pod-group"], "j");
  assert.equal(stringAt(objectAt(pod, "spec"), "schedulerName"), "scheduler-plugins-scheduler");
});

const timeouts: Record<string, { readonly asked: SentRunPolicy; readonly old?: true; readonly seconds?: number }> = {
  "one that was asked for": { asked: { schedulingPolicy: { scheduleTimeoutSeconds: 90 } }, seconds: 90 },
  "one that equals the default": { asked: { schedulingPolicy: { scheduleTimeoutSeconds: 600 } }, seconds: 600 },
  "none, if none was asked for": { asked: { schedulingPolicy: { minAvailable: 2 } } },
  "none, if it was switched off": { asked: { schedulingPolicy: { scheduleTimeoutSeconds: 0 } } },
  "the default, if an older version has recorded the job": { asked: {}, old: true, seconds: 600 },
};
for (const [name, { asked, old, seconds }] of Object.entries(timeouts)) {
  test(`the group of scheduler-plugins has a timeout: ${name}`, () => {
    const one = scene("scheduler-plugins", pytorch(asked));
    const { isTimeoutDefault: _new, ...schedulingPolicy } = one.job.spec.runPolicy.schedulingPolicy;
    if (old)
      one.job = { ...one.job, spec: { ...one.job.spec, runPolicy: { ...one.job.spec.runPolicy, schedulingPolicy } } };
    const [made] = manifests(one.step(), "createPodGroup");
    assert.equal(objectAt(made, "spec")["scheduleTimeoutSeconds"], seconds);
  });
}

test("a group for volcano has the members of the scheduling policy", () => {
  const schedulingPolicy = { minAvailable: 2, queue: "q", priorityClass: "high", minResources: { cpu: "7" } };
  const [made] = manifests(scene("volcano", pytorch({ schedulingPolicy })).step(), "createPodGroup");
  const expected = { minMember: 2, minResources: { cpu: "7" }, queue: "q", priorityClassName: "high" };
  assert.deepEqual(objectAt(made, "spec"), expected);
});

test("a gang that grows updates its group once", () => {
  const one = scene("scheduler-plugins").start();
  const { runPolicy } = one.job.spec;
  const schedulingPolicy = { ...runPolicy.schedulingPolicy, minAvailable: 2 };
  one.job = { ...one.job, spec: { ...one.job.spec, runPolicy: { ...runPolicy, schedulingPolicy } } };
  assert.equal(one.step().actions.filter(({ kind }) => kind === "updatePodGroup").length, 1);
  assert.deepEqual(one.step().actions, []);
});

const counted = (one: Scene) => {
  const asked = JSON.parse(stringMapAt(objectAt(group(one)?.json, "metadata"), "annotations")["gangway.dev/asked"]!);
  return [asked.minMember, asked.minResources];
};
const gpus = (count: number) => ({ "nvidia.com/gpu": String(count) });
/** A gang of two workers with two GPUs each, and a master without. */
const gpuGang = (runPolicy: SentRunPolicy = {}) => {
  const worker = { replicas: 3, restartPolicy: "OnFailure" as const, template: template("pytorch", 2) };
  const master = { restartPolicy: "OnFailure" as const, template: template("pytorch") };
  const replicaSpecs = { Master: master, Worker: worker };
  return scene("scheduler-plugins", { kind: "PyTorchJob", replicaSpecs, runPolicy }).start();
};

test("a group asks for no room for members that have ended, so the others can restart beside new gangs", () => {
  const one = gpuGang();
  assert.deepEqual(counted(one), [4, gpus(6)]);
  one.set("j-worker-1", "Succeeded", { exitCode: 0 });
  assert.deepEqual(names(one.step(), "updatePodGroup"), ["j"]);
  assert.deepEqual(counted(one), [3, gpus(4)]);
  assert.deepEqual(one.step().actions, [], "it is written once");
  one.set("j-worker-0", "Succeeded", { exitCode: 0 });
  one.set("j-worker-2", "Failed", { exitCode: 1 });
  one.step();
  assert.deepEqual(counted(one), [2, gpus(2)], "the member that is restarted needs its room");
});

test("whichever members have ended, the group asks for no more than the others need", () => {
  fc.assert(
    fc.property(fc.subarray([0, 1, 2]), fc.integer({ min: 1, max: 4 }), (ended, minAvailable) => {
      const one = gpuGang({ schedulingPolicy: { minAvailable } });
      for (const index of ended) one.set(`j-worker-${index}`, "Succeeded", { exitCode: 0 });
      one.step();
      const [members, resources] = counted(one);
      assert.equal(members, Math.max(1, minAvailable - ended.length));
      assert.ok(members <= 4 - ended.length);
      assert.ok(Number(resources["nvidia.com/gpu"] ?? 0) <= 2 * (3 - ended.length));
    }),
  );
});

test("members that have succeeded count for the minimum of their group", () => {
  const one = gpuGang({ schedulingPolicy: { minAvailable: 3, minResources: gpus(4) } });
  assert.deepEqual(counted(one), [3, gpus(4)]);
  one.set("j-worker-2", "Succeeded", { exitCode: 0 });
  one.step();
  assert.deepEqual(counted(one), [2, gpus(2)]);
});

test("a gang that restarts as a whole asks for the room of all members again", () => {
  const one = gpuGang({ restartScope: "GANG", backoffLimit: 3 });
  one.set("j-worker-2", "Succeeded", { exitCode: 0 });
  one.step();
  one.set("j-worker-0", "Failed", { exitCode: 1 });
  one.step();
  assert.deepEqual(counted(one), [4, gpus(6)]);
});

test("the group is deleted at the end under every clean-pod policy, and when its admission is undone", () => {
  const ended = scene("scheduler-plugins", pytorch({ cleanPodPolicy: "None" })).start();
  ended.set("j-master-0", "Succeeded", { exitCode: 0 });
  ended.rest();
  assert.equal(group(ended), undefined);
  const undone = scene("volcano");
  undone.step();
  undone.nowMs += 601_000;
  undone.rest();
  assert.equal(undone.job.status.phase, "WAITING");
  assert.deepEqual(undone.cluster.things, []);
});

test("an admission keeps the scheduler that it started with", () => {
  const one = scene(null).start();
  one.cluster.scheduler = "volcano";
  assert.deepEqual(one.step().actions, []);
  const other = scene("volcano");
  other.step();
  setPhase(other, "Running");
  other.cluster.scheduler = null;
  const [pod] = manifests(other.step(), "createPod");
  assert.equal(stringAt(objectAt(pod, "spec"), "schedulerName"), "volcano");
});

test("a template that names another scheduler keeps it, with a warning", () => {
  const named = (schedulerName: string) => ({
    spec: { schedulerName, restartPolicy: "Always", containers: [{ name: "pytorch" }] },
  });
  const sent = { ...pytorch(), replicaSpecs: { Master: { template: named("mine") } } };
  const decision = scene("scheduler-plugins", sent).step();
  assert.equal(stringAt(objectAt(manifests(decision, "createPod")[0], "spec"), "schedulerName"), "mine");
  const reasons = decision.record?.events.map(({ reason }) => reason) ?? [];
  assert.ok(reasons.includes("SettedPodTemplateSchedulerName"));
  assert.ok(reasons.includes("SettedPodTemplateRestartPolicy"));
});
