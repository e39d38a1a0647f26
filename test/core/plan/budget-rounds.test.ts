import assert from "node:assert/strict";
import { test } from "node:test";
import { RefusalMessages } from "../../../src/core/plan/explain/refusal-messages.ts";
import { BUDGET_WINDOW_MS, DEFAULT_POLICY } from "../../../src/core/plan/model/queue-policy.ts";
import type { PlanQueue } from "../../../src/core/plan/model/snapshot.ts";
import { FLAVOR, RESOURCE, VirtualFleet } from "../../support/virtual-fleet.ts";
import { NOW } from "./plan-world.ts";

const BOUNDS = { admissionsMax: Number.POSITIVE_INFINITY };
const AGO_MS = 600_000;

function queueOf(preemptionsPerHour: number, used: number): PlanQueue {
  const quotas = [{ flavor: FLAVOR, resource: RESOURCE, nominal: 8 }];
  const withoutReservations = { ...DEFAULT_POLICY, reserveAfterMs: 0 };
  const policy = { ...withoutReservations, withinQueue: "LOWER_PRIORITY" as const, preemptionsPerHour };
  const preempted = [{ atMs: NOW - AGO_MS, victims: used }];
  return { name: "q", parent: null, strategy: "BEST_EFFORT_FIFO", quotas, policy, preempted };
}

/** Two gangs of four GPUs run, and these wait. */
function fleetOf(queue: PlanQueue, waiting: readonly { readonly uid: string; readonly units: number }[]): VirtualFleet {
  const fleet = new VirtualFleet([queue]);
  const of = { queue: "q", createTimeMs: NOW };
  for (const uid of ["r1", "r2"]) fleet.submit({ ...of, uid, priority: 0, units: 4 });
  for (const planned of fleet.state.round(NOW, BOUNDS).admissions) fleet.admit(planned, NOW);
  for (const gang of waiting) fleet.submit({ ...of, ...gang, priority: 1 });
  return fleet;
}

function roundAt(fleet: VirtualFleet, nowMs: number) {
  const words: string[] = [];
  const retries: (number | null)[] = [];
  const plan = fleet.state.round(nowMs, BOUNDS, ({ refused, admissions }, { fleet: known, pendingUse }) => {
    for (const { gang, cause } of refused) {
      const refusal = new RefusalMessages(known, { callers: [], admissions, pendingUse }).refusalOf(gang, cause);
      words.push(refusal.message);
      retries.push(refusal.retryAtMs);
    }
  });
  const victims = plan.preemptions.flatMap((one) => one.victims.map(({ jobUid }) => jobUid));
  return { victims, replanAtMs: plan.replanAtMs, words, retries };
}

test("a gang preempts as long as its queue's budget lasts", () => {
  assert.deepEqual(roundAt(fleetOf(queueOf(2, 1), [{ uid: "w", units: 4 }]), NOW).victims, ["r1"]);
});

test("once the budget is used up, nobody is preempted, and the refusal and the round say until when", () => {
  const fleet = fleetOf(queueOf(2, 2), [{ uid: "w", units: 4 }]);
  const untilMs = NOW - AGO_MS + BUDGET_WINDOW_MS;
  const { victims, replanAtMs, words, retries } = roundAt(fleet, NOW);
  assert.deepEqual([victims, replanAtMs, retries], [[], untilMs, [untilMs]]);
  const said = `queue q may cause 2 preemptions within an hour, and too few are left for it until `;
  assert.ok(words[0]?.endsWith(said + new Date(untilMs).toISOString()), words[0]);
  assert.deepEqual(roundAt(fleet, untilMs - 1).victims, []);
  assert.deepEqual(roundAt(fleet, untilMs).victims, ["r1"]);
});

test("a refusal counts one preemption of a budget as one", () => {
  const { words } = roundAt(fleetOf(queueOf(1, 1), [{ uid: "w", units: 4 }]), NOW);
  assert.match(words[0] ?? "", /; queue q may cause 1 preemption within an hour, and too few are left for it until /);
});

test("two gangs of one round share the budget", () => {
  const fleet = fleetOf(queueOf(1, 0), [
    { uid: "w1", units: 4 },
    { uid: "w2", units: 4 },
  ]);
  assert.equal(roundAt(fleet, NOW).victims.length, 1);
});

test("a gang that needs more preemptions than the budget ever has is told so", () => {
  const { victims, words, replanAtMs } = roundAt(fleetOf(queueOf(1, 0), [{ uid: "w", units: 8 }]), NOW);
  assert.deepEqual([victims, replanAtMs], [[], null]);
  assert.match(words[0] ?? "", /; it needs more preemptions than the 1 that queue q may cause within an hour$/);
});
