import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { isTerminal } from "../../../src/core/job/status.ts";
import { objectAt, stringMapAt } from "../../../src/runtime/json.ts";
import { Stage } from "../../tools/conformance/kinds/stage.ts";
import { submit } from "../../tools/conformance/kinds/submit.ts";

const PREFIX = "jobset.sigs.k8s.io/";

/** What happens to the n-th living pod, or to the job. */
const event = fc.oneof(
  { weight: 6, arbitrary: fc.record({ of: fc.nat({ max: 7 }), what: fc.constant("run") }) },
  { weight: 4, arbitrary: fc.record({ of: fc.nat({ max: 7 }), what: fc.constant("succeed") }) },
  { weight: 3, arbitrary: fc.record({ of: fc.nat({ max: 7 }), what: fc.constantFrom("fail", "evict", "delete") }) },
  { weight: 1, arbitrary: fc.record({ of: fc.constant(0), what: fc.constantFrom("suspend", "resume") }) },
  { weight: 3, arbitrary: fc.record({ of: fc.nat({ max: 700 }), what: fc.constant("wait") }) },
);

const group = fc.record({
  jobs: fc.integer({ min: 1, max: 2 }),
  pods: fc.integer({ min: 1, max: 2 }),
  more: fc.constantFrom(0, 0, 1),
  backoffLimit: fc.nat({ max: 1 }),
  after: fc.constantFrom(null, null, "Ready" as const, "Complete" as const),
});

const world = fc.record({
  groups: fc.array(group, { minLength: 1, maxLength: 3 }),
  order: fc.constantFrom("AnyOrder", "InOrder", "dependsOn"),
  failure: fc.constantFrom(
    null,
    { maxRestarts: 1 },
    { maxRestarts: 2, action: "RestartJobSet" },
    { maxRestarts: 0, action: "RestartJobSetAndIgnoreMaxRestarts" },
    { maxRestarts: 3, action: "FailJobSet" },
  ),
  operator: fc.constantFrom("All", "All", "Any"),
  target: fc.constantFrom(null, null, 0),
  events: fc.array(event, { maxLength: 25 }),
});

type World = typeof world extends fc.Arbitrary<infer T> ? T : never;

const nameOf = (at: number) => `g${at}`;

function dependencyOf({ groups, order }: World, at: number): "Ready" | "Complete" | null {
  return order === "dependsOn" && at > 0 ? (groups[at]?.after ?? null) : null;
}

function stageOf(given: World): Stage {
  const { groups, order, failure, operator, target } = given;
  const action = failure !== null && "action" in failure ? failure.action : undefined;
  const manifest = {
    apiVersion: "jobset.x-k8s.io/v1alpha2",
    kind: "JobSet",
    metadata: { name: "s" },
    spec: {
      successPolicy: { operator, ...(target === null ? {} : { targetReplicatedJobs: [nameOf(target)] }) },
      ...(order === "InOrder" ? { startupPolicy: { startupPolicyOrder: "InOrder" } } : {}),
      ...(failure === null
        ? {}
        : {
            failurePolicy: {
              maxRestarts: failure.maxRestarts,
              ...(action === undefined ? {} : { rules: [{ action, onJobFailureReasons: ["BackoffLimitExceeded"] }] }),
            },
          }),
      replicatedJobs: groups.map(({ jobs, pods, more, backoffLimit }, at) => {
        const status = dependencyOf(given, at);
        return {
          name: nameOf(at),
          replicas: jobs,
          ...(status === null ? {} : { dependsOn: [{ name: nameOf(at - 1), status }] }),
          template: {
            spec: {
              parallelism: pods,
              completions: pods + more,
              backoffLimit,
              template: { spec: { restartPolicy: "Never", containers: [{ name: "main", image: "i" }] } },
            },
          },
        };
      }),
    },
  };
  const submitted = submit(manifest, "ns");
  assert.equal(submitted.kind, "accepted", JSON.stringify(submitted));
  return new Stage((submitted as Extract<typeof submitted, { kind: "accepted" }>).sent);
}

