import assert from "node:assert/strict";
import { test } from "node:test";
import { isByRole } from "../../../src/core/job/flavor-labels.ts";
import type { TenantName } from "../../../src/core/job/tenant-limits.ts";
import type { Change } from "../../../src/core/plan/facts/changes.ts";
import { FleetState } from "../../../src/core/plan/fleet-state.ts";
import type { PlanGang } from "../../../src/core/plan/model/plan-gang.ts";
import { compareGangs } from "../../../src/core/plan/queues/order.ts";
import type { WaitReason } from "../../../src/core/plan/queues/refusals.ts";
import { reasonOf } from "../../../src/core/plan/round/reasons.ts";
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
  const made = state.round(nowMs, UNBOUNDED, (_, { fleet }) => {
    for (const [uid, gang] of [...fleet.queues.gangs].sort(([a], [b]) => (a < b ? -1 : 1))) {
      const isWaiting = gang.gangClass !== null || gang.gangQueue.held.has(gang);
      const cause = isWaiting ? reasonOf(fleet, gang, nowMs) : null;
      if (cause !== null) causes[uid] = cause.kind === "behindHead" ? `behind ${cause.head.uid}` : causeName(cause);
    }
  });
  return { ...made, causes };
}

function causeName(cause: WaitReason): string {
  const reservedFor = cause.kind === "lacks" ? cause.refusal.keptFor : undefined;
  return reservedFor === undefined ? cause.kind : `kept for ${reservedFor.uid}`;
}

const met = {
  spared: 0,
  aged: 0,
  reservations: 0,
  moved: 0,
  takenBack: 0,
  keptFor: 0,
  full: 0,
  tenants: 0,
  preemptions: 0,
  withdrawn: 0,
  evictions: 0,
  admissions: 0,
  inLine: 0,
  gaps: 0,
  stale: 0,
  takeOvers: 0,
  asleep: 0,
  returned: 0,
  byRole: 0,
  left: 0,
};

function runHistory(seed: number): void {
  const truth = new Truth(seed, { alike: seed % 2 === 0, ends: seed % 3 === 0, types: seed % 4 === 2 });
  const { draw } = truth;
  const follower = new Follower(truth);
  for (let step = 0; step < STEPS; step++) {
    const name = `seed ${seed}, step ${step}`;
    // In some steps only time passes.
    const changes = draw.chance(0.1) ? 0 : 1 + draw.upTo(4);
    for (let at = 0; at < changes; at++) follower.tell(truth.change());
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
    assert.deepEqual(made.preemptions, expected.preemptions, name);
    assert.deepEqual(made.withdrawn, expected.withdrawn, name);
    checkStops(truth, made, name);
    checkRunning(truth, made, name);
    met.aged += passed(truth, made.causes);
    assert.equal(made.replanAtMs, expected.replanAtMs, name);
    assert.deepEqual(made.causes, expected.causes, name);
    assert.equal(follower.state.hash(), cold.hash(), name);
    met.admissions += made.admissions.length;
    met.byRole += made.admissions.filter(({ flavors }) => isByRole(flavors)).length;
    if (made.inLine !== null) met.inLine += 1;
    met.evictions += made.evictions.length;
    for (const planned of made.admissions) if (draw.chance(0.7)) follower.tell(truth.record(planned));
    met.preemptions += made.preemptions.filter(({ reservation }) => reservation === undefined).length;
    met.reservations += made.preemptions.filter(({ reservation }) => reservation?.sinceMs === null).length;
    met.moved += made.preemptions.filter(({ reservation }) => typeof reservation?.sinceMs === "number").length;
    met.takenBack += made.preemptions.filter((one) => one.reservation !== undefined && one.victims.length > 0).length;
    met.keptFor += Object.values(made.causes).filter((cause) => cause.startsWith("kept for")).length;
    met.withdrawn += made.withdrawn.length;
    for (const preemption of made.preemptions) if (draw.chance(0.7)) follower.tell(truth.preempt(preemption));
    for (const uid of made.withdrawn) if (draw.chance(0.7)) follower.tell(truth.withdraw(uid));
    for (const eviction of made.evictions) if (draw.chance(0.7)) follower.tell(truth.evict(eviction));
    truth.nowMs += draw.upTo(1);
  }
  met.returned += truth.returned;
  met.left += truth.moved;
  met.gaps += follower.met.gaps;
  met.stale += follower.met.stale;
  met.takeOvers += follower.met.takeOvers;
}

