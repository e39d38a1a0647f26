import assert from "node:assert/strict";
import { test } from "node:test";
import type { Job } from "../../../../src/core/job/job.ts";
import { concernsOf, type SilentClusters } from "../../../../src/core/job/request/concerns.ts";
import type { Admission } from "../../../../src/core/job/status.ts";
import { pytorch, Scene } from "../../reconcile/scene.ts";

const AT = Date.UTC(2026, 0, 2, 3, 4, 5);
const AT_TEXT = "2026-01-02T03:04:05.000Z";
const SILENCE = { sinceMs: AT, unusable: null };
const SILENT: SilentClusters = new Map([["c1", SILENCE]]);
const { job: RUNS } = new Scene(pytorch()).start();
const [LIVE] = RUNS.admissions;
assert.ok(LIVE !== undefined);

const having = (admission: Partial<Admission>): Job => ({ ...RUNS, admissions: [{ ...LIVE, ...admission }] });
const words = (job: Job, silent: SilentClusters = new Map()) =>
  concernsOf(job, silent).map(({ reason, message, sinceMs }) => `${reason} ${message} ${sinceMs}`);

const SINCE = "has not answered since 2026-01-02T03:04:05.000Z";
const LOST = `ClusterLost cluster c1 ${SINCE}, and counts as lost: whether pods run there is not known`;
/** The job with its own time until it leaves a lost cluster. */
const staying = (moveAfterMs: number): Job => ({
  ...RUNS,
  spec: { ...RUNS.spec, runPolicy: { ...RUNS.spec.runPolicy, moveAfterMs } },
});
const EARLIER = "cluster c1, where pods of an earlier admission may still run,";
const cases: Record<string, { readonly job: Job; readonly silent?: SilentClusters; readonly says: string[] }> = {
  "a job that runs where all is well": { job: RUNS, says: [] },
  "another cluster is silent": { job: RUNS, silent: new Map([["c2", SILENCE]]), says: [] },
  "its cluster is silent": { job: RUNS, silent: SILENT, says: [`ClusterUnreachable cluster c1 ${SINCE} ${AT}`] },
  "its cluster has not answered yet": {
    job: RUNS,
    silent: new Map([["c1", { sinceMs: null, unusable: null }]]),
    says: ["ClusterUnreachable cluster c1 has not answered yet null"],
  },
  "its cluster counts as lost": {
    job: RUNS,
    silent: new Map([["c1", { ...SILENCE, lostMs: AT + 60_000 }]]),
    says: [`${LOST}; the gang waits for it, or runs elsewhere later, as its queue or namespace says ${AT}`],
  },
  "its cluster counts as lost, and the job says that it waits": {
    job: staying(0),
    silent: new Map([["c1", { ...SILENCE, lostMs: AT + 60_000 }]]),
    says: [`${LOST}; the gang waits for the cluster, as its job says ${AT}`],
  },
  "its cluster counts as lost, and the job says when it leaves": {
    job: staying(300_000),
    silent: new Map([["c1", { ...SILENCE, lostMs: AT + 60_000 }]]),
    says: [`${LOST}; the gang runs elsewhere once the cluster has not answered for 300 s ${AT}`],
  },
  "its cluster counts as lost, and it is to leave it": {
    job: { ...RUNS, status: { ...RUNS.status, move: { admission: 1, sinceMs: AT, lostMs: AT } } },
    silent: new Map([["c1", { ...SILENCE, lostMs: AT + 60_000 }]]),
    says: [`${LOST}; the gang runs elsewhere once it fits there ${AT}`],
  },
  "a job has ended in a cluster that counts as lost": {
    job: having({ state: "ended" }),
    silent: new Map([["c1", { ...SILENCE, lostMs: AT + 60_000 }]]),
    says: [`${LOST} ${AT}`],
  },
  "a gang has left its lost cluster": {
    job: having({ state: "undone", tokensReleasedMs: AT, abandonedMs: AT }),
    silent: new Map([["c1", { ...SILENCE, lostMs: AT + 60_000 }]]),
    says: [`ClusterLost ${EARLIER} ${SINCE}, and counts as lost: whether pods run there is not known ${AT}`],
  },
  "its cluster does not accept this service": {
    job: RUNS,
    silent: new Map([["c1", { sinceMs: AT, unusable: "words for operators" }]]),
    says: [
      `ClusterUnusable cluster c1 answers, but cannot be used since ${AT_TEXT}: an operator has to see to it ${AT}`,
    ],
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
