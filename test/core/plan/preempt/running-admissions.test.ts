import assert from "node:assert/strict";
import { test } from "node:test";
import type { ClusterState } from "../../../../src/core/plan/capacity/cluster-state.ts";
import { FleetState } from "../../../../src/core/plan/fleet-state.ts";
import { RunningAdmissions } from "../../../../src/core/plan/preempt/running-admissions.ts";
import { fillHalf } from "../../../tools/bench/plan.ts";
import { Fleet } from "../../../tools/bench/plan-fleet.ts";

test("a gang has pods in the cluster of its admission alone, whichever cluster is asked first", () => {
  const fleet = new Fleet({ gangs: 0, nodes: 16, clusters: 2, asks: 4, queues: 3 });
  fillHalf(fleet);
  const state = new FleetState();
  for (const change of fleet.load()) state.apply(change);
  state.parts.sync(0);
  const runningAdmissions = new RunningAdmissions(state.parts);
  const [here, there] = ["cluster-0", "cluster-1"].map((name) => state.parts.clusters.get(name) as ClusterState);
  const gangs = runningAdmissions.wholeStaying().filter(({ admission }) => admission.cluster === here?.name);
  let pods = 0;
  for (const gang of gangs) {
    assert.deepEqual(runningAdmissions.podsOf(there as ClusterState, gang), []);
    pods += runningAdmissions.podsOf(here as ClusterState, gang).length;
    assert.deepEqual(
      runningAdmissions.podsOf(here as ClusterState, gang),
      new RunningAdmissions(state.parts).podsOf(here as ClusterState, gang),
    );
  }
  assert.ok(pods > 0);
});
