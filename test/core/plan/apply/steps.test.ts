import assert from "node:assert/strict";
import { test } from "node:test";
import { MissedAdmissions, planSteps } from "../../../../src/core/plan/apply/missed-admissions.ts";
import { refuseForTokens } from "../../../../src/core/plan/explain/refuse.ts";
import type { Plan, PlannedAdmission } from "../../../../src/core/plan/model/plan-types.ts";
import type { Violation } from "../../../../src/core/quota/counters.ts";
import { gangOfPlanned } from "../../../support/planned-gang.ts";
import { job, planGang } from "../plan-world.ts";

const gang = (name: string, of: string) => job({ name, queue: of, roles: { Worker: { replicas: 1, gpus: 8 } } });

function planned(name: string): PlannedAdmission {
  const where = { cluster: "east", admissionCounter: 7, members: {}, flavors: {}, flavorLabels: {}, allocations: [] };
  return { kind: "admit", jobUid: `uid-${name}`, askHash: "", generation: 1, admission: 1, ...where };
}

const steps = (
  admissions: readonly string[],
  inLine: { readonly name: string; readonly after: number } | null,
  batchMax = () => 2,
) => {
  const place = inLine && { planned: planned(inLine.name), priority: 0, sinceMs: 0, after: inLine.after };
  const made: Plan = {
    admissions: admissions.map((name) => planned(name)),
    inLine: place,
    refusals: [],
    replanAtMs: null,
  };
  return Array.from(planSteps(made, batchMax), (each) => {
    const gangs = each.step === "admit" ? each.planned : [each.planned];
    return `${each.step} ${gangs.map(({ jobUid }) => jobUid.slice("uid-".length)).join(" ")}`;
  });
};

test("a plan is carried out in its order in batches, with the gang of the waiting line at its place", () => {
  assert.deepEqual(steps([], null), []);
  assert.deepEqual(steps(["a", "b", "c"], null), ["admit a b", "admit c"]);
  assert.deepEqual(steps(["a", "b", "c"], { name: "d", after: 1 }), ["admit a", "takePlace d", "admit b c"]);
  assert.deepEqual(steps(["a"], { name: "c", after: 0 }), ["takePlace c", "admit a"]);
  assert.deepEqual(steps(["a"], { name: "c", after: 1 }), ["admit a", "takePlace c"]);
});

test("each batch has at most as many gangs as are allowed when it is due", () => {
  const sizes = [1, 3, 2];
  const batches = steps(["a", "b", "c", "d", "e"], null, () => sizes.shift() ?? assert.fail("no batch is due"));
  assert.deepEqual(batches, ["admit a", "admit b c d", "admit e"]);
});

test("a missed admission holds up the gangs of its own strict queue alone", () => {
  const gangs = new Map(
    [
      ["s1", "strict", true],
      ["s2", "strict", true],
      ["o", "other", true],
      ["l1", "loose", false],
      ["l2", "loose", false],
      ["grows", "strict", false],
    ].map(([name, queue, isChained]) => [
      name,
      gangOfPlanned(planned(String(name)), { queue: String(queue), isChained: isChained === true }),
    ]),
  );
  const gangNamed = (name: string) => gangs.get(name) ?? assert.fail(name);
  const missed = new MissedAdmissions();
  assert.equal(missed.holdsUp(gangNamed("s2")), false);
  missed.add(gangNamed("s1"));
  missed.add(gangNamed("l1"));
  const heldUp = ["s2", "o", "l2", "grows"].filter((name) => missed.holdsUp(gangNamed(name)));
  assert.deepEqual(heldUp, ["s2"]);
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
    const whose = { jobUid: one.uid, generation: 1 };
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
