import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { clusterSizes, type JudgedCluster, judgeLosses } from "../../../src/core/admin/lost-clusters.ts";

const RULE = { lostAfterMs: 60_000, shareMax: 0.34 };

const someFleet = fc
  .array(
    fc.record({
      state: fc.constantFrom<JudgedCluster["state"][]>(
        "ACTIVE",
        "ACTIVE",
        "UNREACHABLE",
        "UNREACHABLE",
        "UNUSABLE",
        "LOST",
      ),
      silenceMs: fc.constantFrom(0, 59_999, 60_000, 3_600_000),
      size: fc.nat(16),
      simulated: fc.boolean(),
    }),
    { maxLength: 8 },
  )
  .map((clusters) => clusters.map((cluster, at): JudgedCluster => ({ ...cluster, name: `c${at}` })));

const sum = (clusters: readonly JudgedCluster[]) => clusters.reduce((total, { size }) => total + size, 0);

test("a cluster is lost only after long silence, while another of its kind answers and little is silent", () => {
  const met = { lost: 0, held: 0 };
  fc.assert(
    fc.property(someFleet, (fleet) => {
      const { lost, held } = judgeLosses(fleet, RULE);
      met.lost += lost.length;
      met.held += held.length;
      for (const cluster of fleet) {
        const { name, state, silenceMs, simulated } = cluster;
        const due = state === "UNREACHABLE" && silenceMs >= RULE.lostAfterMs;
        assert.equal(lost.includes(name) || held.includes(name), due, name);
        if (!due) continue;
        const alike = fleet.filter((one) => one.simulated === simulated);
        const away = alike.filter((one) => (one.state === "UNREACHABLE" || one.state === "LOST") && one.size > 0);
        const answers = alike.some((one) => one.state === "ACTIVE");
        const few = away.length <= 1 || sum(away) <= RULE.shareMax * sum(alike);
        assert.equal(lost.includes(name), answers && few, name);
      }
    }),
    { numRuns: 1000 },
  );
  assert.ok(met.lost > 50 && met.held > 50, JSON.stringify(met));
});

test("however silence spreads, what is lost by itself stays within the share, but for one alone", () => {
  fc.assert(
    fc.property(
      fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 2, maxLength: 7 }),
      fc.infiniteStream(fc.nat(6)),
      (sizes, falls) => {
        let fleet: readonly JudgedCluster[] = sizes.map((size, at) => {
          return { name: `c${at}`, state: "ACTIVE", silenceMs: 0, size, simulated: false };
        });
        for (let round = 0; round < 10; round += 1) {
          const fallen = `c${falls.next().value}`;
          fleet = fleet.map((one) => {
            const falling = one.name === fallen && one.state === "ACTIVE";
            return falling ? { ...one, state: "UNREACHABLE", silenceMs: 60_000 } : one;
          });
          const { lost } = judgeLosses(fleet, RULE);
          fleet = fleet.map((one) => (lost.includes(one.name) ? { ...one, state: "LOST" } : one));
          const gone = fleet.filter(({ state }) => state === "LOST");
          assert.ok(gone.length <= 1 || sum(gone) <= RULE.shareMax * sum(fleet));
        }
      },
    ),
  );
});

const flavor = (name: string) => ({ name, resource: "nvidia.com/gpu", nodeLabels: {} });
const node = (gpus: number) => {
  const resources = gpus === 0 ? { cpu: 8000 } : { cpu: 8000, "nvidia.com/gpu": gpus * 1000 };
  return { name: "n", labels: {}, taints: [], unschedulable: false, allocatable: resources, free: resources };
};
const capacity = (...gpus: readonly number[]) => ({ nodes: gpus.map(node), seen: [], unbound: [] });

test("clusters are measured by the devices of their flavors, each counted once, or else by their nodes", () => {
  const flavors = [flavor("gpu/h100"), flavor("gpu/any")];
  const gpus = [
    { name: "a", flavors, capacity: capacity(8, 8) },
    { name: "b", flavors: [], capacity: capacity(0) },
    { name: "c", flavors, capacity: null },
  ];
  assert.deepEqual(Object.fromEntries(clusterSizes(gpus)), { a: 16_000, b: 0, c: 0 });
  const cpus = [
    { name: "a", flavors: [], capacity: capacity(0, 0) },
    { name: "b", flavors, capacity: capacity(0) },
  ];
  assert.deepEqual(Object.fromEntries(clusterSizes(cpus)), { a: 2, b: 1 });
});
