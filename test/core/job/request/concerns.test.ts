import assert from "node:assert/strict";
import { test } from "node:test";
import type { Job } from "../../../../src/core/job/job.ts";
import { concernsOf } from "../../../../src/core/job/request/concerns.ts";
import type { Admission } from "../../../../src/core/job/status.ts";
import { pytorch, Scene } from "../../reconcile/scene.ts";

const AT = Date.UTC(2026, 0, 2, 3, 4, 5);
const SILENT = new Map([["c1", AT]]);
const { job: RUNS } = new Scene(pytorch()).start();
const [LIVE] = RUNS.admissions;
assert.ok(LIVE !== undefined);

const having = (admission: Partial<Admission>): Job => ({ ...RUNS, admissions: [{ ...LIVE, ...admission }] });
const words = (job: Job, silent: ReadonlyMap<string, number | null> = new Map()) =>
  concernsOf(job, silent).map(({ reason, message, sinceMs }) => `${reason} ${message} ${sinceMs}`);

const SINCE = "has not answered since 2026-01-02T03:04:05.000Z";
const EARLIER = "cluster c1, where pods of an earlier admission may still run,";
const cases: Record<
  string,
  { readonly job: Job; readonly silent?: ReadonlyMap<string, number | null>; readonly says: string[] }
> = {
  "a job that runs where all is well": { job: RUNS, says: [] },
  "another cluster is silent": { job: RUNS, silent: new Map([["c2", AT]]), says: [] },
  "its cluster is silent": { job: RUNS, silent: SILENT, says: [`ClusterUnreachable cluster c1 ${SINCE} ${AT}`] },
  "its cluster has not answered yet": {
    job: RUNS,
    silent: new Map([["c1", null]]),
    says: ["ClusterUnreachable cluster c1 has not answered yet null"],
  },
  "an undone admission still has pods in a silent cluster": {
    job: having({ state: "undone", tokensReleasedMs: AT }),
    silent: SILENT,
    says: [`ClusterUnreachable ${EARLIER} ${SINCE} ${AT}`],
  },
  "an undone admission of which nothing is left": {
    job: having({ state: "undone", tokensReleasedMs: AT, goneMs: AT }),
    silent: SILENT,
    says: [],
  },
  "an ended admission holds tokens in a silent cluster": {
    job: having({ state: "ended" }),
    silent: SILENT,
    says: [`ClusterUnreachable cluster c1 ${SINCE} ${AT}`],
  },
  "an ended admission without tokens": {
    job: having({ state: "ended", tokensReleasedMs: AT }),
    silent: SILENT,
    says: [],
  },
  "it is being cancelled": {
    job: { ...RUNS, cancel: { reason: "wrong data", atMs: AT } },
    says: [`Cancelling it is being cancelled since 2026-01-02T03:04:05.000Z: wrong data ${AT}`],
  },
  "it was cancelled": {
    job: { ...RUNS, cancel: { reason: "", atMs: AT }, status: { ...RUNS.status, phase: "CANCELLED" } },
    says: [],
  },
  "it is being deleted in a silent cluster": {
    job: { ...RUNS, deleteTimeMs: AT, cancel: { reason: "", atMs: AT } },
    silent: SILENT,
    says: [
      `ClusterUnreachable cluster c1 ${SINCE} ${AT}`,
      `Deleting it is being deleted since 2026-01-02T03:04:05.000Z ${AT}`,
    ],
  },
};

for (const [name, { job, silent, says }] of Object.entries(cases)) {
  test(`concerns: ${name}`, () => assert.deepEqual(words(job, silent), says));
}
