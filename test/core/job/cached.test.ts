import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { awaitsResult, type Job } from "../../../src/core/job/job.ts";
import { isTerminal } from "../../../src/core/job/status.ts";
import { applyCacheLookup, lookUpCache } from "../../../src/core/reconcile/plugins/cached-result.ts";
import type { JsonObject } from "../../../src/runtime/json.ts";
import { plan } from "../../support/plan.ts";
import { queue, snapshot } from "../plan/plan-world.ts";
import { admit, CONFIG, jobOf, recorded, START_MS, template } from "../reconcile/world.ts";

const asking = (name: string, cacheKey: string, image = "a"): Job =>
  jobOf(
    { kind: "Job", replicaSpecs: { Worker: { template: template(image) } }, runPolicy: { cacheKey } },
    { uid: `uid-${name}`, name, createTimeMs: START_MS },
  );

const ended = (job: Job, phase: "SUCCEEDED" | "FAILED"): Job => ({
  ...job,
  status: { ...job.status, phase, completionTimeMs: START_MS },
});

const running = (name: string): Job => {
  const job = asking(name, "k");
  return { ...job, status: { ...job.status, phase: "RUNNING" } };
};

const withInputs = (job: Job, inputs: JsonObject): Job => ({ ...job, spec: { ...job.spec, inputs } });

/** Looks for an answer as its worker would; the job as it is then. */
function look(job: Job, all: readonly Job[]): Job {
  if (!awaitsResult(job)) return job;
  const decision = applyCacheLookup(job, lookUpCache(job, all), { nowMs: START_MS, config: CONFIG });
  return recorded(job, decision);
}

const answers: Record<string, { readonly of?: Job; readonly others: readonly Job[]; readonly is: string }> = {
  "nobody has its key": { others: [ended(asking("other", "another key"), "SUCCEEDED")], is: "miss" },
  "another payload under the key": { others: [ended(asking("other", "k", "b"), "SUCCEEDED")], is: "miss" },
  "a result of other inputs": {
    others: [withInputs(ended(asking("other", "k"), "SUCCEEDED"), { rate: 2 })],
    is: "miss",
  },
  "a result of another value of an input": {
    of: withInputs(asking("job", "k"), { rate: 1 }),
    others: [withInputs(ended(asking("other", "k"), "SUCCEEDED"), { rate: 2 })],
    is: "miss",
  },
  "a result of the same inputs": {
    of: withInputs(asking("job", "k"), { rate: 2 }),
    others: [withInputs(ended(asking("other", "k"), "SUCCEEDED"), { rate: 2 })],
    is: "hit",
  },
  "a result in another namespace": {
    others: [{ ...ended(asking("other", "k"), "SUCCEEDED"), namespace: "elsewhere" }],
    is: "miss",
  },
  "one that failed": { others: [ended(asking("other", "k"), "FAILED")], is: "miss" },
  "one that is being deleted": {
    others: [{ ...ended(asking("other", "k"), "SUCCEEDED"), deleteTimeMs: START_MS }],
    is: "miss",
  },
  "one that runs": { others: [running("other")], is: "pending" },
  "one that runs and is to be cancelled": {
    others: [{ ...running("other"), cancel: { reason: "", atMs: START_MS } }],
    is: "miss",
  },
  "one that runs and is to be deleted": { others: [{ ...running("other"), deleteTimeMs: START_MS }], is: "miss" },
  "one that is suspended": {
    others: [{ ...running("other"), status: { ...running("other").status, phase: "SUSPENDED" } }],
    is: "miss",
  },
  "a result of a job that was to be cancelled, but ended first": {
    others: [{ ...ended(asking("other", "k"), "SUCCEEDED"), cancel: { reason: "", atMs: START_MS } }],
    is: "hit",
  },
  "a result, beside one that runs": {
    others: [running("other"), ended(asking("done", "k"), "SUCCEEDED")],
    is: "hit",
  },
  "one made before it, that waits": { others: [asking("a", "k")], is: "pending" },
  "one made after it, that waits": { others: [asking("z", "k")], is: "miss" },
};
for (const [name, { of = asking("job", "k"), others, is }] of Object.entries(answers)) {
  test(`an answer from ${name}: ${is}`, () => assert.equal(lookUpCache(of, others).kind, is));
}

