import assert from "node:assert/strict";
import type { Job } from "../../../src/core/job/job.ts";
import { isTerminal } from "../../../src/core/job/status.ts";
import { LEASE_MS, type World } from "./world.ts";

/** Decisions follow a step by at most this part of the time that passes, so a limit may be over so much earlier. */
const SLEW = 0.1;
/** Decision times of two processes differ by so little. */
const SLACK_MS = 1_500;
const RETENTION_MS = 14 * 24 * 3_600_000;

/** How much of each event a history met. */
export type ClockMet = Record<
  "databaseSteps" | "machineSteps" | "deadlines" | "expired" | "undone" | "succeeded" | "looks",
  number
>;

/** When something of a job was first seen, in true time. */
type Seen = {
  startMs: number | null;
  endMs: number | null;
  readonly admittedMs: Map<number, number>;
  ttlMs: number | null;
};

/** Compares what is recorded with the time that has really passed. */
export class ClockLaws {
  readonly met: ClockMet = {
    ...{ databaseSteps: 0, machineSteps: 0, deadlines: 0, expired: 0, undone: 0, succeeded: 0, looks: 0 },
  };
  readonly #world: World;
  readonly #seen = new Map<string, Seen>();
  /** What the clocks of processes said when they were last looked at. */
  readonly #clocks = new Map<string, { readonly trueMs: number; readonly nowMs: number }>();
  readonly #firstMs: number;
  /** Until a process has renewed, it records times that are behind by its sleep. It may do so for a lease. */
  #sleptMs = 0;
  #unknownMs = 0;

  constructor(world: World) {
    this.#world = world;
    this.#firstMs = world.clock.atMs;
  }

  /** `isTold`: the machine knows afterwards that it slept. */
  slept(ms: number, isTold: boolean): void {
    if (isTold) this.#sleptMs += ms;
    else this.#unknownMs += ms;
  }

  async look(): Promise<void> {
    this.met.looks += 1;
    this.#checkClocks();
    const jobs = await this.#world.jobs();
    for (const job of jobs) this.#checkJob(job);
    this.#checkGone(jobs);
    await this.#checkPruning();
  }

  async checkTheEnd(): Promise<void> {
    assert.deepEqual(await this.#world.store.pools.check(null), { sums: [], orphans: [] });
    await this.#world.planAndCount();
    const filter = { pool: null, project: null, namespace: null, holder: null, grantedBeforeMs: null };
    const held = await this.#world.store.pools.listAllocations({ filter, pageSize: 100, after: null });
    assert.deepEqual(held === "badCursor" ? held : held.allocations, [], "no token is held");
  }

  /** Decision time of a process never goes back, and is where the true time is, but for what it follows of steps. */
  #checkClocks(): void {
    const { atMs: trueMs } = this.#world.clock;
    for (const { name, clock } of [...this.#world.processes(), ...this.#world.apis]) {
      const nowMs = clock.nowMs();
      const before = this.#clocks.get(name);
      if (before !== undefined) assert.ok(nowMs >= before.nowMs, `the clock of ${name} goes back`);
      const passedMs = trueMs - this.#firstMs;
      const wrongMs = nowMs - this.#firstMs - passedMs;
      assert.ok(wrongMs <= SLEW * passedMs + SLACK_MS, `${name} is ${wrongMs} ms ahead after ${passedMs} ms`);
      this.#clocks.set(name, { trueMs, nowMs });
    }
  }

  #checkJob(job: Job): void {
    const { atMs: nowMs } = this.#world.clock;
    const { runPolicy } = job.spec;
    const seen = this.#seen.get(job.uid) ?? { startMs: null, endMs: null, admittedMs: new Map(), ttlMs: null };
    this.#seen.set(job.uid, seen);
    if (job.status.startTimeMs === null) seen.startMs = null;
    else seen.startMs ??= nowMs;
    seen.ttlMs = runPolicy.ttlSecondsAfterFinished === null ? null : runPolicy.ttlSecondsAfterFinished * 1000;
    for (const { number, state } of job.admissions) {
      const admittedMs = seen.admittedMs.get(number) ?? nowMs;
      if (!seen.admittedMs.has(number)) seen.admittedMs.set(number, nowMs);
      if (state !== "undone" || admittedMs < 0) continue;
      seen.admittedMs.set(number, -1);
      this.met.undone += 1;
      const limitMs = runPolicy.schedulingPolicy.scheduleTimeoutSeconds * 1000;
      this.#requirePassed(`${job.name} is undone`, nowMs - admittedMs, limitMs);
    }
    if (!isTerminal(job.status) || seen.endMs !== null) return;
    seen.endMs = nowMs;
    const { failure } = job.status;
    if (failure === null) this.met.succeeded += 1;
    const deadlineMs = (runPolicy.activeDeadlineSeconds ?? 0) * 1000;
    if (failure?.code === "DeadlineExceeded") {
      this.met.deadlines += 1;
      this.#requirePassed(`${job.name} fails by its deadline`, nowMs - (seen.startMs ?? nowMs), deadlineMs);
    } else if (failure?.code === "MaxRuntimeExceeded") {
      const admittedMs = Math.max(...seen.admittedMs.values());
      this.#requirePassed(`${job.name} fails by its run time`, nowMs - admittedMs, runPolicy.maxRuntimeMs ?? 0);
    } else {
      assert.ok(failure === null || failure.kind === "SYSTEM" || failure.container !== null, JSON.stringify(failure));
    }
  }

  /** The time that really passed before a limit was over. */
  #requirePassed(what: string, passedMs: number, limitMs: number): void {
    // Time that a machine did not know of is followed as slowly as a step, from its next renewal on.
    const slackMs = SLACK_MS + Math.min(this.#sleptMs, LEASE_MS) + this.#unknownMs;
    assert.ok(passedMs >= limitMs / (1 + SLEW) - slackMs, `${what} after ${passedMs} ms of ${limitMs} ms`);
  }

  #checkGone(jobs: readonly Job[]): void {
    const there = new Set(jobs.map(({ uid }) => uid));
    for (const [uid, { endMs, ttlMs }] of this.#seen) {
      if (there.has(uid)) continue;
      this.#seen.delete(uid);
      this.met.expired += 1;
      assert.ok(endMs !== null && ttlMs !== null, "only jobs that have ended are deleted, by their time to live");
      this.#requirePassed("a job is deleted", this.#world.clock.atMs - endMs, ttlMs);
    }
  }

  /** Everything is younger than the retention, by the clock of every process. */
  async #checkPruning(): Promise<void> {
    const { watch, access } = this.#world.store;
    await watch.sequence();
    const apis = this.#world.apis;
    const { clock } = apis[this.met.looks % apis.length] ?? assert.fail("there is an api process");
    const nowMs = clock.nowMs();
    const beforeMs = nowMs - RETENTION_MS;
    for (const kind of ["changes", "events"] as const) {
      const { deleted } = await watch.prune(kind, { beforeMs, nowMs, after: 0, limit: 100 });
      assert.ok(deleted === 0, `${deleted} ${kind} are pruned, which are not old`);
    }
    assert.equal(await access.pruneAudit(beforeMs), 0, "entries of the audit log are pruned, which are not old");
  }
}