type Pod = Stage["pods"][number];

function living(stage: Stage): readonly Pod[] {
  return stage.pods.filter(({ phase, terminating }) => (phase === "Pending" || phase === "Running") && !terminating);
}

function placeOf({ json }: Pod): { readonly group: number; readonly job: number; readonly index: number } {
  const labels = stringMapAt(objectAt(json, "metadata"), "labels");
  return {
    group: Number(labels[`${PREFIX}replicatedjob-name`]?.slice(1)),
    job: Number(labels[`${PREFIX}job-index`]),
    index: Number(labels["batch.kubernetes.io/job-completion-index"]),
  };
}

/** What the child jobs have been through since the JobSet last restarted, counted by hand. */
class Model {
  readonly #given: World;
  succeeded = new Map<string, Set<number>>();
  failures = new Map<string, number>();
  restarts = 0;
  counted = 0;
  end: "SUCCEEDED" | "FAILED" | null = null;
  code: string | null = null;
  /** Groups that could start under this admission. */
  open = new Set<number>();

  constructor(given: World) {
    this.#given = given;
  }

  fail(pod: Pod): void {
    const { group, job } = placeOf(pod);
    const key = `${group}/${job}`;
    const count = (this.failures.get(key) ?? 0) + 1;
    this.failures.set(key, count);
    if (count <= (this.#given.groups[group]?.backoffLimit ?? 0)) return;
    const { failure } = this.#given;
    const action = failure !== null && "action" in failure ? failure.action : "RestartJobSet";
    if (failure === null) this.#ends("FAILED", "FailedJobs");
    else if (action === "FailJobSet") this.#ends("FAILED", "FailJobSetFailurePolicyAction");
    else if (action === "RestartJobSet" && this.counted >= failure.maxRestarts)
      this.#ends("FAILED", "ReachedMaxRestarts");
    else this.restart(action === "RestartJobSet");
  }

  evict(pod: Pod): void {
    if (this.#given.groups[placeOf(pod).group]?.backoffLimit === 0) this.restart(false);
  }

  restart(counts: boolean): void {
    this.restarts += 1;
    this.counted += Number(counts);
    this.succeeded.clear();
    this.failures.clear();
    this.open.clear();
  }

  succeed(pod: Pod): void {
    const { group, job, index } = placeOf(pod);
    const key = `${group}/${job}`;
    this.succeeded.set(key, (this.succeeded.get(key) ?? new Set()).add(index));
    const { groups, operator, target } = this.#given;
    const targets = groups.flatMap(({ jobs }, at) => {
      return target === null || target === at ? Array.from({ length: jobs }, (_, one) => this.isComplete(at, one)) : [];
    });
    if (operator === "Any" ? targets.some(Boolean) : targets.every(Boolean)) this.#ends("SUCCEEDED", null);
  }

  isComplete(group: number, job: number): boolean {
    const { pods = 0, more = 0 } = this.#given.groups[group] ?? {};
    return (this.succeeded.get(`${group}/${job}`)?.size ?? 0) >= pods + more;
  }

  #ends(end: "SUCCEEDED" | "FAILED", code: string | null): void {
    this.end = end;
    this.code = code;
  }

  /** Opens the groups that may start, given the pods that run. */
  openGroups(running: readonly Pod[]): void {
    const { groups, order } = this.#given;
    const isReady = (group: number) =>
      Array.from({ length: groups[group]?.jobs ?? 0 }, (_, job) => {
        const up = running.map(placeOf).filter((one) => one.group === group && one.job === job).length;
        return up + (this.succeeded.get(`${group}/${job}`)?.size ?? 0) >= (groups[group]?.pods ?? 0);
      }).every(Boolean);
    const isDone = (group: number) =>
      Array.from({ length: groups[group]?.jobs ?? 0 }, (_, job) => this.isComplete(group, job)).every(Boolean);
    for (const [at] of groups.entries()) {
      const status = dependencyOf(this.#given, at);
      const earlier = Array.from({ length: at }, (_, one) => one);
      const may =
        (order !== "InOrder" || earlier.every((one) => isReady(one) || isDone(one))) &&
        (status !== "Ready" || isReady(at - 1) || isDone(at - 1)) &&
        (status !== "Complete" || isDone(at - 1));
      if (may) this.open.add(at);
    }
  }
}

function play(stage: Stage, model: Model, { of, what }: { readonly of: number; readonly what: string }): void {
  if (what === "wait") stage.carryOut({ wait: of });
  else if (what === "suspend" || what === "resume") {
    stage.carryOut({ update: { spec: { suspend: what === "suspend" } } });
    if (what === "suspend") model.open.clear();
  } else {
    const pod = living(stage)[of];
    if (pod === undefined) return;
    const pods = `${pod.name}-X`;
    if (what === "succeed") model.succeed(pod);
    if (what === "fail" || (what === "delete" && pod.phase === "Running")) model.fail(pod);
    if (what === "evict") model.evict(pod);
    const conditions = what === "evict" ? [{ type: "DisruptionTarget", status: "True" }] : [];
    if (what === "delete") stage.carryOut({ deletePods: pods });
    else stage.carryOut({ pods, phase: { run: "Running", succeed: "Succeeded" }[what] ?? "Failed", conditions });
  }
}

function checkLaws(stage: Stage, model: Model): void {
  const { status, spec } = stage.job;
  const pods = living(stage);
  assert.equal(new Set(pods.map(({ name }) => name)).size, pods.length, "no pod is there twice");
  if (model.end === null) assert.ok(!isTerminal(status), `the job goes on, but is ${status.phase}`);
  else {
    assert.equal(status.phase, model.end, status.failure?.message);
    if (model.code !== null) assert.equal(status.failure?.code, model.code);
    return;
  }
  assert.equal(status.attempts.restarts?.all ?? 0, model.restarts, "each restart is counted");
  assert.equal(status.attempts.restarts?.counted ?? 0, model.counted, "restarts that the system caused do not count");
  if (spec.runPolicy.suspend === true) {
    assert.equal(pods.length, 0, "a suspended job has no pods");
    return;
  }
  model.openGroups(pods.filter(({ phase }) => phase === "Running"));
  for (const pod of pods) {
    const { group, job, index } = placeOf(pod);
    const attempt = stringMapAt(objectAt(pod.json, "metadata"), "labels")[`${PREFIX}restart-attempt`];
    assert.equal(attempt, String(model.restarts), "all pods are of the present attempt");
    assert.ok(model.open.has(group), `group ${group} starts in its order`);
    assert.ok(!model.succeeded.get(`${group}/${job}`)?.has(index), `${pod.name}, which is done, is not done again`);
  }
}

test("a JobSet starts in its order, restarts as a whole and ends as its policies say, however its pods end", () => {
  fc.assert(
    fc.property(world, (given) => {
      const stage = stageOf(given);
      const model = new Model(given);
      checkLaws(stage, model);
      for (const one of given.events) {
        if (isTerminal(stage.job.status)) break;
        play(stage, model, one);
        checkLaws(stage, model);
      }
      // Left alone, the work that can be done is done.
      play(stage, model, { of: 0, what: "resume" });
      for (let left = 0; left < 40 && !isTerminal(stage.job.status); left++) {
        play(stage, model, { of: 700, what: "wait" });
        for (let pod = 0; pod < 12; pod++) play(stage, model, { of: pod, what: "run" });
        checkLaws(stage, model);
        play(stage, model, { of: 0, what: "succeed" });
        checkLaws(stage, model);
      }
      assert.ok(isTerminal(stage.job.status), `the job comes to its end, and is ${stage.job.status.phase}`);
    }),
    { numRuns: 150 },
  );
});