/** What a job waits for that was created at time 5 with uid `m`, among one other that waits too. */
const turns: Record<string, { readonly other: Pick<Job, "createTimeMs" | "uid">; readonly is: string }> = {
  "one created before it, whatever its uid": { other: { createTimeMs: 4, uid: "z" }, is: "pending" },
  "one created after it, whatever its uid": { other: { createTimeMs: 6, uid: "a" }, is: "miss" },
  "one created at the same time with a lower uid": { other: { createTimeMs: 5, uid: "a" }, is: "pending" },
  "one created at the same time with a higher uid": { other: { createTimeMs: 5, uid: "z" }, is: "miss" },
  itself: { other: { createTimeMs: 5, uid: "m" }, is: "miss" },
};
for (const [name, { other, is }] of Object.entries(turns)) {
  test(`a job that waits beside ${name}: ${is}`, () => {
    const one = { ...asking("job", "k"), createTimeMs: 5, uid: "m" };
    assert.equal(lookUpCache(one, [{ ...asking("other", "k"), ...other }]).kind, is);
  });
}

test("a job that is answered succeeds without an admission, and says whose result it has", () => {
  const succeeded = ended(asking("done", "k"), "SUCCEEDED");
  const done = { ...succeeded, status: { ...succeeded.status, outputs: { rows: 1 } } };
  const job = look(asking("job", "k"), [done]);
  assert.deepEqual(job.status.outputs, { rows: 1 });
  assert.equal(job.status.phase, "SUCCEEDED");
  assert.deepEqual(job.admissions, []);
  assert.deepEqual(job.status.cache, { state: "hit", by: "ns/done" });
  assert.deepEqual(
    job.status.info?.externalResources.map(({ externalId, cacheStatus }) => [externalId, cacheStatus]),
    [["uid-done", "HIT"]],
  );
  assert.deepEqual(
    job.status.conditions.filter(({ status }) => status === "True").map(({ type }) => type),
    ["Created", "Succeeded"],
  );
});

test("the planner passes a job that may reuse a result, also in a strict queue", () => {
  const waiting = look(asking("job", "k"), [asking("a", "k")]);
  const other = {
    ...jobOf({ kind: "Job", replicaSpecs: { Worker: { template: template("b") } } }),
    uid: "other",
    createTimeMs: START_MS + 1,
  };
  const queues = [queue("default", {}, { strategy: "STRICT_FIFO" })];
  const decided = plan(snapshot({ waiting: [waiting, other], queues, clusters: [] }), { nowMs: START_MS });
  assert.deepEqual(decided.refusals.map(({ jobUid, reason }) => [jobUid, reason]).toSorted(), [
    ["other", "NoCluster"],
    ["uid-job", "WaitingForCache"],
  ]);
  const alone = plan(snapshot({ waiting: [look(asking("job", "k"), [])], queues, clusters: [] }), { nowMs: START_MS });
  assert.deepEqual(
    alone.refusals.map(({ reason }) => reason),
    ["NoCluster"],
  );
});

test("of identical jobs one runs at a time and one succeeds, in any order of passes; none waits for ever", () => {
  const looks = fc.array(fc.nat(5), { minLength: 0, maxLength: 30 });
  const ends = fc.array(fc.boolean(), { minLength: 6, maxLength: 6 });
  fc.assert(
    fc.property(looks, ends, (order, fates) => {
      const jobs = Array.from({ length: 6 }, (_, at) => asking(String(at), "k"));
      const at = (index: number) => jobs[index]!;
      const runs = () => jobs.filter((job) => !awaitsResult(job) && !isTerminal(job.status));
      for (const index of order) jobs[index] = look(at(index), jobs);
      for (let round = 0; round < 7; round++) {
        for (const index of jobs.keys()) jobs[index] = look(at(index), jobs);
        assert.ok(runs().length <= 1);
        for (const running of runs()) {
          const index = jobs.indexOf(running);
          jobs[index] = ended(
            admit(running, { cluster: "c", nowMs: START_MS, number: 1 }),
            fates[index] ? "SUCCEEDED" : "FAILED",
          );
        }
      }
      assert.ok(jobs.every(({ status }) => isTerminal(status)));
      const succeeded = fates.includes(true);
      if (succeeded)
        assert.ok(jobs.some(({ status }) => status.cache?.state !== "hit" && status.phase === "SUCCEEDED"));
      for (const job of jobs.filter(({ status }) => status.cache?.state === "hit")) assert.ok(succeeded, job.name);
    }),
    { numRuns: 300 },
  );
});
