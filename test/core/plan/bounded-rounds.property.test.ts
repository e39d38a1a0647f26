import assert from "node:assert/strict";
import { test } from "node:test";
import { FleetState } from "../../../src/core/plan/fleet-state.ts";
import type { PlanGang } from "../../../src/core/plan/model/plan-gang.ts";
import type { PlannedAdmission } from "../../../src/core/plan/model/plan-types.ts";
import { DEFAULT_POLICY, type QueuePolicy } from "../../../src/core/plan/model/queue-policy.ts";
import { carryOut } from "../../tools/bench/plan.ts";
import { Fleet, gangChange } from "../../tools/bench/plan-fleet.ts";

const NOW = 1_800_000_000_000;
const FLEETS = 12;
const STEPS = 12;
const SEARCH_FLEETS = 6;
const SEARCH_STEPS = 6;
const met = { cut: 0, admissions: 0, searchesLeft: 0, preemptions: 0 };

/** Unlike fair sharing, this comes to rest although victims may be admitted again at once. */
const RECLAIMS: QueuePolicy = { ...DEFAULT_POLICY, withinQueue: "LOWER_PRIORITY", reclaimWithinTree: "ANY" };

function loaded(fleet: Fleet): FleetState {
  const state = new FleetState();
  for (const change of fleet.load()) state.apply(change);
  return state;
}

function record(fleet: Fleet, state: FleetState, planned: PlannedAdmission): void {
  const { jobUid, cluster, flavors, flavorLabels, members, allocations } = planned;
  const to = { cluster: cluster ?? "", flavors, flavorLabels, members, amounts: allocations };
  for (const change of fleet.admit(fleet.gangs.get(jobUid) as PlanGang, to)) state.apply(change);
}

/** Rounds of at most one admission each, until a round has decided about everything. */
function roundsUntilDone(fleet: Fleet, state: FleetState): void {
  for (let more = true; more; ) {
    const plan = state.round(NOW, { admissionsMax: 1 });
    for (const planned of plan.admissions) record(fleet, state, planned);
    if (plan.more) met.cut += 1;
    met.admissions += plan.admissions.length;
    more = plan.more;
  }
}

test("rounds of one admission each leave no gang waiting that a state which was just loaded would admit", () => {
  for (let at = 0; at < FLEETS; at++) {
    const fleet = new Fleet({ gangs: 0, nodes: 8 + at, clusters: 1 + (at % 3), asks: 3 + at, queues: 12 + at });
    for (let gang = 0; gang < 80; gang++) fleet.newGang();
    const state = loaded(fleet);
    for (let step = 0; step < STEPS; step++) {
      roundsUntilDone(fleet, state);
      const missed = loaded(fleet).round(NOW, { admissionsMax: Number.POSITIVE_INFINITY }).admissions;
      assert.deepEqual(missed, [], `fleet ${at}, step ${step}`);
      const running = [...fleet.gangs.values()].filter(({ waits }) => !waits);
      for (const gang of running.filter(() => fleet.upTo(1) === 0)) {
        for (const change of fleet.end(gang)) state.apply(change);
      }
    }
  }
});

test("the rounds met bounds and admissions", () => {
  assert.ok(met.cut > FLEETS * STEPS && met.admissions > FLEETS * STEPS, JSON.stringify(met));
});

/** Rounds in which at most `searchesMax` gangs look whom they may preempt, until one has decided about everything. */
function searchUntilDone(fleet: Fleet, state: FleetState, searchesMax: number): void {
  for (let more = true; more; ) {
    const plan = state.round(NOW, { admissionsMax: Number.POSITIVE_INFINITY, searchesMax });
    for (const change of carryOut(fleet, plan)) state.apply(change);
    met.preemptions += plan.preemptions.length;
    met.searchesLeft += plan.more ? 1 : 0;
    more = plan.more || plan.admissions.length + plan.preemptions.length + plan.withdrawn.length > 0;
  }
}

test("rounds with few searches for victims leave nothing to a state which was just loaded", () => {
  for (let at = 0; at < SEARCH_FLEETS; at++) {
    const size = { nodes: 8 + at, clusters: 1 + (at % 3), asks: 3 + at, queues: 12 + at };
    const fleet = new Fleet({ gangs: 0, ...size, policies: RECLAIMS });
    for (let gang = 0; gang < 80; gang++) fleet.newGang();
    const state = loaded(fleet);
    for (let step = 0; step < SEARCH_STEPS; step++) {
      searchUntilDone(fleet, state, 1 + (at % 5));
      const missed = loaded(fleet).round(NOW, { admissionsMax: Number.POSITIVE_INFINITY });
      const { admissions, preemptions, withdrawn } = missed;
      assert.deepEqual({ admissions, preemptions, withdrawn }, { admissions: [], preemptions: [], withdrawn: [] });
      const running = [...fleet.gangs.values()].filter(({ waits }) => !waits);
      for (const gang of running.filter(() => fleet.upTo(2) === 0)) {
        for (const change of fleet.end(gang)) state.apply(change);
      }
      for (let gang = 0; gang < 5; gang++) state.apply(gangChange(fleet.newGang()));
    }
  }
});

test("the rounds met searches that were left, and preemptions", () => {
  assert.ok(met.searchesLeft > SEARCH_FLEETS * SEARCH_STEPS && met.preemptions > SEARCH_FLEETS, JSON.stringify(met));
});

test("rounds that tell at most seven causes each tell in the end what one round tells", () => {
  for (let at = 0; at < FLEETS; at++) {
    const fleet = new Fleet({ gangs: 0, nodes: 2 + at, clusters: 1 + (at % 3), asks: 3 + at, queues: 12 + at });
    for (let gang = 0; gang < 80; gang++) fleet.newGang();
    const [all, few] = [loaded(fleet), loaded(fleet)];
    const expected = all.round(NOW, { admissionsMax: Number.POSITIVE_INFINITY }).refused.map(({ gang }) => gang.uid);
    const told: string[] = [];
    for (let more = true; more; ) {
      const plan = few.round(NOW, { admissionsMax: Number.POSITIVE_INFINITY, refusalsMax: 7 });
      assert.ok(plan.refused.length <= 7);
      for (const { gang } of plan.refused) told.push(gang.uid);
      ({ more } = plan);
    }
    assert.ok(expected.length > 7, `fleet ${at}: ${expected.length} refusals`);
    assert.deepEqual(told.sort(), expected.sort(), `fleet ${at}`);
  }
});
