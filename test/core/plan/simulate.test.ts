import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import type { Job } from "../../../src/core/job/job.ts";
import { DEFAULT_POLICY, type QueuePolicy } from "../../../src/core/plan/model/queue-policy.ts";
import type { Simulation } from "../../../src/core/plan/model/simulation.ts";
import type { PlanSnapshot } from "../../../src/core/plan/model/snapshot.ts";
import { plan } from "../../support/plan.ts";
import { simulateOn as simulate } from "../../support/simulate-on.ts";
import {
  AT,
  admission,
  amounts,
  cluster,
  flavor,
  type JobParts,
  job,
  NOW,
  node,
  nodes,
  planGang,
  queue,
  snapshot,
} from "./plan-world.ts";

const workers = (replicas: number, gpus = 8) => job({ name: "new", roles: { Worker: { replicas, gpus } } });
const full = { free: amounts(0) };

/** A simulation in short: `VERDICT reason`, then `cluster VERDICT reason` for each cluster. */
function short({ verdict, reason, clusters }: Simulation): readonly string[] {
  const each = clusters.map((one) => `${one.cluster} ${one.verdict} ${one.refusal?.reason ?? ""}`.trim());
  return [`${verdict} ${reason}`.trim(), ...each];
}

/** A cluster with nodes for two gangs, and a queue with quota for one, which `runs` has. */
function takenBy(parts: Partial<JobParts>, policy: Partial<QueuePolicy>): Parameters<typeof snapshot>[0] {
  const admissions = [
    admission({ cluster: "east", members: { Worker: 1 }, flavors: { "nvidia.com/gpu": "gpu/h100" } }),
  ];
  const runs = job({ name: "runs", roles: { Worker: { replicas: 1, gpus: 16 } }, admissions, ...parts });
  const wide = node("wide", "h100", { allocatable: amounts(64), free: amounts(48) });
  return {
    clusters: [cluster("east", { nodes: [wide] })],
    queues: [queue("q", { h100: 16 }, { used: { "gpu/h100": 16 }, policy: { ...DEFAULT_POLICY, ...policy } })],
    admitted: [runs],
  };
}

type Case = { readonly from: Parameters<typeof snapshot>[0]; readonly job?: Job; readonly says: readonly string[] };

