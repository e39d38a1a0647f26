import assert from "node:assert/strict";
import { test } from "node:test";
import { MissedAdmissions, planSteps } from "../../src/core/plan/missed-admissions.ts";
import type { Plan, PlannedAdmission } from "../../src/core/plan/plan-types.ts";
import { refuseForTokens } from "../../src/core/plan/refuse.ts";
import type { Violation } from "../../src/core/quota/counters.ts";
import { job, planGang, queue, snapshot } from "./plan-world.ts";

const gang = (name: string, of: string) => job({ name, queue: of, roles: { Worker: { replicas: 1, gpus: 8 } } });

function planned(name: string, cluster: string | null = "east", admissionCounter = 7): PlannedAdmission {
  const nothing = { members: {}, flavors: {}, nodeLabels: {}, allocations: [] };
  return { kind: "admit", jobUid: `uid-${name}`, jobVersion: 3, admission: 1, cluster, admissionCounter, ...nothing };
}

const steps = (admissions: readonly string[], inLine: { readonly name: string; readonly after: number } | null) => {
  const place = inLine && { planned: planned(inLine.name), priority: 0, sinceMs: 0, after: inLine.after };
  const made: Plan = {
    admissions: admissions.map((name) => planned(name)),
    inLine: place,
    refusals: [],
    replanAtMs: null,
  };
  return planSteps(made).map(({ planned: { jobUid }, step }) => `${step} ${jobUid}`);
};

test("a plan is carried out in its order, with the gang of the waiting line at its place", () => {
  assert.deepEqual(steps(["a", "b"], null), ["admit uid-a", "admit uid-b"]);
  assert.deepEqual(steps(["a", "b"], { name: "c", after: 1 }), ["admit uid-a", "takePlace uid-c", "admit uid-b"]);
  assert.deepEqual(steps(["a"], { name: "c", after: 0 }), ["takePlace uid-c", "admit uid-a"]);
});

const missedIn = snapshot({
  queues: [
    queue("strict", { h100: 9 }, { strategy: "STRICT_FIFO" }),
    queue("other", { h100: 9 }, { strategy: "STRICT_FIFO" }),
    queue("loose", { h100: 9 }),
  ],
  waiting: [gang("s1", "strict"), gang("s2", "strict"), gang("o", "other"), gang("l1", "loose"), gang("l2", "loose")],
});

test("a missed admission holds up the gangs of its own strict queue alone", () => {
  const missed = new MissedAdmissions(missedIn);
  assert.equal(missed.holdsUp(planned("s2")), false);
  missed.add(planned("s1"));
  missed.add(planned("l1"));
  const heldUp = ["s2", "o", "l2", "nobody"].filter((name) => missed.holdsUp(planned(name)));
  assert.deepEqual(heldUp, ["s2"]);
});

test("later admissions expect a counter that is lower by the missed ones of their cluster", () => {
  const missed = new MissedAdmissions(missedIn);
  for (const name of ["s1", "l1"]) missed.add(planned(name, "east"));
  missed.add(planned("o", "west"));
  const before = planned("l2", "east", 9);
  assert.deepEqual(missed.renumber(before), { ...before, admissionCounter: 7 });
  assert.equal(missed.renumber(planned("l2", "west", 9)).admissionCounter, 8);
  assert.equal(missed.renumber(planned("l2", null, 9)).admissionCounter, 9);
});

const VIOLATION: Violation = {
  scope: { kind: "pool", pool: "gpu/h100" },
  used: 10,
  limit: 18,
  requested: 8,
  reservedForHead: 5,
};

const tokens: Record<string, { of: Partial<Violation>; inLine: boolean; reason: string; message: string }> = {
  "room that is kept for another": {
    of: {},
    inLine: false,
    reason: "Reserved",
    message: "needs 8 of gpu/h100; pool gpu/h100 uses 10 of 18, and keeps 5 for the first of its waiting line",
  },
  "a pool without room": {
    of: { used: 11, reservedForHead: 0 },
    inLine: false,
    reason: "QuotaExhausted",
    message: "needs 8 of gpu/h100; pool gpu/h100 uses 11 of 18",
  },
  "a pool without room, in its waiting line": {
    of: { used: 11, reservedForHead: 0 },
    inLine: true,
    reason: "QuotaExhausted",
    message: "needs 8 of gpu/h100; pool gpu/h100 uses 11 of 18; it is in the waiting line of gpu/h100",
  },
};
for (const [name, { of, inLine, reason, message }] of Object.entries(tokens)) {
  test(`a gang that the counters refuse waits for ${name}`, () => {
    const violation = { ...VIOLATION, ...of };
    const one = gang("a", "strict");
    const { scope, used, limit, reservedForHead: reserved } = violation;
    const quota = { queue: "strict", flavor: "gpu/h100", scope, reason, need: 8, used, limit, reserved, heldBy: [] };
    const whose = { jobUid: one.uid, jobVersion: one.version };
    assert.deepEqual(refuseForTokens(planGang(one), { violation, inLine }), {
      ...whose,
      reason,
      message,
      clusters: [],
      quotas: [quota],
      retryAtMs: null,
    });
  });
}
