import assert from "node:assert/strict";
import { test } from "node:test";
import { RefusalMessages } from "../../../../src/core/plan/explain/refusal-messages.ts";
import { FleetState } from "../../../../src/core/plan/fleet-state.ts";
import type { Refusal } from "../../../../src/core/plan/model/plan-types.ts";
import type { RefusedGang } from "../../../../src/core/plan/queues/refusals.ts";
import { Truth } from "../truth.ts";

const WORLDS = 200;
const CHANGES = 12;
const UNBOUNDED = { admissionsMax: Number.POSITIVE_INFINITY };
const NO_OTHERS = { callers: [], admissions: [] };

type Said = { readonly refused: readonly RefusedGang[]; readonly refusals: readonly Refusal[] };

/** The causes that a round finds, and their words at its end. */
function roundOf(state: FleetState, nowMs: number): Said {
  let refusals: readonly Refusal[] = [];
  const { refused } = state.round(nowMs, UNBOUNDED, (made, { fleet: known, pendingUse }) => {
    const messages = new RefusalMessages(known, { callers: [], admissions: made.admissions, pendingUse });
    refusals = made.refused.map(({ gang, cause }) => messages.refusalOf(gang, cause));
  });
  return { refused, refusals };
}

function check({ clusters, message, reason }: Refusal, name: string): void {
  assert.ok(message.length > 0, name);
  assert.doesNotMatch(message, /undefined|NaN|null|Infinity/, name);
  if (reason === "NoCapacity")
    assert.ok(
      clusters.some((one) => one.reason === "NoCapacity"),
      name,
    );
  for (const { need, have, blocked, reason: why } of clusters) {
    assert.ok(have <= need, `${name}: ${have} of ${need} fit`);
    if (blocked !== null) assert.ok(why === "NoCapacity" || why === "TooLarge" || why === "NoSuchFlavor", name);
  }
}

const met = { all: 0, changed: 0, fits: 0, gone: 0, moved: 0 };

test("an old cause keeps its reason on a state that has moved, which has the numbers", () => {
  for (let seed = 1; seed <= WORLDS; seed++) {
    const truth = new Truth(seed, { alike: seed % 2 === 0 });
    const state = new FleetState();
    for (const change of truth.load()) state.apply(change);
    const { refused, refusals } = roundOf(state, truth.nowMs);
    // As a store gives it back.
    const stored = JSON.parse(JSON.stringify(refused)) as readonly RefusedGang[];
    for (let at = 0; at < CHANGES; at++) for (const change of truth.change()) state.apply(change);
    if (seed % 3 === 0) state.apply({ kind: "cluster", name: "east", version: 1000, facts: null });
    state.round(truth.nowMs, { admissionsMax: 0 });
    const messages = new RefusalMessages(state.parts, NO_OTHERS);
    for (const [at, { gang, cause }] of stored.entries()) {
      const [before, after] = [refusals[at] as Refusal, messages.refusalOf(gang, cause)];
      check(before, `seed ${seed}, before`);
      check(after, `seed ${seed}, after`);
      assert.equal(after.reason, before.reason, `seed ${seed}`);
      assert.equal(after.clusters.length, before.clusters.length, `seed ${seed}`);
      met.all += 1;
      if (after.message !== before.message) met.changed += 1;
      if (after.message.includes("not registered any more")) met.gone += 1;
      if (after.clusters.some(({ message }) => message.includes("all fit now"))) met.fits += 1;
      if (after.quotas.some(({ used }, place) => used !== before.quotas[place]?.used)) met.moved += 1;
    }
  }
});

test("the old causes met clusters that are gone, room that came, and quotas that moved", () => {
  for (const [what, count] of Object.entries(met)) assert.ok(count > WORLDS / 20, `${what}: ${JSON.stringify(met)}`);
});

test("words change nothing: the next round decides as it would have", () => {
  for (let seed = 1; seed <= WORLDS; seed++) {
    const truth = new Truth(seed, { alike: false });
    const [asked, other] = [new FleetState(), new FleetState()];
    for (const change of truth.load()) for (const state of [asked, other]) state.apply(change);
    roundOf(asked, truth.nowMs);
    other.round(truth.nowMs, UNBOUNDED);
    for (const change of truth.change()) for (const state of [asked, other]) state.apply(change);
    assert.deepEqual(asked.round(truth.nowMs, UNBOUNDED), other.round(truth.nowMs, UNBOUNDED), `seed ${seed}`);
  }
});
