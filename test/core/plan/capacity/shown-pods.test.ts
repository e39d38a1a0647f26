import assert from "node:assert/strict";
import { test } from "node:test";
import { ClusterState } from "../../../../src/core/plan/capacity/cluster-state.ts";
import { FitClasses } from "../../../../src/core/plan/capacity/fit-classes.ts";

const podClass = { requests: { cpu: 1000 }, scheduling: {} };
const labels = {};

/** A gang of one launcher and so many workers. */
const gang = (workers: number) => {
  const roles = [
    { role: "Launcher", podClass, count: 1 },
    { role: "Worker", podClass, count: workers },
  ];
  return { jobUid: "a", admission: 1, labels, groups: roles.filter(({ count }) => count > 0) };
};

const node = (name: string) => {
  const amounts = { cpu: 8000 };
  return { name, labels: {}, taints: [], unschedulable: false, allocatable: amounts, free: amounts };
};

const member = (role: string) => ({ jobUid: "a", admission: 1, role, index: 0 });

test("pods that a node shows before the gang's record has their role are the gang's once it has", () => {
  const cluster = new ClusterState("east", new FitClasses());
  cluster.setNode("one", node("one"), [member("launcher"), member("worker")]);
  cluster.setLive("a", gang(0));
  cluster.sync();
  assert.equal(cluster.podsOf(gang(0)).length, 1);
  cluster.setLive("a", gang(1));
  cluster.sync();
  assert.equal(cluster.podsOf(gang(1)).length, 2);
});

test("pods that a node shows no more are the gang's no more", () => {
  const cluster = new ClusterState("east", new FitClasses());
  cluster.setLive("a", gang(1));
  cluster.setNode("one", node("one"), [member("launcher")]);
  cluster.setNode("two", node("two"), [member("worker")]);
  cluster.sync();
  assert.deepEqual(
    cluster.podsOf(gang(1)).map(({ node: name }) => name),
    ["one", "two"],
  );
  cluster.setLive("a", null);
  cluster.setNode("two", node("two"), []);
  cluster.sync();
  assert.deepEqual(
    cluster.podsOf(gang(1)).map(({ node: name }) => name),
    ["one"],
  );
});
