import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import type { FleetState } from "../../../../src/core/plan/fleet-state.ts";
import type { PlanGang } from "../../../../src/core/plan/model/plan-gang.ts";
import { DEFAULT_POLICY } from "../../../../src/core/plan/model/queue-policy.ts";
import { type AgeingInBands, effectivePriority, nextStepMs } from "../../../../src/core/plan/queues/ageing.ts";
import { reasonOf } from "../../../../src/core/plan/round/reasons.ts";
import { stateOf } from "../../../support/load-snapshot.ts";
import { FLAVOR, RESOURCE, VirtualFleet } from "../../../support/virtual-fleet.ts";
import { amounts, cluster, job, NOW, node, planGang, queue, snapshot } from "../plan-world.ts";

const MINUTE_MS = 60_000;
const BOUNDS = { admissionsMax: Number.POSITIVE_INFINITY };
const AGEING = { intervalMs: 10 * MINUTE_MS, step: 2, limit: 50 };

const somePriority = fc.integer({ min: -(2 ** 31), max: 2 ** 31 - 1 });
const someAgeing: fc.Arbitrary<AgeingInBands> = fc.record({
  intervalMs: fc.integer({ min: 1_000, max: 100_000_000 }),
  step: fc.integer({ min: 1, max: 1_000_000_000 }),
  limit: fc.integer({ min: 1, max: 1_000_000_000 }),
  classValues: fc.array(somePriority, { maxLength: 4 }).map((values) => values.toSorted((a, b) => a - b)),
});

test("a priority grows by whole steps, never shrinks, and stays within its limit and its band", () => {
  fc.assert(
    fc.property(someAgeing, somePriority, fc.nat(1e12), fc.nat(1e10), (ageing, priority, waitedMs, moreMs) => {
      const gang = { priority, waitsSinceMs: NOW };
      const now = effectivePriority(gang, ageing, NOW + waitedMs);
      assert.ok(now >= priority && now <= Math.min(priority + ageing.limit, 2 ** 31 - 1));
      assert.ok(effectivePriority(gang, ageing, NOW + waitedMs + moreMs) >= now);
      const next = ageing.classValues.find((value) => value > priority) ?? Number.POSITIVE_INFINITY;
      assert.ok(now < next);
      const stepMs = nextStepMs(gang, ageing, NOW + waitedMs);
      if (!Number.isFinite(stepMs)) return;
      assert.ok(stepMs > NOW + waitedMs);
      assert.equal(effectivePriority(gang, ageing, stepMs - 1), now);
      assert.ok(effectivePriority(gang, ageing, stepMs) > now);
    }),
  );
});

test("a priority that never steps again never grows again", () => {
  fc.assert(
    fc.property(someAgeing, somePriority, fc.nat(1e12), (ageing, priority, moreMs) => {
      const gang = { priority, waitsSinceMs: NOW };
      const done = effectivePriority(gang, { ...ageing, step: 2 ** 31 * 2 }, NOW + ageing.intervalMs);
      assert.ok(effectivePriority(gang, ageing, NOW + moreMs) <= done);
    }),
  );
});

const gang = (name: string, priority: number, minutes: number, gpus = 8): PlanGang => {
  const createTimeMs = NOW - minutes * MINUTE_MS;
  return planGang(job({ name, priority, createTimeMs, roles: { Worker: { replicas: 1, gpus } } }));
};
const oneNode = cluster("east", { nodes: [node("n", "h100", { allocatable: amounts(8), free: amounts(8) })] });
const ageing = (strategy: "STRICT_FIFO" | "BEST_EFFORT_FIFO", classValues: readonly number[] = []) => {
  return { ...queue("q", { h100: 64 }, { strategy, policy: { ...DEFAULT_POLICY, ageing: AGEING } }), classValues };
};

function admittedAt(state: FleetState, nowMs: number): readonly string[] {
  return state.round(nowMs, BOUNDS).admissions.map(({ jobUid }) => jobUid.slice(4));
}

test("a gang that has waited passes one of a higher priority once its own has grown beyond it", () => {
  const waiting = [gang("old", 0, 15), gang("new", 3, 0)];
  const state = stateOf(snapshot({ waiting, queues: [ageing("BEST_EFFORT_FIFO")], clusters: [oneNode] }));
  assert.deepEqual(admittedAt(state, NOW), ["new"]);
  assert.deepEqual(admittedAt(state, NOW + 5 * MINUTE_MS - 1), ["new"]);
  assert.deepEqual(admittedAt(state, NOW + 5 * MINUTE_MS), ["old"]);
  // The younger one has grown as well.
  assert.deepEqual(admittedAt(state, NOW + 10 * MINUTE_MS), ["new"]);
});

