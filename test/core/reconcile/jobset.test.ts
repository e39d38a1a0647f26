/** What a JobSet does at single moments. Its whole life against a count by hand is in `jobset.property.test.ts`. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { isTerminal } from "../../../src/core/job/status.ts";
import type { JsonObject } from "../../../src/runtime/json.ts";
import { objectAt, stringAt, stringMapAt } from "../../../src/runtime/json.ts";
import { submit } from "../../tools/conformance/kinds/submit.ts";
import { Scene } from "./scene.ts";

const TEMPLATE = { spec: { restartPolicy: "Never", containers: [{ name: "main", image: "i" }] } };

function group(name: string, job: JsonObject = {}, other: JsonObject = {}): JsonObject {
  const spec = { parallelism: 2, completions: 2, template: TEMPLATE, ...job };
  return { name, ...other, template: { spec } };
}

function sceneOf(spec: JsonObject, annotations: JsonObject = {}): Scene {
  const manifest = {
    apiVersion: "jobset.x-k8s.io/v1alpha2",
    kind: "JobSet",
    metadata: { name: "j", annotations },
    spec,
  };
  const submitted = submit(manifest, "ns");
  if (submitted.kind === "refused") throw new Error(submitted.fields.join(", "));
  return new Scene(submitted.sent.spec, "main");
}

function run(scene: Scene, isReady = true): void {
  scene.rest();
  const ready = { type: "Ready", status: isReady ? "True" : "False" };
  for (const pod of scene.cluster.pods()) scene.cluster.setPod(pod, { phase: "Running", conditions: [ready] });
  scene.rest();
}

function attemptOf(scene: Scene, name: string): string | undefined {
  const pod = scene.cluster.pods().find((one) => one.name === name);
  return stringMapAt(objectAt(pod?.json, "metadata"), "labels")["jobset.sigs.k8s.io/restart-attempt"];
}

test("no pod of the next attempt starts before all pods of the last one are gone", () => {
  const scene = sceneOf({ failurePolicy: { maxRestarts: 1 }, replicatedJobs: [group("w", { backoffLimit: 0 })] });
  run(scene);
  scene.set("j-w-0-0", "Failed", { exitCode: 1 });
  // The other pod takes long to end.
  scene.cluster.things = scene.cluster.things.map((one) => (one.name === "j-w-0-1" ? { ...one, lost: true } : one));
  for (let round = 0; round < 5; round++) {
    scene.step();
    scene.cluster.collect();
  }
  assert.deepEqual(scene.podNames, ["j-w-0-1"]);
  scene.cluster.things = scene.cluster.things.filter(({ name }) => name !== "j-w-0-1");
  scene.rest();
  assert.deepEqual(scene.podNames, ["j-w-0-0", "j-w-0-1"]);
  assert.equal(attemptOf(scene, "j-w-0-0"), "1");
});

test("a pod that the platform takes restarts a set whose child jobs may not fail, as a failure of the system", () => {
  const scene = sceneOf({ replicatedJobs: [group("w", { backoffLimit: 0 })] });
  run(scene);
  scene.cluster.disrupt(scene.cluster.pods()[0]!, scene.nowMs);
  scene.rest();
  assert.equal(scene.job.status.failure, null);
  assert.deepEqual(scene.job.status.attempts.restarts, { all: 1, counted: 0, attempt: 3 });
  assert.deepEqual([scene.job.status.attempts.user, scene.job.status.attempts.system], [0, 1]);
  assert.deepEqual(scene.podNames, ["j-w-0-0", "j-w-0-1"]);
});

describe("the failure policy", () => {
  const failJob = { rules: [{ action: "FailJob", onExitCodes: { operator: "In", values: [42] } }] };
  const cases: readonly [string, JsonObject, number, string | null][] = [
    [
      "a rule by reason",
      { rules: [{ action: "FailJobSet", onJobFailureReasons: ["PodFailurePolicy"] }] },
      42,
      "FailJobSetFailurePolicyAction",
    ],
    [
      "a rule of another reason",
      { maxRestarts: 1, rules: [{ action: "FailJobSet", onJobFailureReasons: ["DeadlineExceeded"] }] },
      42,
      null,
    ],
    [
      "a rule by message",
      { rules: [{ action: "FailJobSet", onJobFailureMessagePatterns: ["exit code 4[0-9]"] }] },
      42,
      "FailJobSetFailurePolicyAction",
    ],
    [
      "a message that does not match",
      { maxRestarts: 1, rules: [{ action: "FailJobSet", onJobFailureMessagePatterns: ["^exit"] }] },
      42,
      null,
    ],
    [
      "a rule of another group",
      { maxRestarts: 1, rules: [{ action: "FailJobSet", targetReplicatedJobs: ["x"] }] },
      42,
      null,
    ],
    [
      "the first rule that matches",
      { rules: [{ action: "RestartJobSetAndIgnoreMaxRestarts" }, { action: "FailJobSet" }] },
      1,
      null,
    ],
    ["no restart left", { maxRestarts: 0 }, 1, "ReachedMaxRestarts"],
  ];
  for (const [name, failurePolicy, exitCode, code] of cases) {
    test(name, () => {
      const groups = [group("w", { backoffLimit: 0, podFailurePolicy: failJob }), group("x")];
      const scene = sceneOf({ failurePolicy, replicatedJobs: groups });
      run(scene);
      scene.set("j-w-0-0", "Failed", { exitCode });
      scene.rest();
      assert.equal(scene.job.status.failure?.code ?? null, code, scene.job.status.failure?.message);
      assert.equal(scene.job.status.attempts.restarts?.all ?? 0, code === null ? 1 : 0);
    });
  }
});

test("a child job past its deadline fails, which counts from when its group could start", () => {
  const late = group("b", { activeDeadlineSeconds: 60 }, { dependsOn: [{ name: "a", status: "Ready" }] });
  const scene = sceneOf({ replicatedJobs: [group("a"), late] });
  scene.rest();
  scene.nowMs += 90_000;
  run(scene);
  assert.deepEqual(scene.podNames, ["j-a-0-0", "j-a-0-1", "j-b-0-0", "j-b-0-1"]);
  scene.nowMs += 20_000;
  run(scene);
  assert.ok(!isTerminal(scene.job.status));
  scene.nowMs += 60_000;
  scene.rest();
  assert.equal(scene.job.status.failure?.code, "FailedJobs");
  assert.match(scene.job.status.failure?.message ?? "", /j-b-0: Job was active longer than specified deadline/);
});

test("groups that wait are not missed by the start timeout, and are once they may start", () => {
  const order = { startupPolicy: { startupPolicyOrder: "InOrder" } };
  const scene = sceneOf({ ...order, replicatedJobs: [group("a"), group("b")] });
  run(scene);
  assert.deepEqual(scene.podNames, ["j-a-0-0", "j-a-0-1", "j-b-0-0", "j-b-0-1"]);
  const seconds = scene.job.spec.runPolicy.schedulingPolicy.scheduleTimeoutSeconds;
  const waiting = sceneOf({ ...order, replicatedJobs: [group("a"), group("b")] });
  run(waiting, false);
  waiting.nowMs += 2 * seconds * 1000;
  waiting.rest();
  assert.deepEqual(waiting.podNames, ["j-a-0-0", "j-a-0-1"]);
  assert.equal(waiting.job.admissions.at(-1)?.state, "live", "the group that runs without being ready is up");
  run(waiting);
  waiting.nowMs += 2 * seconds * 1000;
  waiting.rest();
  assert.notEqual(waiting.job.admissions.at(-1)?.state, "live", "the other group may start, and does not");
});

test("a set restarts with tokens for all its members, although some had given theirs back", () => {
  const groups = [group("w", { backoffLimit: 0 })];
  const scene = sceneOf({ failurePolicy: { maxRestarts: 1 }, replicatedJobs: groups });
  run(scene);
  scene.set("j-w-0-0", "Succeeded", { exitCode: 0 });
  scene.rest();
  assert.deepEqual(scene.job.status.ends, { "w/0": "SUCCEEDED" });
  scene.set("j-w-0-1", "Failed", { exitCode: 1 });
  scene.rest();
  assert.equal(scene.job.status.ends, undefined, "nothing that was done counts");
  assert.deepEqual(scene.podNames, ["j-w-0-0", "j-w-0-1"]);
});

test("pods of a child job follow the first one into its topology domain", () => {
  const rack = "example.com/rack";
  const scene = sceneOf({ replicatedJobs: [group("w")] }, { "alpha.jobset.sigs.k8s.io/exclusive-topology": rack });
  const placing = (name: string) => {
    const pod = scene.cluster.pods().find((one) => one.name === name);
    const { nodeSelector, affinity } = objectAt(pod?.json, "spec");
    return { nodeSelector, affinity: affinity !== undefined };
  };
  scene.rest();
  assert.deepEqual(scene.podNames, ["j-w-0-0"]);
  assert.deepEqual(placing("j-w-0-0"), { nodeSelector: undefined, affinity: true });
  scene.nodeLabels.set("n1", { [rack]: "r7" });
  scene.bind("j-w-0-0", "n1");
  scene.rest();
  assert.deepEqual(scene.podNames, ["j-w-0-0", "j-w-0-1"]);
  assert.deepEqual(placing("j-w-0-1"), { nodeSelector: { [rack]: "r7" }, affinity: false });
});

for (const [name, counts] of [
  ["a pod that failed starts again", { parallelism: 2, completions: 2 }],
  ["later parts of the work start", { parallelism: 2, completions: 4 }],
] as const) {
  test(`${name} after the first pod of its topology domain has succeeded`, () => {
    const rack = "example.com/rack";
    const annotations = { "alpha.jobset.sigs.k8s.io/exclusive-topology": rack };
    const scene = sceneOf({ replicatedJobs: [group("w", { ...counts, backoffLimit: 6 })] }, annotations);
    scene.rest();
    scene.nodeLabels.set("n1", { [rack]: "r7" });
    scene.bind("j-w-0-0", "n1");
    run(scene);
    scene.set("j-w-0-0", "Succeeded", { exitCode: 0 });
    scene.rest();
    scene.set("j-w-0-1", "Failed", { exitCode: 1 });
    scene.rest();
    scene.nowMs += 60_000;
    scene.rest();
    const ended = (json: JsonObject) => /^(Succeeded|Failed)$/.test(stringAt(objectAt(json, "status"), "phase") ?? "");
    const active = scene.cluster.pods().filter(({ json }) => !ended(json));
    assert.equal(active.length, counts.completions === 2 ? 1 : 2, scene.podNames.join(", "));
  });
}
