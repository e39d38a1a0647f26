import assert from "node:assert/strict";
import { test } from "node:test";
import type { PlanGang } from "../../../src/core/plan/plan-gang.ts";
import type { Change } from "../../../src/core/plan/state/changes.ts";
import { FleetState } from "../../../src/core/plan/state/fleet-state.ts";
import { causeOf } from "../../../src/core/plan/state/run-round.ts";
import { Truth } from "./truth.ts";

/** `npm run plan-histories -- 10000` runs more. */
const HISTORIES = Number(process.env["GANGWAY_PLAN_HISTORIES"] ?? 300);
const FIRST = Number(process.env["GANGWAY_PLAN_SEED"] ?? 1);
const STEPS = 25;
const UNBOUNDED = { admissionsMax: Number.POSITIVE_INFINITY };

function loaded(truth: Truth): FleetState {
  const state = new FleetState();
  for (const change of truth.load()) state.apply(change);
  return state;
}

/** A planner's state, and the changes that are on their way to it. */
class Follower {
  readonly #truth: Truth;
  state: FleetState;
  readonly #lost: Change[] = [];
  readonly #told: Change[] = [];
  readonly met = { gaps: 0, stale: 0, takeOvers: 0 };

  constructor(truth: Truth) {
    this.#truth = truth;
    this.state = loaded(truth);
  }

