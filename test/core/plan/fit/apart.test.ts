/** Flavors that no node has together: the gang is told so, wherever it asks. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Job } from "../../../../src/core/job/job.ts";
import { DEFAULT_POLICY } from "../../../../src/core/plan/model/queue-policy.ts";
import type { JsonObject } from "../../../../src/runtime/json.ts";
import { plan } from "../../../support/plan.ts";
import { simulateOn } from "../../../support/simulate-on.ts";
import { AT, amounts, cluster, job, NOW, node, planGang, queue, snapshot } from "../plan-world.ts";

const GPU = "nvidia.com/gpu";
const NIC = "rdma/hca";
const flavor = (name: string, resource: string, zone: string) => ({ name, resource, nodeLabels: { zone } });
const flavorsOf = (gpuZone: string, nicZone: string) => [
  flavor("gpu/h100", GPU, gpuZone),
  flavor("nic/ib", NIC, nicZone),
];
const both = { ...amounts(8), [NIC]: 8000 };
const inZone = (zone: string) => node(`n-${zone}`, "h100", { labels: { zone }, allocatable: both, free: both });
/** A cluster with nodes in two zones, each with both resources, whose flavors are in these zones. */
const twoZones = (name: string, gpuZone: string, nicZone: string) =>
  cluster(name, { nodes: [inZone("a"), inZone("b")], flavors: flavorsOf(gpuZone, nicZone) });

const quotas = [
  { flavor: "gpu/h100", resource: GPU, nominal: 64 },
  { flavor: "nic/ib", resource: NIC, nominal: 64 },
];
const pod = (requests: JsonObject) => ({ containers: [{ name: "main", image: "i", resources: { requests } }] });
const together = job({ name: "x", roles: { Worker: { replicas: 2, pod: pod({ [GPU]: 1, [NIC]: 1 }) } } });
const aside = job({
  name: "x",
  roles: { Master: { replicas: 1, pod: pod({ [NIC]: 1 }) }, Worker: { replicas: 2, pod: pod({ [GPU]: 1 }) } },
});

const WORDS = "no node is one of gpu/h100 (zone=a) and one of nic/ib (zone=b), as a Worker pod needs";

const cases: Readonly<
  Record<string, { job: Job; clusters: ReturnType<typeof cluster>[]; plans: string; simulates: string }>
> = {
  "two flavors of one pod with different zones are never a node": {
    job: together,
    clusters: [twoZones("east", "a", "b")],
    plans: `NoCluster: no cluster can be used: east: ${WORDS}`,
    simulates: `NEVER NoCluster: no cluster can be used: east: ${WORDS}`,
  },
  "another cluster whose flavors are in one zone takes the gang": {
    job: together,
    clusters: [twoZones("east", "a", "b"), twoZones("west", "a", "a")],
    plans: "admitted to west",
    simulates: "FITS_NOW : ",
  },
  "pods that need one of the flavors each are placed in both zones": {
    job: aside,
    clusters: [twoZones("east", "a", "b")],
    plans: "admitted to east",
    simulates: "FITS_NOW : ",
  },
};
const policies = {
  "": DEFAULT_POLICY,
  ", if others may be preempted": { ...DEFAULT_POLICY, withinQueue: "LOWER_PRIORITY" as const },
};
for (const [name, c] of Object.entries(cases)) {
  for (const [how, policy] of Object.entries(policies)) {
    test(`${name}${how}`, () => {
      const queues = [queue("q", {}, { quotas, policy })];
      const planned = plan(snapshot({ waiting: [planGang(c.job)], clusters: c.clusters, queues }), { nowMs: NOW });
      const [refusal] = planned.refusals;
      const [admission] = planned.admissions;
      const said =
        refusal === undefined ? `admitted to ${admission?.cluster}` : `${refusal.reason}: ${refusal.message}`;
      assert.equal(said, c.plans);
      const { verdict, reason, message } = simulateOn(snapshot({ clusters: c.clusters, queues }), c.job, AT);
      assert.equal(`${verdict} ${reason}: ${message}`, c.simulates);
    });
  }
}

test("the two labels are the obstacles of the blocked pod, each with its flavor", () => {
  const from = snapshot({
    waiting: [planGang(together)],
    clusters: [twoZones("east", "a", "b")],
    queues: [queue("q", {}, { quotas })],
  });
  assert.deepEqual(plan(from, { nowMs: NOW }).refusals[0]?.clusters[0]?.blocked?.obstacles, [
    { kind: "label", key: "zone", value: "a", flavor: "gpu/h100" },
    { kind: "label", key: "zone", value: "b", flavor: "nic/ib" },
  ]);
});
