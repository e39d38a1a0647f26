/** Pods that no node shows yet count on their planned nodes, and the others wherever they fit, each once. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { withRuns } from "../../../../src/core/job/placement/placement.ts";
import { ClusterState } from "../../../../src/core/plan/capacity/cluster-state.ts";
import { FitClasses } from "../../../../src/core/plan/capacity/fit-classes.ts";

const GPU = "nvidia.com/gpu";
const podClass = { requests: { [GPU]: 1000 }, scheduling: {} };

/** A gang of so many workers, of which some are planned on a node. */
function gang(jobUid: string, workers: number, planned: { readonly node: string; readonly count: number } | null) {
  const run = planned === null ? [] : [{ role: "Worker", first: 0, ...planned, others: [] }];
  const placement = planned === null ? undefined : withRuns(null, run);
  return { jobUid, admission: 1, labels: {}, groups: [{ role: "Worker", podClass, count: workers }], placement };
}

function clusterWith(gangs: readonly ReturnType<typeof gang>[]): ClusterState {
  const cluster = new ClusterState("east", new FitClasses());
  for (const name of ["a", "b"]) {
    const amounts = { [GPU]: 4000 };
    const node = { name, labels: {}, taints: [], unschedulable: false, allocatable: amounts, free: amounts };
    cluster.setNode(name, node, []);
  }
  for (const one of gangs) cluster.setLive(one.jobUid, one);
  cluster.sync();
  return cluster;
}

const nodesOf = (cluster: ClusterState, jobUid: string) => cluster.unseenPodsOf(jobUid).map(({ node }) => node);

test("a gang that is planned whole has its own pods alone, and one without a plan all of its own", () => {
  const cluster = clusterWith([gang("x", 2, { node: "b", count: 2 }), gang("y", 3, null)]);
  assert.deepEqual(nodesOf(cluster, "x"), ["b", "b"]);
  assert.equal(nodesOf(cluster, "y").length, 3);
});

test("members without a plan, or whose planned node is full or gone, count elsewhere", () => {
  const cluster = clusterWith([gang("x", 3, { node: "gone", count: 2 }), gang("y", 5, { node: "a", count: 5 })]);
  assert.equal(nodesOf(cluster, "x").length, 3);
  assert.deepEqual(nodesOf(cluster, "y").filter((node) => node === "a").length, 4);
  assert.equal(nodesOf(cluster, "y").length, 5);
  const free = cluster.free.nodesNow().map((node) => node.free[GPU]);
  assert.deepEqual(free, [0, 0]);
});
