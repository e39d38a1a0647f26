import assert from "node:assert/strict";
import { test } from "node:test";
import { awaitsResult, currentAdmission, isDraining, isHistory, type Job } from "../../../src/core/job/job.ts";
import type { Admission } from "../../../src/core/job/status.ts";
import { admit, jobOf, START_MS, template } from "../reconcile/world.ts";

const JOB = jobOf({ kind: "PyTorchJob", replicaSpecs: { Master: { template: template("pytorch") } } });
const [LIVE] = admit(JOB, { cluster: "a", nowMs: START_MS, number: 1 }).admissions as readonly [Admission];

const ended: Admission = { ...LIVE, state: "ended" };
const undone: Admission = { ...LIVE, state: "undone" };
const released = { tokensReleasedMs: START_MS };
const gone = { goneMs: START_MS };

const admissions: Record<
  string,
  { admission: Admission; isCurrent: boolean; isHistory: boolean; isDraining: boolean }
> = {
  "one under which the job runs": { admission: LIVE, isCurrent: true, isHistory: false, isDraining: false },
  "one under which the job ended": { admission: ended, isCurrent: true, isHistory: false, isDraining: true },
  "one under which the job ended, with nothing left": {
    admission: { ...ended, ...released, ...gone },
    isCurrent: true,
    isHistory: false,
    isDraining: false,
  },
  "an undone one": { admission: undone, isCurrent: false, isHistory: false, isDraining: true },
  "an undone one without tokens": {
    admission: { ...undone, ...released },
    isCurrent: false,
    isHistory: false,
    isDraining: false,
  },
  "an undone one without objects": {
    admission: { ...undone, ...gone },
    isCurrent: false,
    isHistory: false,
    isDraining: true,
  },
  "an undone one without objects and tokens": {
    admission: { ...undone, ...released, ...gone },
    isCurrent: false,
    isHistory: true,
    isDraining: false,
  },
};
for (const [name, { admission, ...expected }] of Object.entries(admissions)) {
  test(`an admission's part in its job: ${name}`, () => {
    const job: Job = { ...JOB, admissions: [admission] };
    assert.deepEqual(
      { isCurrent: currentAdmission(job) === admission, isHistory: isHistory(admission), isDraining: isDraining(job) },
      expected,
    );
  });
}

test("the last admission is the current one, and any of them may hold tokens", () => {
  const job = { ...JOB, admissions: [undone, LIVE] };
  assert.equal(currentAdmission(job), LIVE);
  assert.equal(isDraining(job), true);
  assert.equal(currentAdmission(JOB), null);
  assert.equal(isDraining(JOB), false);
});

const status = JOB.status;
const runPolicy = { ...JOB.spec.runPolicy, cacheKey: "same" };
const withPolicy = (more: object): Partial<Job> => ({ spec: { ...JOB.spec, runPolicy: { ...runPolicy, ...more } } });
const searches: Record<string, { readonly changed: Partial<Job>; readonly awaits: boolean }> = {
  "a job with a cache key, not searched yet": { changed: {}, awaits: true },
  "a job without a cache key": { changed: { spec: JOB.spec }, awaits: false },
  "a job that waits for another job's end": {
    changed: { status: { ...status, cache: { state: "waiting", by: "ns/other" } } },
    awaits: true,
  },
  "a job for which no other job has a result": {
    changed: { status: { ...status, cache: { state: "miss", by: "" } } },
    awaits: false,
  },
  "a suspended job": { changed: withPolicy({ suspend: true }), awaits: false },
  "a job that was resumed": { changed: withPolicy({ suspend: false }), awaits: true },
  "a cancelled job": { changed: { cancel: { reason: "r", atMs: START_MS } }, awaits: false },
  "a deleted job": { changed: { deleteTimeMs: START_MS }, awaits: false },
  "a job that runs": { changed: { status: { ...status, phase: "RUNNING" } }, awaits: false },
};
for (const [name, { changed, awaits }] of Object.entries(searches)) {
  test(`${name} ${awaits ? "may still reuse a result" : "reuses no result"}`, () => {
    assert.equal(awaitsResult({ ...JOB, ...withPolicy({}), ...changed }), awaits);
  });
}
