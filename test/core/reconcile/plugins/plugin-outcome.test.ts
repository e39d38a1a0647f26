import assert from "node:assert/strict";
import { test } from "node:test";
import type { Job } from "../../../../src/core/job/job.ts";
import type { Failure } from "../../../../src/core/job/status.ts";
import type { PluginRecord } from "../../../../src/core/job/task-info.ts";
import {
  afterCall,
  type CallOutcome,
  type DueCall,
  dueCall,
} from "../../../../src/core/reconcile/plugins/plugin-outcome.ts";
import { reconcile } from "../../../../src/core/reconcile/reconcile.ts";
import { kindsWith } from "../../../support/kinds.ts";
import { etlEntry } from "../../kinds/plugin-world.ts";
import { admit, jobOf, CONFIG as OWN_CONFIG, recorded, START_MS } from "../world.ts";

const KINDS = kindsWith(etlEntry);
const CONFIG = { ...OWN_CONFIG, kinds: KINDS };
const NOW_MS = START_MS + 1_000;
const AT = { nowMs: NOW_MS, config: CONFIG };

type Limits = { readonly backoffLimit?: number; readonly systemBackoffLimit?: number };

/** A job whose plugin is to be called for the first time. */
function started(limits: Limits = {}): Job {
  const runPolicy = { backoffLimit: 3, systemBackoffLimit: 3, ...limits };
  const admitted = admit(jobOf({ kind: "EtlJob", replicaSpecs: {}, runPolicy }, {}, KINDS), {
    cluster: null,
    nowMs: START_MS,
    number: 1,
  });
  return recorded(admitted, reconcile(admitted, [], START_MS, CONFIG));
}

function callOf(job: Job): DueCall {
  const call = dueCall(job, NOW_MS);
  assert.ok(call !== null);
  return call;
}

function after(job: Job, outcome: CallOutcome, call = callOf(job)) {
  const decision = afterCall(job, call, outcome, AT);
  return { decision, job: recorded(job, decision) };
}

const returned = (info: object): CallOutcome => ({ kind: "returned", value: { info } });
const retryable = (failure: object, more: object = {}) =>
  returned({ phase: "RETRYABLE_FAILURE", failure: { code: "Lost", message: "", ...failure }, ...more });

/** The job with so many failures counted before this one. */
function failedBefore(job: Job, before: { readonly user?: number; readonly system?: number }): Job {
  return { ...job, status: { ...job.status, attempts: { ...job.status.attempts, ...before } } };
}

function changed(job: Job, plugin: Partial<PluginRecord>): Job {
  assert.ok(job.status.plugin !== undefined);
  return { ...job, status: { ...job.status, plugin: { ...job.status.plugin, ...plugin } } };
}

const withOutputs = (info: object, outputs: object): CallOutcome => ({ kind: "returned", value: { info, outputs } });
const messagesOf = ({ decision }: ReturnType<typeof after>, reason: string) =>
  (decision.record?.events ?? []).filter((event) => event.reason === reason).map(({ message }) => message);

test("outputs are recorded and told once, and the next attempt begins without them", () => {
  const first = after(started(), withOutputs({ phase: "RUNNING" }, { table: "t", rows: 1 }));
  assert.deepEqual(first.job.status.outputs, { table: "t", rows: 1 });
  assert.deepEqual(messagesOf(first, "EtlJobOutputsRecorded"), [
    `EtlJob ${first.job.name} has recorded outputs: table, rows.`,
  ]);
  const again = after(first.job, withOutputs({ phase: "RUNNING" }, { rows: 1, table: "t" }));
  assert.deepEqual(messagesOf(again, "EtlJobOutputsRecorded"), [], "the same outputs are no news");
  const kept = after(first.job, returned({ phase: "RUNNING", version: 2 }));
  assert.deepEqual(kept.job.status.outputs, { table: "t", rows: 1 });
  const ended = after(first.job, returned({ phase: "SUCCESS" }));
  assert.deepEqual(ended.job.status.outputs, { table: "t", rows: 1 });
  assert.equal(after(first.job, retryable({})).job.status.outputs, undefined);
  const spent = after(failedBefore(first.job, { user: 2 }), retryable({}));
  assert.equal(spent.job.status.phase, "FAILED");
  assert.deepEqual(spent.job.status.outputs, { table: "t", rows: 1 }, "what ends the job keeps its outputs");
});