const cases: Readonly<Record<string, Case>> = {
  "a gang for which there is room": { from: {}, says: ["FITS_NOW", "east FITS_NOW"] },
  "a gang that fits with its minimum": {
    from: {},
    job: job({ name: "new", roles: { Worker: { replicas: 3, gpus: 8 } }, minAvailable: 2 }),
    says: ["FITS_NOW", "east FITS_NOW"],
  },
  "a gang that waits for nodes": {
    from: { clusters: [cluster("east", { nodes: nodes(2, "h100", full) })] },
    says: ["WAITS NoCapacity", "east WAITS NoCapacity"],
  },
  "a gang that waits for its quota, though nodes are free": {
    from: { queues: [queue("q", { h100: 8 }, { used: { "gpu/h100": 8 } })] },
    job: workers(1),
    says: ["WAITS QuotaExhausted", "east FITS_NOW"],
  },
  "a gang that is greater than the limit of its queue": {
    from: { queues: [queue("q", { h100: 8 })] },
    says: ["NEVER AboveQuota", "east NEVER AboveQuota"],
  },
  "a gang whose queue has no quota for what it requests": {
    from: { queues: [queue("q", {})] },
    says: ["NEVER NoQuota", "east NEVER NoQuota"],
  },
  "a gang without a queue": { from: { queues: [] }, says: ["NEVER UnknownQueue", "east NEVER UnknownQueue"] },
  "a gang without a cluster": { from: { clusters: [] }, says: ["NEVER NoCluster"] },
  "a gang that is too large for each cluster": {
    from: { clusters: [cluster("east"), cluster("west", { nodes: nodes(1, "h100", full) })] },
    job: workers(3),
    says: ["NEVER TooLarge", "east NEVER TooLarge", "west NEVER TooLarge"],
  },
  "each cluster has a verdict of its own": {
    from: {
      clusters: [
        cluster("a", { nodes: nodes(2, "h100") }),
        cluster("b", { nodes: nodes(2, "h100", full) }),
        cluster("c", { nodes: nodes(1, "h100") }),
        cluster("d", { nodes: nodes(9, "a100") }),
        cluster("e", { cordoned: true }),
        cluster("f", { reachable: false }),
        cluster("g", { capacity: null }),
      ],
      queues: [queue("q", { h100: 99 })],
    },
    says: [
      "FITS_NOW",
      "a FITS_NOW",
      "b WAITS NoCapacity",
      "c NEVER TooLarge",
      "d NEVER NoSuchFlavor",
      "e WAITS Cordoned",
      "f WAITS Unreachable",
      "g WAITS CapacityUnknown",
    ],
  },
  "a cluster that cannot be used and would be too small": {
    from: { clusters: ["b", "a"].map((name) => cluster(name, { cordoned: true, reachable: false })) },
    job: workers(3),
    says: ["NEVER TooLarge", "a NEVER TooLarge", "b NEVER TooLarge"],
  },
  "a cluster that the job does not select": {
    from: { clusters: [cluster("east"), cluster("west")] },
    job: job({ name: "new", roles: { Worker: { replicas: 1, gpus: 8 } }, clusters: ["east"] }),
    says: ["FITS_NOW", "east FITS_NOW", "west NEVER NotSelected"],
  },
  "a flavor of another cluster counts on a cluster without it": {
    from: { clusters: [cluster("east"), cluster("plain", { flavors: [] })] },
    says: ["FITS_NOW", "east FITS_NOW", "plain NEVER NoSuchFlavor"],
  },
  "of two flavors, one without quota now and one without nodes": {
    from: {
      clusters: [cluster("east", { nodes: [...nodes(2, "h100"), node("small", "a100", { allocatable: amounts(1) })] })],
      queues: [queue("q", { h100: 16, a100: 16 }, { used: { "gpu/h100": 1 } })],
    },
    says: ["WAITS QuotaExhausted", "east FITS_NOW"],
  },
  "jobs of a strict queue that wait before it": {
    from: {
      waiting: [job({ name: "head", roles: { Worker: { replicas: 3, gpus: 8 } } })],
      queues: [queue("q", { h100: 999 }, { strategy: "STRICT_FIFO" })],
    },
    job: { ...workers(1), createTimeMs: NOW },
    says: ["WAITS BehindHead", "east FITS_NOW"],
  },
  "a job that would take the room before it": {
    from: { waiting: [job({ name: "head", roles: { Worker: { replicas: 2, gpus: 8 } } })] },
    job: { ...workers(1), createTimeMs: NOW },
    says: ["WAITS NoCapacity", "east FITS_NOW"],
  },
  "a job for which others would be preempted": {
    from: takenBy({ priority: -1 }, { withinQueue: "LOWER_PRIORITY" }),
    says: ["WAITS Preempting", "east FITS_NOW"],
  },
  "a job that would get a reservation": {
    from: takenBy({}, {}),
    says: ["WAITS Reserving", "east FITS_NOW"],
  },
};

for (const [name, { from, job: one = workers(2), says }] of Object.entries(cases)) {
  test(`a simulation: ${name}`, () => assert.deepEqual(short(simulate(snapshot(from), one, AT)), says));
}

test("a simulation that fits names the admission, and one that does not names the quotas", () => {
  const fits = simulate(snapshot({}), workers(2), AT);
  assert.deepEqual(
    [fits.admission?.cluster, fits.admission?.members, fits.admission?.flavors, fits.message],
    ["east", { Worker: 2 }, { "nvidia.com/gpu": "gpu/h100" }, ""],
  );
  const above = simulate(snapshot({ queues: [queue("q", { h100: 8 })] }), workers(2), AT);
  assert.equal(above.message, "needs 16 of gpu/h100; queue q may use 8 at most");
  assert.deepEqual(
    above.quotas.map(({ reason, need, limit }) => [reason, need, limit]),
    [["AboveQuota", 16, 8]],
  );
});

test("a suspended job, and one with a cache key, is judged as if neither held it back", () => {
  const one = workers(2);
  const runPolicy = { ...one.spec.runPolicy, suspend: true, cacheKey: "k" };
  const held: Job = { ...one, spec: { ...one.spec, runPolicy }, status: { ...one.status, phase: "SUSPENDED" } };
  assert.equal(simulate(snapshot({}), held, AT).verdict, "FITS_NOW");
});

const someNode = fc
  .record({
    model: fc.constantFrom("h100", "a100"),
    size: fc.integer({ min: 1, max: 8 }),
    used: fc.nat(8),
    cordoned: fc.nat(4).map((n) => n === 0),
    tainted: fc.nat(4).map((n) => n === 0),
  })
  .map(({ model, size, used, cordoned, tainted }) => ({
    allocatable: amounts(size),
    free: amounts(Math.max(0, size - used)),
    unschedulable: cordoned,
    taints: tainted ? [{ key: "dedicated", value: "ml", effect: "NoSchedule" }] : [],
    model,
  }));
