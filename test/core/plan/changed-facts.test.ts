import assert from "node:assert/strict";
import { test } from "node:test";
import { FleetState } from "../../../src/core/plan/fleet-state.ts";
import { Fleet } from "../../tools/bench/plan-fleet.ts";

test("a record of a cluster that was read again, and says the same, is no change", () => {
  const fleet = new Fleet({ gangs: 0, nodes: 2, clusters: 1, asks: 1, queues: 2 });
  const state = new FleetState();
  for (const change of fleet.load()) state.apply(change);
  state.round(0, { admissionsMax: 1 });
  const [name = ""] = fleet.clusterNames;
  const cluster = fleet.clusterChange(name);
  const facts = cluster.kind === "cluster" ? cluster.facts : null;
  state.apply({ kind: "cluster", name, version: 100, facts });
  assert.equal(state.changedFacts, 0);
  state.apply({ kind: "cluster", name, version: 101, facts: facts && { ...facts, cordoned: true } });
  assert.equal(state.changedFacts, 1);
});
