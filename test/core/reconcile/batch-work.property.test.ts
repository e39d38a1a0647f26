import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { endedParts } from "../../../src/core/job/roles.ts";
import { isTerminal } from "../../../src/core/job/status.ts";
import { type JsonObject, numberAt, objectAt, stringMapAt } from "../../../src/runtime/json.ts";
import { Stage } from "../../tools/conformance/kinds/stage.ts";
import { submit } from "../../tools/conformance/kinds/submit.ts";

const INDEX_LABEL = "batch.kubernetes.io/job-completion-index";

/** What happens to the n-th living pod, or to the job. */
const event = fc.oneof(
  { weight: 5, arbitrary: fc.record({ of: fc.nat({ max: 5 }), what: fc.constant("run") }) },
  { weight: 4, arbitrary: fc.record({ of: fc.nat({ max: 5 }), what: fc.constant("succeed") }) },
  { weight: 3, arbitrary: fc.record({ of: fc.nat({ max: 5 }), what: fc.constant("fail") }) },
  { weight: 1, arbitrary: fc.record({ of: fc.nat({ max: 5 }), what: fc.constant("delete") }) },
  { weight: 1, arbitrary: fc.record({ of: fc.constant(0), what: fc.constantFrom("suspend", "resume") }) },
  { weight: 3, arbitrary: fc.record({ of: fc.nat({ max: 700 }), what: fc.constant("wait") }) },
  { weight: 2, arbitrary: fc.record({ of: fc.integer({ min: 1, max: 4 }), what: fc.constant("scale") }) },
);

const world = fc.record({
  parallelism: fc.integer({ min: 1, max: 3 }),
  more: fc.integer({ min: 0, max: 3 }),
  limits: fc.constantFrom(
    { backoffLimit: 2 },
    { backoffLimit: 50 },
    { backoffLimitPerIndex: 1 },
    { backoffLimitPerIndex: 0, maxFailedIndexes: 1 },
  ),
  events: fc.array(event, { maxLength: 30 }),
});

type World = Omit<typeof world extends fc.Arbitrary<infer T> ? T : never, "limits"> & { readonly limits: JsonObject };

function stageOf({ parallelism, more, limits }: World): Stage {
  const manifest = {
    apiVersion: "batch/v1",
    kind: "Job",
    metadata: { name: "j" },
    spec: {
      completionMode: "Indexed",
      parallelism,
      completions: parallelism + more,
      ...limits,
      template: { spec: { restartPolicy: "Never", containers: [{ name: "main", image: "i" }] } },
    },
  };
  const submitted = submit(manifest, "ns");
  assert.equal(submitted.kind, "accepted", JSON.stringify(submitted));
  return new Stage((submitted as Extract<typeof submitted, { kind: "accepted" }>).sent);
}

function living(stage: Stage) {
  return stage.pods.filter(({ phase, terminating }) => (phase === "Pending" || phase === "Running") && !terminating);
}

function indexOf(pod: { readonly json: Parameters<typeof objectAt>[0] }): number {
  return Number(stringMapAt(objectAt(pod.json, "metadata"), "labels")[INDEX_LABEL]);
}

/** What the parts of the work have been through. */
class History {
  readonly succeeded = new Set<number>();
  readonly failures = new Map<number, number>();
  allFailures = 0;

  fail(index: number): void {
    this.failures.set(index, (this.failures.get(index) ?? 0) + 1);
    this.allFailures += 1;
  }

  /** The work has fewer parts: what became of the others is forgotten. */
  forgetFrom(parts: number): void {
    for (const index of [...this.succeeded]) if (index >= parts) this.succeeded.delete(index);
    for (const index of [...this.failures.keys()]) if (index >= parts) this.failures.delete(index);
  }
}

/** How many pods run at once, and how many parts the work has. The parts of an Indexed Job without more follow. */
function sizeOf(stage: Stage, { parallelism, more }: World): { readonly members: number; readonly parts: number } {
  const members = stage.job.spec.replicaSpecs["Worker"]?.replicas ?? 0;
  return { members, parts: more === 0 ? members : parallelism + more };
}