/**
 * In a queue that is stopped or frozen, itself or by a queue above it, no gang is admitted or grows. If one of those
 * drains, exactly the running gangs that stay are evicted. Every gang that waits there says so. Nobody gets anything of
 * what is frozen, and nobody gives way who has some of it.
 */
function checkStops(truth: Truth, made: ReturnType<typeof roundOf>, name: string): void {
  const changes = truth.load();
  const queues = new Map(changes.flatMap((one) => (one.kind === "queue" ? [[one.name, one.queue] as const] : [])));
  const policiesOf = (queue: string): readonly string[] => {
    const found = queues.get(queue) ?? null;
    if (found === null) return [];
    const own = [found.stopPolicy ?? "NONE", found.freeze ? "FROZEN" : "NONE"];
    return [...own, ...(found.parent === null ? [] : policiesOf(found.parent))];
  };
  const frozen = new Set(changes.flatMap((one) => (one.kind === "pool" && one.pool?.freeze ? [one.name] : [])));
  const isFrozen = ({ queue, admissions }: PlanGang) => {
    const live = admissions.find(({ state }) => state === "live");
    return policiesOf(queue).includes("FROZEN") || Object.values(live?.flavors ?? {}).some((pool) => frozen.has(pool));
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
  const drained = evicted.filter((gang) => !isFrozen(gang));
  assert.deepEqual(made.evictions.map(({ jobUid }) => jobUid).sort(), drained.map(({ uid }) => uid).sort(), name);
  const planned = [...made.admissions, ...made.preemptions.map((one) => one.planned)];
  const taken = planned.flatMap(({ allocations }) => allocations).filter(({ pool }) => frozen.has(pool));
  assert.ok(!taken.some(({ amount }) => amount > 0), name);
  const byUid = new Map(gangs.map((gang) => [gang.uid, gang]));
  for (const { jobUid } of made.preemptions.flatMap(({ victims }) => victims)) {
    const victim = byUid.get(jobUid);
    assert.ok(victim && !isFrozen(victim), `${name}: ${jobUid} gives way and is frozen`);
  }
  met.spared += evicted.length - drained.length;
}

/** How many gangs stand behind one that comes after them by its own priority and age. */
function passed(truth: Truth, causes: Readonly<Record<string, string>>): number {
  const gangs = new Map(
    truth.load().flatMap((one) => (one.kind === "gang" && one.gang ? [[one.uid, one.gang] as const] : [])),
  );
  const behind = Object.entries(causes).filter(([uid, cause]) => {
    const [gang, head] = [gangs.get(uid), gangs.get(cause.split("behind ")[1] ?? "")];
    return gang !== undefined && head !== undefined && compareGangs({ facts: gang }, { facts: head }) < 0;
  });
  return behind.length;
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
  // Gangs that leave their clusters run already.
  const entering = made.admissions.filter(({ kind, movesFrom }) => kind === "admit" && movesFrom === undefined);
  const added = entering.flatMap(({ jobUid }) => gangs.get(jobUid) ?? []);
  // Gangs for which others give way take their places before they run.
  const nominated = new Set(made.preemptions.map(({ planned }) => planned.jobUid));
  const nominees = [...gangs.values()].filter(({ uid, waits, nomination }) => {
    return nominated.has(uid) || (waits && nomination !== undefined && !made.withdrawn.includes(uid));
  });
  const inQueue = (of: readonly PlanGang[], queue: string) =>
    of.filter((gang) => pathOf(gang.queue).includes(queue)).length;
  const isFull = (queue: string) => {
    const limit = queues.get(queue)?.maxRunningJobs ?? Number.POSITIVE_INFINITY;
    const coming = inQueue(added, queue) + inQueue(nominees, queue) + (made.inLine === null ? 0 : 1);
    return inQueue(running, queue) + coming >= limit;
  };
  for (const [queue, of] of queues) {
    const limit = of?.maxRunningJobs ?? Number.POSITIVE_INFINITY;
    const count = inQueue(running, queue) + inQueue(added, queue);
    assert.ok(inQueue(added, queue) === 0 || count <= limit, `${name}: ${queue} runs ${count} of ${limit}`);
  }
  checkTenants({ changes, running, added, nominees, inLine: made.inLine !== null, causes: made.causes }, gangs, name);
  for (const [uid, cause] of Object.entries(made.causes)) {
    if (cause !== "queueFull") continue;
    met.full += 1;
    assert.ok(pathOf(gangs.get(uid)?.queue ?? "").some(isFull), name);
  }
}

/** The same for namespaces and projects. */
function checkTenants(
  of: {
    readonly changes: readonly Change[];
    readonly running: readonly PlanGang[];
    readonly added: readonly PlanGang[];
    readonly nominees: readonly PlanGang[];
    readonly inLine: boolean;
    readonly causes: Readonly<Record<string, string>>;
  },
  gangs: ReadonlyMap<string, PlanGang>,
  name: string,
): void {
  const limits = of.changes.flatMap((one) => (one.kind === "tenant" && one.tenant !== null ? [one.tenant] : []));
  const within = (gang: PlanGang | undefined, { kind, name: tenant }: TenantName) =>
    gang !== undefined && (kind === "namespace" ? gang.namespace : gang.project) === tenant;
  const countIn = (all: readonly PlanGang[], tenant: TenantName) => all.filter((gang) => within(gang, tenant)).length;
  for (const tenant of limits) {
    const count = countIn(of.running, tenant) + countIn(of.added, tenant);
    assert.ok(countIn(of.added, tenant) === 0 || count <= tenant.maxRunningJobs, `${name}: ${tenant.name} ${count}`);
  }
  for (const [uid, cause] of Object.entries(of.causes)) {
    if (cause !== "tenantFull") continue;
    met.tenants += 1;
    const full = limits.filter((tenant) => {
      const coming = countIn(of.added, tenant) + countIn(of.nominees, tenant) + (of.inLine ? 1 : 0);
      return countIn(of.running, tenant) + coming >= tenant.maxRunningJobs;
    });
    assert.ok(
      full.some((tenant) => within(gangs.get(uid), tenant)),
      name,
    );
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

/** So many histories meet every event. */
const skip = HISTORIES < 100 && `it needs 100 histories, and ${HISTORIES} ran`;

test("the histories met lost and late changes, gaps, take-overs and gangs in a waiting line", { skip }, () => {
  assert.ok(met.admissions > HISTORIES, `${met.admissions} admissions`);
  assert.ok(met.aged > HISTORIES / 10, `${met.aged} gangs that older ones have passed`);
  assert.ok(met.full > HISTORIES / 10, `${met.full} gangs of full queues`);
  assert.ok(met.spared > HISTORIES / 10, `${met.spared} gangs that a freeze keeps`);
  assert.ok(met.tenants > HISTORIES / 10, `${met.tenants} gangs of full namespaces and projects`);
  assert.ok(met.evictions > HISTORIES / 40, `${met.evictions} evictions`);
  assert.ok(met.preemptions > 0 && met.withdrawn > HISTORIES / 10, JSON.stringify(met));
  assert.ok(met.gaps > HISTORIES / 10 && met.stale > HISTORIES / 10, JSON.stringify(met));
  assert.ok(met.reservations > 0, JSON.stringify(met));
  assert.ok(met.byRole > HISTORIES / 20 && met.left > HISTORIES / 20, JSON.stringify(met));
  assert.ok(met.inLine > HISTORIES / 10 && met.takeOvers > HISTORIES / 10, JSON.stringify(met));
});