  /** Tells the state changes: some are lost for now, some come twice, some late. */
  tell(changes: readonly Change[]): void {
    const { draw } = this.#truth;
    for (const change of changes) {
      if (draw.chance(0.15)) this.#lost.push(change);
      else this.#apply(change);
      if (this.#told.length > 0 && draw.chance(0.1)) this.#apply(draw.of(this.#told));
    }
  }

  /** What a poll of the store finds: everything that was lost. */
  catchUp(): void {
    for (const change of this.#lost.splice(0)) this.#apply(change);
    for (const change of this.#truth.load()) if (change.kind === "capacity") this.#apply(change);
  }

  takeOver(): void {
    this.met.takeOvers += 1;
    // It reads the log from the head that it noted: nothing older reaches it.
    this.#lost.length = 0;
    this.#told.length = 0;
    this.state = loaded(this.#truth);
  }

  #apply(change: Change): void {
    this.#told.push(change);
    const outcome = this.state.apply(change);
    if (outcome === "stale") this.met.stale += 1;
    if (outcome !== "gap" || change.kind !== "capacity") return;
    this.met.gaps += 1;
    this.state.apply(this.#truth.fullList(change.cluster));
  }
}

/** The decisions of a round, and why each gang that is not admitted waits. */
function roundOf(state: FleetState, nowMs: number) {
  const causes: Record<string, string> = {};
  const made = state.round(nowMs, UNBOUNDED, (_, parts) => {
    for (const [uid, entry] of [...parts.lines.entries].sort(([a], [b]) => (a < b ? -1 : 1))) {
      const isWaiting = entry.lane !== null || entry.line.held.has(entry);
      const cause = isWaiting ? causeOf(parts, entry, nowMs) : null;
      if (cause !== null) causes[uid] = cause.kind === "behindHead" ? `behind ${cause.head.uid}` : cause.kind;
    }
  });
  return { ...made, causes };
}

const met = { full: 0, evictions: 0, admissions: 0, inLine: 0, gaps: 0, stale: 0, takeOvers: 0, asleep: 0 };

function runHistory(seed: number): void {
  const truth = new Truth(seed, { alike: seed % 2 === 0 });
  const { draw } = truth;
  const follower = new Follower(truth);
  for (let step = 0; step < STEPS; step++) {
    const name = `seed ${seed}, step ${step}`;
    for (let at = draw.upTo(4); at >= 0; at--) follower.tell(truth.change());
    // Rounds on what is known so far.
    if (draw.chance(0.3)) follower.state.round(truth.nowMs, { admissionsMax: 1 + draw.upTo(3) });
    if (draw.chance(0.3)) undoSome(follower.state, truth, seed * 1000 + step, name);
    if (draw.chance(0.04)) follower.takeOver();
    follower.catchUp();
    const cold = loaded(truth);
    assert.equal(follower.state.hash(), cold.hash(), name);
    const expected = roundOf(cold, truth.nowMs);
    const made = roundOf(follower.state, truth.nowMs);
    assert.deepEqual(made.admissions, expected.admissions, name);
    assert.deepEqual(made.inLine, expected.inLine, name);
    assert.deepEqual(made.evictions, expected.evictions, name);
    checkStops(truth, made, name);
    checkRunning(truth, made, name);
    assert.equal(made.replanAtMs, expected.replanAtMs, name);
    assert.deepEqual(made.causes, expected.causes, name);
    assert.equal(follower.state.hash(), cold.hash(), name);
    met.admissions += made.admissions.length;
    if (made.inLine !== null) met.inLine += 1;
    met.evictions += made.evictions.length;
    for (const planned of made.admissions) if (draw.chance(0.7)) follower.tell(truth.record(planned));
    for (const eviction of made.evictions) if (draw.chance(0.7)) follower.tell(truth.evict(eviction));
    truth.nowMs += draw.upTo(1);
  }
  met.gaps += follower.met.gaps;
  met.stale += follower.met.stale;
  met.takeOvers += follower.met.takeOvers;
}

/**
 * In a queue that is stopped, itself or by a queue above it, no gang is admitted or grows. If one of those drains,
 * exactly the running gangs that stay are evicted. Every gang that waits there says so.
 */
function checkStops(truth: Truth, made: ReturnType<typeof roundOf>, name: string): void {
  const changes = truth.load();
  const queues = new Map(changes.flatMap((one) => (one.kind === "queue" ? [[one.name, one.queue] as const] : [])));
  const policiesOf = (queue: string): readonly string[] => {
    const found = queues.get(queue) ?? null;
    if (found === null) return [];
    return [found.stopPolicy ?? "NONE", ...(found.parent === null ? [] : policiesOf(found.parent))];
  };
  const gangs = changes.flatMap((one) => (one.kind === "gang" && one.gang !== null ? [one.gang] : []));
  const stopped = gangs.filter(({ queue }) => policiesOf(queue).some((policy) => policy !== "NONE"));
  const admitted = new Set(made.admissions.map(({ jobUid }) => jobUid));
  assert.deepEqual(
    stopped.filter(({ uid }) => admitted.has(uid)),
    [],
    name,
  );
  const waiting = stopped.filter(({ waits, admissions }) => waits && admissions.every(({ state }) => state !== "live"));
  for (const { uid } of waiting) assert.equal(made.causes[uid], "queueStopped", name);
  const evicted = gangs.filter(({ queue, admissions, ends, suspended, evicted: requested }) => {
    const isRunning = admissions.some(({ state }) => state === "live") && !ends && !suspended && requested !== true;
    return isRunning && policiesOf(queue).includes("HOLD_AND_DRAIN");
  });
  assert.deepEqual(made.evictions.map(({ jobUid }) => jobUid).sort(), evicted.map(({ uid }) => uid).sort(), name);
}

/** No queue gets more jobs than it may run, those below it counted. Gangs wait for that only if a queue is full. */
function checkRunning(truth: Truth, made: ReturnType<typeof roundOf>, name: string): void {
  const changes = truth.load();
  const queues = new Map(changes.flatMap((one) => (one.kind === "queue" ? [[one.name, one.queue] as const] : [])));
  const pathOf = (queue: string | null): readonly string[] => {
    const found = queues.get(queue ?? "");
    return found === undefined || found === null ? [] : [found.name, ...pathOf(found.parent)];
  };
  const gangs = new Map(
    changes.flatMap((one) => (one.kind === "gang" && one.gang ? [[one.uid, one.gang] as const] : [])),
  );
  const running = [...gangs.values()].filter(({ admissions }) => admissions.some(({ state }) => state === "live"));
  const added = made.admissions.flatMap(({ kind, jobUid }) => (kind === "admit" ? (gangs.get(jobUid) ?? []) : []));
  const inQueue = (of: readonly PlanGang[], queue: string) =>
    of.filter((gang) => pathOf(gang.queue).includes(queue)).length;
  const isFull = (queue: string) => {
    const limit = queues.get(queue)?.maxRunningJobs ?? Number.POSITIVE_INFINITY;
    return inQueue(running, queue) + inQueue(added, queue) + (made.inLine === null ? 0 : 1) >= limit;
  };
  for (const [queue, of] of queues) {
    const limit = of?.maxRunningJobs ?? Number.POSITIVE_INFINITY;
    const count = inQueue(running, queue) + inQueue(added, queue);
    assert.ok(inQueue(added, queue) === 0 || count <= limit, `${name}: ${queue} runs ${count} of ${limit}`);
  }
  for (const [uid, cause] of Object.entries(made.causes)) {
    if (cause !== "queueFull") continue;
    met.full += 1;
    assert.ok(pathOf(gangs.get(uid)?.queue ?? "").some(isFull), name);
  }
}

/** Applies the changes of another history, and takes them back. */
function undoSome(state: FleetState, truth: Truth, seed: number, name: string): void {
  const before = state.hash();
  const mark = state.mark();
  const other = new Truth(seed, { alike: false });
  for (const change of other.load()) state.apply({ ...change, version: 1_000_000 } as Change);
  const inner = state.mark();
  for (let at = 0; at < 5; at++) for (const change of other.change()) state.apply(change);
  state.round(truth.nowMs, UNBOUNDED);
  state.rollback(inner);
  state.round(truth.nowMs, UNBOUNDED);
  state.rollback(mark);
  assert.equal(state.hash(), before, name);
}

test("a state that follows changes decides as one that was just loaded", () => {
  for (let seed = FIRST; seed < FIRST + HISTORIES; seed++) runHistory(seed);
});

test("the histories met lost and late changes, gaps, take-overs and gangs in a waiting line", () => {
  assert.ok(met.admissions > HISTORIES, `${met.admissions} admissions`);
  assert.ok(met.full > HISTORIES / 10, `${met.full} gangs of full queues`);
  assert.ok(met.evictions > HISTORIES / 10, `${met.evictions} evictions`);
  assert.ok(met.gaps > HISTORIES / 10 && met.stale > HISTORIES / 10, JSON.stringify(met));
  assert.ok(met.inLine > HISTORIES / 10 && met.takeOvers > HISTORIES / 10, JSON.stringify(met));
});