function play(stage: Stage, history: History, { of, what }: { readonly of: number; readonly what: string }): void {
  if (what === "wait") stage.carryOut({ wait: of });
  else if (what === "scale") stage.carryOut({ update: { spec: { parallelism: of } } });
  else if (what === "suspend" || what === "resume")
    stage.carryOut({ update: { spec: { suspend: what === "suspend" } } });
  else {
    const pod = living(stage)[of];
    if (pod === undefined) return;
    const index = indexOf(pod);
    const pods = `${pod.name}-X`;
    if (what === "succeed") history.succeeded.add(index);
    const counts = what === "fail" || (what === "delete" && pod.phase === "Running");
    if (counts) history.fail(index);
    if (what === "delete") stage.carryOut({ deletePods: pods });
    else stage.carryOut({ pods, phase: { run: "Running", succeed: "Succeeded", fail: "Failed" }[what] ?? "" });
  }
}

function checkLaws(stage: Stage, history: History, world: World): void {
  const { status } = stage.job;
  const { limits } = world;
  const { members, parts } = sizeOf(stage, world);
  history.forgetFrom(parts);
  const indexes = living(stage).map(indexOf);
  assert.equal(new Set(indexes).size, indexes.length, "no part is done by two pods at once");
  assert.ok(indexes.length <= members, "no more pods than were admitted");
  for (const index of indexes) {
    assert.ok(index >= 0 && index < parts, "no part that the work does not have");
    assert.ok(!history.succeeded.has(index), `part ${index}, which was done, is not done again`);
  }
  assert.equal(status.attempts.user, history.allFailures, "each failure is counted once");
  const shown = status.replicaStatuses["Worker"]?.succeeded ?? 0;
  if (!isTerminal(status)) assert.equal(shown, history.succeeded.size, "each part that has succeeded is shown");
  const perIndex = numberAt(limits, "backoffLimitPerIndex") ?? null;
  const failed = [...history.failures].filter(([, count]) => perIndex !== null && count > perIndex).length;
  const most = numberAt(limits, "maxFailedIndexes") ?? null;
  const limit = numberAt(limits, "backoffLimit") ?? Number.POSITIVE_INFINITY;
  const isDone = history.succeeded.size + failed >= parts;
  const fails = history.allFailures > limit || (most !== null && failed > most) || (isDone && failed > 0);
  if (fails) assert.equal(status.phase, "FAILED");
  else if (isDone) assert.equal(status.phase, "SUCCEEDED");
  else assert.ok(!isTerminal(status), `the job goes on, but is ${status.phase}: ${status.failure?.message}`);
}

test("a batch Job does each part of its work once, however its pods end, and ends by its limits", () => {
  fc.assert(
    fc.property(world, (given) => {
      const stage = stageOf(given);
      const history = new History();
      for (const one of given.events) {
        if (isTerminal(stage.job.status)) break;
        play(stage, history, one);
        checkLaws(stage, history, given);
      }
      // Left alone, the work that can be done is done.
      if (isTerminal(stage.job.status) || stage.job.spec.runPolicy.suspend === true) return;
      for (let left = 0; left < 20 && !isTerminal(stage.job.status); left++) {
        play(stage, history, { of: 700, what: "wait" });
        play(stage, history, { of: 0, what: "run" });
        play(stage, history, { of: 0, what: "succeed" });
        checkLaws(stage, history, given);
      }
      assert.ok(isTerminal(stage.job.status), `the job comes to its end, and is ${stage.job.status.phase}`);
    }),
    { numRuns: 150 },
  );
});

test("parts that have ended are shown by their numbers, also once the job has ended", () => {
  const limits = { backoffLimitPerIndex: 0, maxFailedIndexes: 1 } as const;
  const stage = stageOf({ parallelism: 3, more: 1, limits, events: [] });
  stage.carryOut({ pods: "j-1-*", phase: "Failed" });
  stage.carryOut({ pods: "*", phase: "Succeeded" });
  const shown = () => [
    endedParts(stage.job.status, "Worker", "SUCCEEDED"),
    endedParts(stage.job.status, "Worker", "FAILED"),
  ];
  assert.deepEqual(shown(), ["0,2,3", "1"]);
  assert.equal(stage.job.status.failure?.code, "FailedIndexes");
});

test("a pod that still runs when a success policy is met has not succeeded", () => {
  const stage = stageOf({
    parallelism: 2,
    more: 0,
    limits: { backoffLimit: 2, successPolicy: { rules: [{ succeededIndexes: "0" }] } },
    events: [],
  });
  stage.carryOut({ pods: "*", phase: "Running" });
  stage.carryOut({ pods: "j-0-*", phase: "Succeeded" });
  assert.equal(stage.job.status.phase, "SUCCEEDED");
  assert.deepEqual(stage.job.status.replicaStatuses["Worker"], { active: 0, succeeded: 1, failed: 0 });
  assert.equal(endedParts(stage.job.status, "Worker", "SUCCEEDED"), "0");
});
