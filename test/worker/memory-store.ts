import assert from "node:assert/strict";
import { BUCKETS, type BucketLease, bucketOf } from "../../src/core/job/bucket.ts";
import type { JobEvent } from "../../src/core/job/event.ts";
import type { Job } from "../../src/core/job/job.ts";
import { isTerminal } from "../../src/core/job/status.ts";
import type { Decision, RecordOutcome } from "../../src/core/reconcile/decision.ts";
import type { Clock } from "../../src/runtime/clock.ts";
import type { WorkerStore } from "../../src/worker/ports.ts";
import { admit, recorded } from "../core/reconcile/world.ts";

const ALL = Array.from({ length: BUCKETS }, (_, bucket) => bucket);

type Row = { job: Job; recheckAtMs: number | null };

/** A store in memory with the guards of the worker's port: versions, lease epochs, one transaction at a time. */
export class MemoryStore {
  readonly rows = new Map<string, Row>();
  readonly events: (JobEvent & { readonly jobUid: string })[] = [];
  /** How often a record or a time to look again was written, and how often events were appended. */
  writes = 0;
  notes = 0;
  /** How often a job was loaded: once for each step. */
  loads = 0;
  /** Admissions whose tokens were released, as `job/number`. A second release is a defect. */
  readonly released = new Set<string>();
  readonly #clock: Clock;
  /** The worker that holds all buckets. Empty: others may take them. */
  #holder = "";
  #epoch = 0;
  #breaking = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Forgets everything. A worker that held buckets before can no longer record. */
  clear(): void {
    this.rows.clear();
    this.events.length = 0;
    this.released.clear();
    this.writes = 0;
    this.notes = 0;
    this.#holder = "";
    this.#epoch += 1;
    this.#breaking = 0;
  }

  add(job: Job): void {
    this.rows.set(job.uid, { job, recheckAtMs: null });
  }

  job(uid: string): Job | null {
    return this.rows.get(uid)?.job ?? null;
  }

  /** Changes a job as the planner or a caller of the API does. */
  change(uid: string, how: (job: Job) => Job): void {
    const row = this.rows.get(uid);
    assert.ok(row);
    row.job = { ...how(row.job), version: row.job.version + 1 };
    row.recheckAtMs = this.#clock.nowMs();
  }

  admit(uid: string, cluster: string | null): void {
    const number = (this.job(uid)?.admissions.at(-1)?.number ?? 0) + 1;
    this.change(uid, (job) => admit(job, { cluster, nowMs: this.#clock.nowMs(), number }));
  }

  cancel(uid: string): void {
    this.change(uid, (job) => ({ ...job, cancel: { reason: "asked to", atMs: this.#clock.nowMs() } }));
  }

  /** The next calls throw, as when the database is away. */
  breakDown(calls: number): void {
    this.#breaking = calls;
  }

  /** Gives all buckets to this worker, whatever worker held them. */
  take(worker: string): readonly BucketLease[] {
    this.#holder = worker;
    this.#epoch += 1;
    return ALL.map((bucket) => ({ bucket, epoch: this.#epoch }));
  }

  /** Frees the buckets of that worker, or of their present holder. */
  free(worker = this.#holder): void {
    if (this.#holder === worker) this.#holder = "";
  }

  port(): WorkerStore {
    return {
      bucketsOf: async (worker) => {
        this.#maybeBreak();
        const mine = this.#holder === worker ? ALL.map((bucket) => ({ bucket, epoch: this.#epoch })) : [];
        return { workers: [worker], mine, free: this.#holder === "" ? ALL : [] };
      },
      takeBuckets: async (worker) => {
        this.#maybeBreak();
        return this.take(worker);
      },
      giveBuckets: async () => assert.fail("no other worker exists"),
      openJobs: async () => {
        this.#maybeBreak();
        return [...this.rows]
          .filter(([, { job }]) => job.admissions.some(({ goneMs }) => goneMs === null))
          .map(([uid]) => uid);
      },
      dueJobs: async (_buckets, nowMs, limit) => {
        this.#maybeBreak();
        const due = [...this.rows].filter(([, { recheckAtMs }]) => recheckAtMs !== null && recheckAtMs <= nowMs);
        return due.slice(0, limit).map(([uid]) => uid);
      },
      loadJob: async (uid) => {
        this.#maybeBreak();
        this.loads += 1;
        const job = this.job(uid);
        return job === null ? null : { job, bucket: bucketOf(uid), placement: null };
      },
      loadBareJob: async () => assert.fail("no job is suspected"),
      findAlike: async ({ uid }) => [...this.rows.values()].flatMap(({ job }) => (job.uid === uid ? [] : [job])),
      record: async (job, decision, lease) => {
        this.#maybeBreak();
        return this.#record(job, decision, lease);
      },
      recheckAt: async (uid, atMs, lease, version) => {
        this.#maybeBreak();
        const row = this.rows.get(uid);
        if (lease.epoch !== this.#epoch || row?.job.version !== version || row.recheckAtMs === atMs) return;
        this.writes += 1;
        row.recheckAtMs = atMs;
      },
      note: async (job, events) => {
        this.#maybeBreak();
        this.notes += 1;
        for (const event of events) this.events.push({ ...event, jobUid: job.uid });
      },
    };
  }

  #record(job: Job, decision: Decision, lease: BucketLease): RecordOutcome {
    const row = this.rows.get(job.uid);
    if (lease.epoch !== this.#epoch) return "leaseLost";
    if (row === undefined || row.job.version !== job.version) return "stale";
    this.writes += 1;
    if (decision.forget) {
      this.rows.delete(job.uid);
      return "recorded";
    }
    for (const admission of decision.record?.admissions ?? []) {
      const before = row.job.admissions.find(({ number }) => number === admission.number);
      if (admission.tokensReleasedMs === null || before?.tokensReleasedMs !== null) continue;
      const name = `${job.uid}/${admission.number}`;
      assert.ok(!this.released.has(name), `tokens of ${name} were released twice`);
      this.released.add(name);
    }
    const next = recorded(row.job, decision);
    if (isTerminal(row.job.status)) assert.equal(next.status.phase, row.job.status.phase, "a job ends once");
    this.rows.set(job.uid, { job: next, recheckAtMs: decision.recheckAtMs });
    for (const event of decision.record?.events ?? []) this.events.push({ ...event, jobUid: job.uid });
    return "recorded";
  }

  #maybeBreak(): void {
    if (this.#breaking === 0) return;
    this.#breaking -= 1;
    throw new Error("the database is away");
  }
}
