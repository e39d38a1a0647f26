import assert from "node:assert/strict";
import { test } from "node:test";
import { type KeptReason, keyedReason } from "../../../../src/core/plan/explain/kept-reason.ts";
import { RefusalMessages } from "../../../../src/core/plan/explain/refusal-messages.ts";
import type { Change } from "../../../../src/core/plan/facts/changes.ts";
import { FleetState } from "../../../../src/core/plan/fleet-state.ts";
import { type PlanGang, takesFromOthers } from "../../../../src/core/plan/model/plan-gang.ts";
import type { Refusal } from "../../../../src/core/plan/model/plan-types.ts";
import { causeKey, type WaitReason } from "../../../../src/core/plan/queues/refusals.ts";
import type { Reservation } from "../../../../src/core/plan/usage/quota-state.ts";
import { MODELS } from "../random-world.ts";
import { Truth } from "../truth.ts";

const WORLDS = 300;
const CHANGES = 12;
const QUOTA = 12;
const UNBOUNDED = { admissionsMax: Number.POSITIVE_INFINITY };
const NO_OTHERS = { callers: [], admissions: [] };

/** As a store gives it back. */
function stored(cause: WaitReason): KeptReason {
  return JSON.parse(JSON.stringify(keyedReason(cause).cause)) as KeptReason;
}

/** Tells a state of all gangs everything, and one of holders what a store tells that. */
class Followers {
  readonly all = new FleetState();
  readonly holders = new FleetState();
  readonly gangs = new Map<string, PlanGang>();

  tell(changes: readonly Change[]): void {
    for (const change of changes) {
      this.all.apply(change);
      if (change.kind !== "gang") {
        this.holders.apply(change);
        continue;
      }
      const { gang, uid } = change;
      if (gang === null) this.gangs.delete(uid);
      else this.gangs.set(uid, gang);
      const isKnown = this.holders.parts.queues.gangs.has(uid);
      const isHeld = gang !== null && takesFromOthers(gang);
      if (isHeld || isKnown) this.holders.apply({ ...change, gang: isHeld ? gang : null });
    }
  }
}

/** What is kept for the gang in waiting lines, from the kept causes alone. */
function reservationOf(causes: ReadonlyMap<string, KeptReason>, gangs: Followers["gangs"]): Reservation | null {
  for (const [uid, cause] of causes) {
    const gang = gangs.get(uid);
    if (cause.kind !== "lacks" || cause.inLine.length === 0 || gang?.waits !== true) continue;
    const amounts = new Map(cause.inLine.map(({ pool, amount }) => [pool, amount]));
    return { jobUid: uid, holder: `${gang.namespace}/${gang.name}`, priority: gang.priority, amounts };
  }
  return null;
}

/** The same world, but pools alone limit its gangs, and others hold most of them: so a gang stands in their lines. */
function limitedByPools(changes: readonly Change[]): readonly Change[] {
  const held = MODELS.map((model): Change => {
    return { kind: "sum", scope: { kind: "pool", pool: `gpu/${model}` }, version: 1, used: QUOTA - 2 };
  });
  return [...changes.map(withoutQueueLimits), ...held];
}

function withoutQueueLimits(change: Change): Change {
  if (change.kind === "pool" && change.pool !== null) {
    return { ...change, pool: { ...change.pool, quota: QUOTA, projectDefault: null, namespaceDefault: null } };
  }
  if (change.kind !== "queue" || change.queue === null) return change;
  const quotas = change.queue.quotas.map(({ flavor, resource }) => ({ flavor, resource, nominal: 100 }));
  return { ...change, queue: { ...change.queue, parent: null, quotas } };
}

const met = { all: 0, moved: 0, changed: 0, inLine: 0, reserved: 0, behindHead: 0 };

test("words from a kept cause, on a state of holders, are those that the planner would say for the cause now", () => {
  for (let seed = 1; seed <= WORLDS; seed++) {
    const truth = new Truth(seed, { alike: seed % 2 === 0 });
    const followers = new Followers();
    const { all, holders, gangs } = followers;
    followers.tell(seed % 3 === 0 ? limitedByPools(truth.load()) : truth.load());
    const causes = new Map<string, WaitReason>();
    const first = new Map<string, string>();
    all.round(truth.nowMs, UNBOUNDED, ({ refused, admissions }, { fleet: known, pendingUse }) => {
      const messages = new RefusalMessages(known, { callers: [], admissions, pendingUse });
      for (const { gang, cause } of refused) {
        causes.set(gang.uid, cause);
        first.set(gang.uid, messages.refusalOf(gang, cause).message);
      }
    });
    const kept = new Map([...causes].map(([uid, cause]) => [uid, stored(cause)]));
    for (let at = 0; at < CHANGES; at++) followers.tell(truth.change());
    const { reserved: known } = all.parts.quota;
    const [planner, reader] = [all, holders].map((state) => {
      state.parts.sync(truth.nowMs);
      return new RefusalMessages(state.parts, NO_OTHERS);
    });
    assert.ok(planner && reader);
    const line = reservationOf(kept, gangs);
    // A gang that has gone leaves the line: the planner finds out in its next round.
    all.parts.quota.reserve(line === null ? null : known);
    if (line !== null) assert.deepEqual({ ...line, priority: 0 }, { ...known, priority: 0 }, `seed ${seed}`);
    if (line !== null && known !== null) all.parts.quota.reserve({ ...known, priority: line.priority });
    holders.parts.quota.reserve(line);
    for (const [uid, cause] of causes) {
      const gang = gangs.get(uid);
      if (gang?.waits !== true) continue;
      const said: Refusal = reader.refusalOf(gang, kept.get(uid) as KeptReason);
      const expected: Refusal = planner.refusalOf(gang, cause);
      assert.deepEqual(said, expected, `seed ${seed}, ${gang.name}`);
      met.all += 1;
      if (said.message !== first.get(uid)) met.moved += 1;
      if (said.message.includes("this has changed")) met.changed += 1;
      if (said.message.includes("in the waiting line of")) met.inLine += 1;
      if (said.quotas.some(({ reserved }) => reserved > 0)) met.reserved += 1;
      if (cause.kind === "behindHead") met.behindHead += 1;
    }
  }
});

test("the kept causes met numbers that moved, causes that ended, waiting lines, and heads of strict queues", () => {
  for (const [what, count] of Object.entries(met)) assert.ok(count > WORLDS / 20, `${what}: ${JSON.stringify(met)}`);
});

test("a kept cause has no number that moves, and the key of its cause", () => {
  for (let seed = 1; seed <= 50; seed++) {
    const truth = new Truth(seed, { alike: false });
    const state = new FleetState();
    for (const change of truth.load()) state.apply(change);
    const { refused } = state.round(truth.nowMs, UNBOUNDED);
    for (const { cause } of refused) {
      assert.equal(keyedReason(cause).causeKey, causeKey(cause));
      assert.doesNotMatch(JSON.stringify(stored(cause)), /"(need|used|limit|reserved|level|ask)":/);
    }
  }
});
