import assert from "node:assert/strict";
import { test } from "node:test";
import { FleetState } from "../../../src/core/plan/fleet-state.ts";
import type { PlanGang } from "../../../src/core/plan/model/plan-gang.ts";
import { cluster, job, NOW, node, planGang, pool, queue } from "./plan-world.ts";
import { SmallFleet } from "./small-fleet.ts";

const UNBOUNDED = { admissionsMax: Number.POSITIVE_INFINITY };

/** A state with one gang, which its queue has no quota for. */
function refusing(gang: PlanGang): FleetState {
  const state = new FleetState();
  state.apply({ kind: "queue", name: "q", version: 1, queue: queue("q", { h100: 4 }) });
  state.apply({ kind: "pool", name: "gpu/h100", version: 1, pool: pool("gpu/h100") });
  const { capacity: _, ...facts } = cluster("east", { nodes: [node("n0", "h100")] });
  state.apply({ kind: "cluster", name: "east", version: 1, facts });
  state.apply({ kind: "gang", uid: gang.uid, version: 1, gang });
  return state;
}

const told = (state: FleetState) => state.round(NOW, UNBOUNDED).refused.map(({ gang }) => gang.uid);

const changes: Record<string, { readonly change: Partial<PlanGang>; readonly told: boolean }> = {
  "suspended and resumed": { change: { version: 3, generation: 3 }, told: true },
  "changed in nothing that a plan reads": { change: { version: 3 }, told: false },
};
for (const [what, { change, told: expected }] of Object.entries(changes)) {
  const again = expected ? "again" : "once";
  test(`a gang that was ${what} between two rounds is told ${again} why it waits`, () => {
    const made = planGang(job({ name: "a", queue: "q", roles: { Worker: { replicas: 1, gpus: 8 } } }));
    const gang = { ...made, version: 1, generation: 1 };
    const state = refusing(gang);
    assert.deepEqual(told(state), [gang.uid]);
    assert.deepEqual(told(state), []);
    state.apply({ kind: "gang", uid: gang.uid, version: 3, gang: { ...gang, ...change } });
    assert.deepEqual(told(state), expected ? [gang.uid] : []);
  });
}

test("a gang that was told of its quota is told of nodes once the quota would be enough", () => {
  const fleet = new SmallFleet([queue("a", { h100: 4 }), queue("b", { h100: 4 })], [4], true);
  fleet.submit({ name: "mine", queue: "a", gpus: 2 });
  fleet.submit({ name: "other", queue: "b", gpus: 2 });
  fleet.submit({ name: "wide", queue: "a", gpus: 3, createTimeMs: 1 });
  const told = () =>
    fleet.step().refused.map(({ gang, cause }) => {
      return `${gang.name} ${cause.kind === "lacks" && cause.refusal.stoppedByQuota ? "quota" : "nodes"}`;
    });
  assert.deepEqual(told(), ["wide quota"]);
  fleet.end("uid-mine");
  assert.deepEqual(told(), ["wide nodes"]);
  fleet.end("uid-other");
  assert.equal(fleet.step().admissions.length, 1);
});