test("events that a plugin recorded are the job's, also if the call failed", () => {
  const events = [
    { reason: "Sent", message: "to the queue" },
    { reason: "Slow", message: "x".repeat(5_000), isWarning: true },
  ];
  for (const outcome of [returned({ phase: "RUNNING" }), { kind: "failed", message: "lost" } as const]) {
    const { decision } = after(started(), { ...outcome, events });
    const [sent, slow] = (decision.record?.events ?? []).filter(({ reason }) => ["Sent", "Slow"].includes(reason));
    assert.deepEqual(sent, { type: "Normal", reason: "Sent", message: "to the queue" });
    assert.equal(slow?.type, "Warning");
    assert.ok(Buffer.byteLength(slow.message) <= 1_024);
  }
});

type Retried = {
  readonly limits?: Limits;
  readonly before?: { readonly user?: number; readonly system?: number };
  readonly failure: { readonly kind?: "USER" | "SYSTEM"; readonly code?: string; readonly message?: string };
  readonly counts: readonly [user: number, system: number];
  /** Null: the job restarts. */
  readonly fails: Pick<Failure, "code" | "kind"> | null;
  readonly says?: RegExp;
};

const budgets: Record<string, Retried> = {
  "the first failure of the user's code is counted as the user's": {
    failure: { kind: "USER", message: "no such table" },
    counts: [1, 0],
    fails: null,
    says: /no such table/,
  },
  "a failure that names no kind is the user's": { failure: {}, counts: [1, 0], fails: null, says: /Lost/ },
  "the first failure of the system is counted as the system's": {
    failure: { kind: "SYSTEM" },
    counts: [0, 1],
    fails: null,
  },
  "one failure below the user's budget the job restarts": {
    before: { user: 1 },
    failure: { kind: "USER" },
    counts: [2, 0],
    fails: null,
  },
  "the failure that reaches the user's budget fails the job": {
    before: { user: 2 },
    failure: { kind: "USER", message: "no such table" },
    counts: [3, 0],
    fails: { code: "BackoffLimitExceeded", kind: "USER" },
    says: /no such table/,
  },
  "the failure that reaches the system's budget fails the job": {
    before: { system: 2 },
    failure: { kind: "SYSTEM", message: "the warehouse is down" },
    counts: [0, 3],
    fails: { code: "SystemBackoffLimitExceeded", kind: "SYSTEM" },
    says: /the warehouse is down/,
  },
  "a failure without a message is named by its code": {
    before: { user: 2 },
    failure: { code: "Preempted" },
    counts: [3, 0],
    fails: { code: "BackoffLimitExceeded", kind: "USER" },
    says: /Preempted/,
  },
  "a spent budget of the system leaves the user's whole": {
    before: { system: 2 },
    failure: { kind: "USER" },
    counts: [1, 2],
    fails: null,
  },
  "a spent budget of the user leaves the system's whole": {
    before: { user: 2 },
    failure: { kind: "SYSTEM" },
    counts: [2, 1],
    fails: null,
  },
  "a budget of 1 allows no other attempt": {
    limits: { backoffLimit: 1 },
    failure: {},
    counts: [1, 0],
    fails: { code: "BackoffLimitExceeded", kind: "USER" },
  },
  "a budget of 0 allows no other attempt": {
    limits: { backoffLimit: 0 },
    failure: {},
    counts: [1, 0],
    fails: { code: "BackoffLimitExceeded", kind: "USER" },
  },
};

for (const [name, { limits, before = {}, failure, counts, fails, says = /./ }] of Object.entries(budgets)) {
  test(`a retryable failure: ${name}`, () => {
    const { job, decision } = after(failedBefore(started(limits), before), retryable(failure));
    const { status } = job;
    assert.deepEqual([status.attempts.user, status.attempts.system], counts);
    assert.equal(status.plugin?.stage, "finalize", "the attempt is over in both cases");
    assert.equal(status.phase, fails === null ? "RESTARTING" : "FAILED");
    const verdict = status.failure === null ? null : { code: status.failure.code, kind: status.failure.kind };
    assert.deepEqual(verdict, fails);
    const type = fails === null ? "Restarting" : "Failed";
    const condition = status.conditions.find((one) => one.type === type);
    assert.equal(condition?.status, "True");
    assert.equal(condition.reason, `EtlJob${type}`);
    assert.match(condition.message, says);
    if (status.failure !== null) assert.match(status.failure.message, says);
    const warnings = decision.record?.events.filter((event) => event.type === "Warning") ?? [];
    assert.deepEqual(
      warnings.map(({ reason, message }) => ({ reason, message })),
      [{ reason: `EtlJob${type}`, message: condition.message }],
    );
  });
}

test("a spent budget is named by whose it is", () => {
  const user = after(failedBefore(started(), { user: 2 }), retryable({ kind: "USER" })).job;
  const system = after(failedBefore(started(), { system: 2 }), retryable({ kind: "SYSTEM" })).job;
  assert.match(user.status.failure?.message ?? "", /reached the specified backoff limit/);
  assert.match(system.status.failure?.message ?? "", /reached the specified system backoff limit/);
});

