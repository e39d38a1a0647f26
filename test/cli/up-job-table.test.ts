import assert from "node:assert/strict";
import { test } from "node:test";
import { create } from "@bufbuild/protobuf";
import { jobsTable } from "../../src/cli/output/job-text.ts";
import { JobTable } from "../../src/cli/service/up-job-table.ts";
import { AdmissionSchema, CleanPodPolicy, JobPhase, JobSchema } from "../../src/gen/gangway/v1/job_pb.ts";

const QUOTA = "needs 8 of gpu/h100; queue default uses 5 of 8 (held by default/eval-on-h100, default/bad-config)";

function job(name: string, phase: JobPhase, { draining = false, active = 0 } = {}) {
  const waiting = phase === JobPhase.WAITING ? { waiting: { reason: "QuotaExhausted", message: QUOTA } } : {};
  const replicaStatuses = { Worker: { active, succeeded: 1 } };
  const status = { phase, draining, totalReplicas: 4, minAvailable: 2, replicaStatuses, ...waiting };
  return create(JobSchema, { metadata: { namespace: "default", name }, spec: { kind: "PyTorchJob" }, status });
}

function tableOf(jobs: readonly ReturnType<typeof job>[], rowsMax = 100): readonly string[] {
  const table = new JobTable();
  for (const one of jobs) table.set(one);
  return table.table({ columns: 80, color: false }, rowsMax);
}

test("the live table fits 80 columns, and says what a job waits for", () => {
  const lines = tableOf([
    job("a-job-with-a-very-long-name-that-does-not-fit", JobPhase.RESTARTING, { draining: true }),
    job("hotfix", JobPhase.WAITING),
  ]);
  assert.ok(lines.every((line) => line.length <= 80));
  assert.match(lines[2] ?? "", /^hotfix +WAITING +- +1\/4 +QuotaExhausted: needs/);
});

test("the live table counts pods as list does", () => {
  const running = job("a", JobPhase.RUNNING, { active: 2 });
  const listed = jobsTable([running], { nowMs: 0, withNamespace: false, wide: false });
  const cell = listed.rows[0]?.[listed.columns.findIndex(({ title }) => title === "PODS")];
  assert.equal(cell, "3/4");
  assert.match(tableOf([running])[1] ?? "", / 3\/4 /);
});

test("jobs that have not ended come before those that have, when not all fit", () => {
  const jobs = [job("waits", JobPhase.WAITING), ...["b", "c", "d"].map((name) => job(name, JobPhase.SUCCEEDED))];
  const names = tableOf(jobs, 2).map((line) => line.split(" ")[0]);
  assert.deepEqual(names, ["JOB", "waits", "d", "and"]);
});

test("a job that drains is shown in words", () => {
  const listed = jobsTable([job("a", JobPhase.SUSPENDED, { draining: true })], {
    nowMs: 0,
    withNamespace: false,
    wide: false,
  });
  assert.ok(listed.rows[0]?.includes("SUSPENDED"));
  assert.match(listed.rows[0]?.at(-1) ?? "", /^draining: pods that are being removed hold its tokens$/);
});

test("a job that has ended, and whose policy keeps pods that run, says how they end", () => {
  const kept = job("a", JobPhase.FAILED, { draining: true });
  if (kept.status !== undefined) kept.status.cleanPodPolicy = CleanPodPolicy.NONE;
  const listed = jobsTable([kept], { nowMs: 0, withNamespace: false, wide: true });
  const reason = "draining: its pods run on and hold its tokens until they end; delete it to end them";
  assert.equal(listed.rows[0]?.at(-1), reason);
  assert.ok(listed.rows[0]?.includes("None"), "the policy in effect");
});

test("a cluster that is simulated is named as such: below the table, and in a line of its job", () => {
  const on = (name: string, cluster: string, simulated: boolean) => {
    const one = job(name, JobPhase.RUNNING);
    if (one.status !== undefined) one.status.admission = create(AdmissionSchema, { cluster, simulated });
    return one;
  };
  const jobs = [on("a", "west", true), on("b", "east", true), on("c", "real", false)];
  const lines = tableOf(jobs);
  assert.match(lines[1] ?? "", /^a +RUNNING +west /);
  assert.deepEqual(lines.slice(4), ["simulated, no program runs there: east, west"]);
  assert.deepEqual(tableOf(jobs.slice(2)).slice(2), []);
  const table = new JobTable();
  assert.equal(table.line(jobs[0] ?? job("a", 0)), "pytorchjob/a RUNNING on west (simulated) 1/4");
});
