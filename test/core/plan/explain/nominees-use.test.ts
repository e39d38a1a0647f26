import assert from "node:assert/strict";
import { test } from "node:test";
import { RefusalMessages } from "../../../../src/core/plan/explain/refusal-messages.ts";
import { DEFAULT_POLICY } from "../../../../src/core/plan/model/queue-policy.ts";
import { VirtualFleet } from "../../../support/virtual-fleet.ts";

const BOUNDS = { admissionsMax: 10 };
const NOW = 1_700_000_000_000;
const FLAVOR = "gpu/h100";
const RESOURCE = "nvidia.com/gpu";

/** A tree of 8 GPUs, in which `owner` may take back its own 6 from `other`. */
function fleetWith(runs: Readonly<Record<string, number>>): VirtualFleet {
  const queue = (name: string, nominal: number, parent: string | null = "all") => ({
    name,
    parent,
    strategy: "BEST_EFFORT_FIFO" as const,
    quotas: [{ flavor: FLAVOR, resource: RESOURCE, nominal }],
    policy: { ...DEFAULT_POLICY, reserveAfterMs: 0, reclaimWithinTree: name === "owner" ? "ANY" : "NEVER" } as const,
  });
  const fleet = new VirtualFleet([queue("all", 0, null), queue("owner", 6), queue("other", 2)]);
  for (const [uid, units] of Object.entries(runs)) {
    fleet.submit({ uid, queue: "other", priority: 0, units, createTimeMs: NOW });
  }
  for (const planned of fleet.state.round(NOW, BOUNDS).admissions) fleet.admit(planned, NOW);
  fleet.submit({ uid: "nominee", queue: "owner", priority: 0, units: 6, createTimeMs: NOW });
  return fleet;
}

/** Why a gang of `other` waits in the round in which others give way for the nominee. */
function wordsOf(fleet: VirtualFleet, uid: string): string {
  let words = "";
  const plan = fleet.state.round(NOW, BOUNDS, ({ refused, admissions }, { fleet: known, pendingUse }) => {
    const all = new RefusalMessages(known, { callers: [], admissions, pendingUse });
    for (const { gang, cause } of refused) if (gang.uid === uid) words = all.refusalOf(gang, cause).message;
  });
  assert.deepEqual(
    plan.preemptions.map(({ planned }) => planned.jobUid),
    ["nominee"],
  );
  return words;
}

test("what a nominee lacks does not count as used while its victims use it", () => {
  const fleet = fleetWith({ a: 2, b: 6 });
  fleet.submit({ uid: "late", queue: "other", priority: 0, units: 2, createTimeMs: NOW });
  assert.equal(wordsOf(fleet, "late"), "needs 2 of gpu/h100; queue all uses 8 of 8 (held by default/b, default/a)");
});

test("a gang that others' room would do for is told that the room is kept for nominees", () => {
  const fleet = fleetWith({ a: 2, b: 4 });
  fleet.submit({ uid: "late", queue: "other", priority: 0, units: 2, createTimeMs: NOW });
  const uses = "needs 2 of gpu/h100; queue all uses 6 of 8 (held by default/b, default/a)";
  assert.equal(wordsOf(fleet, "late"), `${uses}, and keeps 6 for nominees`);
});