test("a job without a budget of its own restarts after any number of the user's failures", () => {
  const job = failedBefore(started(), { user: 1_000 });
  const { spec } = job;
  const endless = { ...job, spec: { ...spec, runPolicy: { ...spec.runPolicy, backoffLimit: null } } };
  assert.equal(after(endless, retryable({})).job.status.phase, "RESTARTING");
});

for (const cleanup of [true, false]) {
  const stage = cleanup ? "abort" : "finalize";
  const failures = {
    "a retryable failure": retryable({}, { cleanupOnFailure: cleanup }),
    "the last retryable failure": retryable({}, { cleanupOnFailure: cleanup }),
    "a permanent failure": returned({
      phase: "PERMANENT_FAILURE",
      failure: { code: "Broken", message: "" },
      cleanupOnFailure: cleanup,
    }),
  };
  for (const [name, outcome] of Object.entries(failures)) {
    test(`${name} that ${cleanup ? "asks" : "does not ask"} for clean-up is followed by ${stage}`, () => {
      const limits = name.startsWith("the last") ? { backoffLimit: 1 } : {};
      const { plugin } = after(started(limits), outcome).job.status;
      assert.deepEqual([plugin?.stage, plugin?.failedCalls, plugin?.notBeforeMs], [stage, 0, NOW_MS]);
    });
  }
}

test("a permanent failure fails the job at once, with its own code, kind and reason", () => {
  const failure = { code: "Denied", kind: "SYSTEM", message: "no credit" };
  const { status } = after(started(), returned({ phase: "PERMANENT_FAILURE", failure })).job;
  assert.equal(status.phase, "FAILED");
  assert.deepEqual([status.failure?.code, status.failure?.kind], ["Denied", "SYSTEM"]);
  assert.match(status.failure?.message ?? "", /no credit/);
  assert.deepEqual([status.attempts.user, status.attempts.system], [0, 0]);
  assert.equal(status.completionTimeMs, NOW_MS);
  const silent = after(started(), returned({ phase: "ABORTED", failure: { code: "Stopped" } })).job;
  assert.match(silent.status.failure?.message ?? "", /Stopped/);
});

test("success ends the job and finalizes the attempt", () => {
  const { status } = after(started(), returned({ phase: "SUCCESS" })).job;
  assert.deepEqual([status.phase, status.plugin?.stage, status.failure], ["SUCCEEDED", "finalize", null]);
});

for (const phase of ["NOT_READY", "WAITING_FOR_RESOURCES", "WAITING_FOR_CACHE", "QUEUED", "INITIALIZING"]) {
  test(`${phase} after a restart means that the next attempt starts`, () => {
    const job = started();
    const restarting: Job = { ...job, status: { ...job.status, phase: "RESTARTING" } };
    assert.equal(after(restarting, returned({ phase })).job.status.phase, "STARTING");
    const running: Job = { ...job, status: { ...job.status, phase: "RUNNING" } };
    assert.equal(after(running, returned({ phase })).job.status.phase, "RUNNING", "a job that runs does not go back");
  });
}

test("a phase that is not known leaves a restarting job as it is", () => {
  const job = started();
  const restarting: Job = { ...job, status: { ...job.status, phase: "RESTARTING" } };
  assert.equal(after(restarting, returned({ phase: "UNDEFINED" })).job.status.phase, "RESTARTING");
});

test("failed calls of handle in a row are repeated later and later until the system budget is spent", () => {
  let job = started({ systemBackoffLimit: 3 });
  const crash = (failed: number) => {
    const call = { stage: "handle" as const, plugin: job.status.plugin ?? assert.fail("no plugin") };
    return after(job, { kind: "failed", message: `crash ${failed}` }, call).job;
  };
  const waits: number[] = [];
  for (let failed = 1; failed <= 2; failed++) {
    job = crash(failed);
    assert.equal(job.status.failure, null);
    assert.equal(job.status.plugin?.failedCalls, failed);
    assert.equal(job.status.plugin.lastFailure, `crash ${failed}`);
    waits.push(job.status.plugin.notBeforeMs - NOW_MS);
  }
  assert.deepEqual(waits, [1_000, 2_000]);
  job = crash(3);
  assert.deepEqual([job.status.failure?.code, job.status.failure?.kind], ["PluginFailed", "SYSTEM"]);
  assert.match(job.status.failure?.message ?? "", /3 times in a row.*crash 3/);
  assert.equal(job.status.plugin?.stage, "abort", "the plugin may have started something");
  assert.deepEqual([job.status.plugin.failedCalls, job.status.plugin.notBeforeMs], [0, NOW_MS]);
});