test("a gang never passes one of the next higher class", () => {
  const waiting = [gang("old", 0, 10_000), gang("new", 3, 0)];
  const state = stateOf(snapshot({ waiting, queues: [ageing("BEST_EFFORT_FIFO", [3])], clusters: [oneNode] }));
  assert.deepEqual(admittedAt(state, NOW), ["new"]);
});

test("a gang that was admitted ages from the end of its admission", () => {
  const back = { ...gang("back", 0, 60), waitsSinceMs: NOW };
  const waiting = [gang("old", 0, 30), back, gang("new", 1, 0)];
  const state = stateOf(snapshot({ waiting, queues: [ageing("BEST_EFFORT_FIFO")], clusters: [oneNode] }));
  assert.deepEqual(admittedAt(state, NOW), ["old"]);
  state.apply({ kind: "gang", uid: "uid-old", version: 1000, gang: null });
  assert.deepEqual(admittedAt(state, NOW), ["new"]);
  assert.deepEqual(admittedAt(state, NOW + 9 * MINUTE_MS), ["new"]);
});

test("the head of a strict queue changes by time alone, and the round says when", () => {
  const waiting = [gang("old", 0, 15, 99), gang("new", 3, 0, 99)];
  const state = stateOf(snapshot({ waiting, queues: [ageing("STRICT_FIFO")], clusters: [oneNode] }));
  const behind = (nowMs: number) => {
    const found: string[] = [];
    const { replanAtMs } = state.round(nowMs, BOUNDS, (_, { fleet }) => {
      for (const queued of fleet.queues.gangs.values()) {
        const cause = reasonOf(fleet, queued, nowMs);
        if (cause?.kind === "behindHead") found.push(`${queued.facts.name} behind ${cause.head.name}`);
      }
    });
    return [found, replanAtMs];
  };
  assert.deepEqual(behind(NOW), [["old behind new"], NOW + 5 * MINUTE_MS]);
  assert.deepEqual(behind(NOW + 5 * MINUTE_MS), [["new behind old"], NOW + 10 * MINUTE_MS]);
});

test("ageing that an admin turns on or off counts from the next round", () => {
  const plain = queue("q", { h100: 64 });
  const waiting = [gang("old", 0, 60), { ...gang("back", 0, 90), waitsSinceMs: NOW }, gang("new", 3, 0)];
  const state = stateOf(snapshot({ waiting, queues: [plain], clusters: [oneNode] }));
  assert.deepEqual(admittedAt(state, NOW), ["new"]);
  state.apply({ kind: "queue", name: "q", version: 2, queue: ageing("BEST_EFFORT_FIFO") });
  assert.deepEqual(admittedAt(state, NOW), ["old"]);
  state.apply({ kind: "queue", name: "q", version: 3, queue: plain });
  assert.deepEqual(admittedAt(state, NOW), ["new"]);
});

test("preemption compares the gangs' own priorities", () => {
  const withoutReservations = { ...DEFAULT_POLICY, reserveAfterMs: 0 };
  const policy = { ...withoutReservations, ageing: AGEING, withinQueue: "LOWER_PRIORITY" as const };
  const quotas = [{ flavor: FLAVOR, resource: RESOURCE, nominal: 8 }];
  const fleet = new VirtualFleet([{ name: "q", parent: null, strategy: "BEST_EFFORT_FIFO", quotas, policy }]);
  const submit = (uid: string, priority: number, createTimeMs: number) =>
    fleet.submit({ uid, queue: "q", priority, units: 8, createTimeMs });
  submit("running", 1, NOW);
  for (const planned of fleet.state.round(NOW, BOUNDS).admissions) fleet.admit(planned, NOW);
  const preemptionsFor = () => fleet.state.round(NOW, BOUNDS).preemptions.map(({ planned }) => planned.jobUid);
  submit("old", 0, NOW - 10_000 * MINUTE_MS);
  assert.deepEqual(preemptionsFor(), []);
  submit("higher", 2, NOW);
  assert.deepEqual(preemptionsFor(), ["higher"]);
});
