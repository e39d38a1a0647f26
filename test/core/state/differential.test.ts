import assert from "node:assert/strict";
import { test } from "node:test";
import { plan } from "../../../src/core/plan/plan.ts";
import { FleetState } from "../../../src/core/plan/state/fleet-state.ts";
import { changesOf } from "../../../src/core/plan/state/load-snapshot.ts";
import { AT } from "../plan-world.ts";
import { randomSnapshot } from "./random-world.ts";

const WORLDS = Number(process.env["GANGWAY_PLAN_WORLDS"] ?? 300);
const UNBOUNDED = { admissionsMax: Number.POSITIVE_INFINITY };

for (const alike of [true, false]) {
  test(`the state decides as the plan of a snapshot does, for gangs of ${alike ? "one pod class" : "several"}`, () => {
    for (let seed = 1; seed <= WORLDS; seed++) {
      const from = randomSnapshot(seed, { jobs: 12, nodes: 5, alike });
      const expected = plan(from, AT);
      const state = new FleetState();
      for (const change of changesOf(from)) state.apply(change);
      const before = state.hash();
      const made = state.round(AT.nowMs, UNBOUNDED);
      assert.deepEqual(made.admissions, expected.admissions, `seed ${seed}`);
      assert.deepEqual(made.inLine, expected.inLine, `seed ${seed}`);
      assert.equal(made.replanAtMs, expected.replanAtMs, `seed ${seed}`);
      const uids = made.refused.map(({ gang }) => gang.uid).sort();
      assert.deepEqual(uids, expected.refusals.map(({ jobUid }) => jobUid).sort(), `seed ${seed}`);
      assert.equal(state.hash(), before);
    }
  });
}