test("an answer that cannot be read counts as a failed call", () => {
  const { job } = after(started(), { kind: "returned", value: { info: { phase: "DONE" } } });
  assert.equal(job.status.plugin?.failedCalls, 1);
  assert.match(job.status.plugin.lastFailure ?? "", /info\.phase/);
});

for (const stage of ["abort", "finalize"] as const) {
  test(`${stage} is repeated however often it has failed, because the job holds its tokens until then`, () => {
    const job = changed(started({ systemBackoffLimit: 1 }), { stage, failedCalls: 50 });
    const { status } = after(job, { kind: "failed", message: "no" }).job;
    assert.equal(status.failure, null);
    assert.deepEqual([status.plugin?.stage, status.plugin?.failedCalls], [stage, 51]);
  });
}

test("a call that succeeds forgets the failures before it", () => {
  const job = changed(started(), { failedCalls: 2, lastFailure: "crash", notBeforeMs: START_MS });
  const { plugin } = after(job, returned({ phase: "RUNNING" })).job.status;
  assert.deepEqual([plugin?.failedCalls, plugin?.notBeforeMs, plugin?.lastFailure], [0, NOW_MS, undefined]);
});

test("after finalize the next attempt begins without the state of the last one, after a backoff", () => {
  const job = changed(started(), { stage: "finalize", attempt: 2, state: { version: 1, value: { query: 7 } } });
  const { status } = after(job, { kind: "returned", value: null }).job;
  const { attempt, stage, state, failedCalls, notBeforeMs } = status.plugin ?? assert.fail("no plugin");
  assert.deepEqual({ attempt, stage, failedCalls }, { attempt: 3, stage: "handle", failedCalls: 0 });
  assert.deepEqual(state, { version: 0, value: null });
  assert.ok(notBeforeMs > NOW_MS);
  assert.deepEqual(status.attempts.byReplica, { "Task/0": 3 });
});

test("after finalize of a job that has ended nothing is called any more", () => {
  const ended = after(started(), returned({ phase: "SUCCESS" })).job;
  const { status } = after(ended, { kind: "returned", value: null }).job;
  assert.deepEqual([status.plugin?.stage, status.plugin?.attempt], ["done", 1]);
  assert.equal(dueCall({ ...ended, status }, NOW_MS + 1e9), null);
});

test("a call is due from its time on", () => {
  const job = changed(started(), { notBeforeMs: NOW_MS });
  assert.equal(dueCall(job, NOW_MS - 1), null);
  assert.equal(dueCall(job, NOW_MS)?.stage, "handle");
});

const progress: Record<string, { readonly next: object; readonly isRecorded: boolean }> = {
  "another phase is recorded": { next: { phase: "RUNNING", version: 0 }, isRecorded: true },
  "a higher version of the phase is recorded": { next: { phase: "QUEUED", version: 4 }, isRecorded: true },
  "the same version of the phase is not recorded again": { next: { phase: "QUEUED", version: 3 }, isRecorded: false },
  "a lower version of the phase is not recorded": { next: { phase: "QUEUED", version: 2 }, isRecorded: false },
  "an unknown phase is not recorded": { next: { phase: "UNDEFINED", version: 9 }, isRecorded: false },
};
for (const [name, { next, isRecorded }] of Object.entries(progress)) {
  test(`progress: ${name}`, () => {
    const first = after(started(), returned({ phase: "QUEUED", version: 3, reason: "behind 4 others" })).job;
    const { job, decision } = after(first, returned({ ...next, reason: "later" }));
    assert.equal(job.status.info?.reason, isRecorded ? "later" : "behind 4 others");
    const events = decision.record?.events.filter(({ reason }) => reason === "EtlJobTaskProgress") ?? [];
    assert.equal(events.length, isRecorded ? 1 : 0);
    for (const { message } of events) assert.match(message, /later/);
  });
}

test("progress is dated by the plugin, or else by the time of the call", () => {
  const own = { occurredAtMs: START_MS + 5, reportedAtMs: START_MS + 7 };
  const dated = after(started(), returned({ phase: "RUNNING", task: own })).job.status.info;
  assert.deepEqual([dated?.occurredAtMs, dated?.reportedAtMs], [START_MS + 5, START_MS + 7]);
  const undated = after(started(), returned({ phase: "RUNNING" })).job.status.info;
  assert.deepEqual([undated?.occurredAtMs, undated?.reportedAtMs], [NOW_MS, NOW_MS]);
});

test("the plugin is called again when it asks to be", () => {
  const { decision } = after(started(), {
    kind: "returned",
    value: { info: { phase: "RUNNING" }, recheckAfterMs: 42 },
  });
  assert.equal(decision.recheckAtMs, NOW_MS + 42);
});