const someCluster = (name: string) =>
  fc.record({ all: fc.array(someNode, { maxLength: 4 }), open: fc.nat(4).map((n) => n > 0) }).map(({ all, open }) =>
    cluster(name, {
      nodes: all.map(({ model, ...facts }, at) => node(`${name}-${at}`, model, facts)),
      flavors: [flavor("h100"), flavor("a100")],
      reachable: open,
    }),
  );
const someJob = fc
  .record({
    replicas: fc.integer({ min: 1, max: 3 }),
    gpus: fc.integer({ min: 0, max: 9 }),
    spare: fc.nat(1),
    priority: fc.nat(2),
    createTimeMs: fc.nat(3),
  })
  .map(
    ({ replicas, gpus, spare, ...rest }) =>
      (name: string) =>
        job({ name, roles: { Worker: { replicas, gpus } }, minAvailable: Math.max(1, replicas - spare), ...rest }),
  );
const someWorld = fc
  .record({
    clusters: fc.tuple(someCluster("east"), someCluster("west")),
    waiting: fc.array(someJob, { maxLength: 3 }),
    nominal: fc.tuple(fc.nat(20), fc.nat(20)),
    used: fc.nat(8),
    strict: fc.boolean(),
  })
  .map(({ clusters, waiting, nominal: [h100, a100], used, strict }) => {
    const strategy = strict ? ("STRICT_FIFO" as const) : ("BEST_EFFORT_FIFO" as const);
    return snapshot({
      clusters,
      waiting: waiting.map((make, at) => make(`before-${at}`)),
      queues: [queue("q", { h100, a100 }, { used: { "gpu/h100": Math.min(used, h100) }, strategy })],
    });
  });

const admits = (from: PlanSnapshot, one: Job) => plan(from, AT).admissions.some(({ jobUid }) => jobUid === one.uid);

/** The same world once everything that runs has ended and every cluster and node is back. */
function emptied(from: PlanSnapshot): PlanSnapshot {
  const clusters = from.clusters.map((one) => {
    const all = one.capacity?.nodes.map((each) => ({ ...each, free: each.allocatable, unschedulable: false })) ?? [];
    return { ...one, reachable: true, cordoned: false, capacity: { nodes: all, seen: [], unbound: [] } };
  });
  return { ...from, clusters, waiting: [], admitted: [], sums: [], callers: [] };
}

test("a simulation equals the next plan: it fits now if, and only if, the plan would admit it", () => {
  const verdicts = new Set<string>();
  fc.assert(
    fc.property(someWorld, someJob, (from, make) => {
      const one = make("new");
      const { verdict, admission: would } = simulate(from, one, AT);
      verdicts.add(verdict);
      const next = plan({ ...from, waiting: [...from.waiting, planGang(one)] }, AT);
      assert.deepEqual(would, next.admissions.find(({ jobUid }) => jobUid === one.uid) ?? null);
      assert.equal(verdict === "FITS_NOW", would !== null);
    }),
    { numRuns: 500 },
  );
  assert.deepEqual([...verdicts].sort(), ["FITS_NOW", "NEVER", "WAITS"]);
});

test("never means that not even an empty world admits the job, and anything else that it would", () => {
  fc.assert(
    fc.property(someWorld, someJob, (from, make) => {
      const one = make("new");
      const { verdict, clusters } = simulate(from, one, AT);
      const world = emptied(from);
      assert.equal(verdict !== "NEVER", admits({ ...world, waiting: [planGang(one)] }, one));
      for (const { cluster: name, verdict: own } of clusters) {
        const alone = world.clusters.map((each) => ({ ...each, cordoned: each.name !== name }));
        assert.equal(own !== "NEVER", admits({ ...world, waiting: [planGang(one)], clusters: alone }, one), name);
      }
    }),
    { numRuns: 500 },
  );
});

test("a job that runs elsewhere keeps the room of its members", () => {
  const running = job({
    name: "running",
    roles: { Worker: { replicas: 1, gpus: 8 } },
    admissions: [
      admission({ cluster: "east", members: { Worker: 1 }, flavorLabels: { "nvidia.com/gpu": { gpu: "h100" } } }),
    ],
  });
  // It has not waited long enough for a reservation.
  const fresh = { ...workers(2), createTimeMs: NOW };
  assert.deepEqual(short(simulate(snapshot({ admitted: [running] }), fresh, AT)), [
    "WAITS NoCapacity",
    "east WAITS NoCapacity",
  ]);
});
