/** Why a gang waits, without the clusters that a caller may not see: what stays of the words. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { describeBlocked } from "../../../../src/core/plan/explain/blocked-messages.ts";
import { messageWithoutClusters, recordedWithoutClusters } from "../../../../src/core/plan/explain/hidden-clusters.ts";
import { changed, refuseFor } from "../../../../src/core/plan/explain/refuse.ts";
import type { BlockedPod } from "../../../../src/core/plan/model/blocked-pod.ts";
import type { ClusterRefusal } from "../../../../src/core/plan/model/plan-types.ts";
import { reservedForMessage } from "../../../../src/core/plan/model/preemption-messages.ts";

const gang = { uid: "u", generation: 1 } as Parameters<typeof refuseFor>[0];
const refusal = (cluster: string, reason: string, message: string, have = 0): ClusterRefusal => {
  return { cluster, reason, message, flavor: null, need: 4, have, blocked: null };
};
const NODE = "for the next Worker pod, node secret-node has taint secret=x:NoSchedule, not tolerated";
const cordoned = (cluster: string) => refusal(cluster, "Cordoned", `${cluster} is cordoned`);
const roomless = (cluster: string) =>
  refusal(cluster, "NoCapacity", `needs 4 pods; 3 fit now on ${cluster}; ${NODE}`, 3);
const tooLarge = (cluster: string) =>
  refusal(cluster, "TooLarge", `needs 4 pods; ${cluster} takes 0 even when it is empty; ${NODE}`);

const cases: Readonly<Record<string, { clusters: readonly ClusterRefusal[]; shown: string }>> = {
  "the nearest cluster, with its nodes": {
    clusters: [cordoned("a"), roomless("secret-b")],
    shown: "3 of 4 pods fit now on another cluster",
  },
  "a cluster that is too small": {
    clusters: [tooLarge("secret-b")],
    shown: "another cluster cannot take it even when it is empty",
  },
  "clusters beside one that may be seen, once": {
    clusters: [cordoned("secret-a"), cordoned("secret-b"), cordoned("mine")],
    shown: "no cluster can be used: another cluster cannot be used; mine: mine is cordoned",
  },
  "no cluster": { clusters: [roomless("mine")], shown: `needs 4 pods; 3 fit now on mine; ${NODE}` },
};
for (const [name, { clusters, shown }] of Object.entries(cases)) {
  test(`a refusal is shown without ${name}`, () => {
    const { message } = refuseFor(gang, { quotas: [], clusters, stoppedByQuota: false });
    const told = (text: string) => messageWithoutClusters(text, clusters, (cluster) => cluster === "mine");
    assert.equal(told(message), shown);
    const later = changed({ ...refuseFor(gang, { quotas: [], clusters, stoppedByQuota: false }) }).message;
    assert.equal(told(later), later.replace(message, shown));
  });
}

test("the cluster of another gang's reservation is not named", () => {
  const message = reservedForMessage("another job", "secret", Number.POSITIVE_INFINITY);
  const shown = messageWithoutClusters(message, [], () => false);
  assert.equal(
    shown,
    "what it needs is kept for the reservation of another job on another cluster; nobody knows when it starts",
  );
  assert.equal(
    messageWithoutClusters(message, [], () => true),
    message,
  );
});

const blocked = (more: object) =>
  ({ role: "Worker", node: "secret-node", nodes: 1, placed: 0, never: false, obstacles: [], ...more }) as BlockedPod;
const at = (cluster: string, fit: number, tooLarge: boolean, more: object = {}) =>
  describeBlocked(blocked(more), { cluster, gang: "4 pods of 8 cpu", fit, tooLarge });
const listed = (...clusters: readonly ClusterRefusal[]) =>
  refuseFor(gang, { quotas: [], clusters, stoppedByQuota: false }).message;
const recorded: Readonly<Record<string, { message: string; shown: string }>> = {
  "what fits": { message: at("secret", 3, false), shown: "needs 4 pods of 8 cpu; 3 fit now on another cluster" },
  "what fits a simulated one": {
    message: at("secret (simulated)", 3, false),
    shown: "needs 4 pods of 8 cpu; 3 fit now on another cluster",
  },
  "a gang that is too large": {
    message: at("secret", 0, true),
    shown: "needs 4 pods of 8 cpu; another cluster takes 0 even when it is empty",
  },
  "a pod that no node takes": {
    message: at("secret", 0, true, { never: true }),
    shown: "no node of another cluster can ever take a Worker pod",
  },
  "no nodes": {
    message: at("secret", 0, false, { node: null }),
    shown: "needs 4 pods of 8 cpu; another cluster has no nodes",
  },
  "all clusters": { message: listed(cordoned("mine"), cordoned("secret")), shown: "no cluster can be used" },
  "one that may be seen": { message: at("mine", 3, false), shown: at("mine", 3, false) },
};
for (const [name, { message, shown }] of Object.entries(recorded)) {
  test(`recorded words name no hidden cluster: ${name}`, () => {
    const told = (text: string) => recordedWithoutClusters(text, (cluster) => cluster.startsWith("mine"));
    assert.equal(told(message), shown);
    assert.equal(told(shown), shown, "and stay so");
  });
}
