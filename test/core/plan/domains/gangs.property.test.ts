/** Gangs that wish for domains: what is planned of them, alone against every way, and beside each other. */
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import type { TopologyWish } from "../../../../src/core/job/placement/topology-wish.ts";
import type { PlannedAdmission } from "../../../../src/core/plan/model/plan-types.ts";
import { plan } from "../../../support/plan.ts";
import { AT, amounts, cluster, flavor, type JobParts, job, node, queue, snapshot } from "../plan-world.ts";

const LEVELS = [
  { name: "block", label: "example.com/block" },
  { name: "rack", label: "example.com/rack" },
  { name: "host", label: "kubernetes.io/hostname" },
];

type Host = { readonly block: string; readonly rack: string; readonly free: number };

const someHosts = (maxLength: number) =>
  fc.array(fc.record({ block: fc.constantFrom("b1", "b2"), rack: fc.constantFrom("r1", "r2"), free: fc.nat(8) }), {
    minLength: 1,
    maxLength,
  });

const someLevel = fc.constantFrom("block", "rack", "host", "example.com/rack");
const someWish: fc.Arbitrary<TopologyWish | undefined> = fc.oneof(
  fc.constant(undefined),
  fc.record({ required: someLevel }),
  fc.record({ preferred: someLevel }),
);

/** The workers of a job, whose number their slices divide. */
const someWorkers = fc
  .record({ size: fc.constantFrom(0, 1, 2, 3), times: fc.integer({ min: 1, max: 4 }), gpus: fc.constantFrom(1, 2, 4) })
  .chain(({ size, times, gpus }) =>
    fc.record({ wish: someWish, level: fc.constantFrom("rack", "host") }).map(({ wish, level }) => {
      const slices = size === 0 ? {} : { slices: [{ level, size }] };
      const topology = { ...wish, ...slices };
      return { replicas: times * Math.max(1, size), gpus, ...(Object.keys(topology).length === 0 ? {} : { topology }) };
    }),
  );

function nodesOf(hosts: readonly Host[]) {
  return hosts.map(({ block, rack, free }, at) => {
    const labels = {
      gpu: "h100",
      "example.com/block": block,
      "example.com/rack": rack,
      "kubernetes.io/hostname": `h${at}`,
    };
    return node(`n${at}`, "h100", { labels, free: amounts(free, 1000), allocatable: amounts(8, 1000) });
  });
}

function planOf(hosts: readonly Host[], waiting: readonly JobParts[]) {
  return plan(
    snapshot({
      waiting: waiting.map((parts, at) => job({ createTimeMs: at, ...parts })),
      queues: [queue("q", { h100: 1000 })],
      clusters: [cluster("east", { nodes: nodesOf(hosts), flavors: [flavor("h100")], topology: LEVELS })],
    }),
    AT,
  );
}

/** The domain of a node at a level, by its name or label. */
function domainOf(hosts: readonly Host[], name: string, level: string): string {
  const { block, rack } = hosts[Number(name.slice(1))] as Host;
  const depth = LEVELS.findIndex((one) => one.name === level || one.label === level);
  return [block, rack, name].slice(0, depth + 1).join("/");
}

/** The node of each member of a type, by index, with the nodes that may take it as well. */
function nodesOfRole({ runs = [] }: PlannedAdmission, role: string): readonly (readonly string[])[] {
  const own = runs.filter((run) => run.role === role).sort((a, b) => a.first - b.first);
  return own.flatMap(({ count, node: planned, others }) => Array.from({ length: count }, () => [planned, ...others]));
}

/** Fails if a member may run outside of the domains that its wishes demand. */
function checkWish(hosts: readonly Host[], members: readonly (readonly string[])[], wish: TopologyWish): void {
  const areIn = (some: readonly (readonly string[])[], level: string) => {
    assert.equal(new Set(some.flat().map((name) => domainOf(hosts, name, level))).size, 1, JSON.stringify(some));
  };
  if (wish.required !== undefined) areIn(members, wish.required);
  for (const { level, size } of wish.slices ?? []) {
    for (let from = 0; from < members.length; from += size) areIn(members.slice(from, from + size), level);
  }
}

function checkAdmission(hosts: readonly Host[], planned: PlannedAdmission, { roles, topology }: JobParts): void {
  for (const [role, one] of Object.entries(roles)) {
    const members = nodesOfRole(planned, role);
    assert.equal(members.length, one.replicas);
    if (one.topology !== undefined) checkWish(hosts, members, one.topology);
  }
  if (topology?.required !== undefined) {
    checkWish(
      hosts,
      Object.keys(roles).flatMap((role) => nodesOfRole(planned, role)),
      topology,
    );
  }
}

/** True if some way puts the workers of one type on hosts as they wish. */
function hasWay(
  hosts: readonly Host[],
  {
    replicas,
    gpus,
    topology = {},
  }: { readonly replicas: number; readonly gpus: number; readonly topology?: TopologyWish },
  placed: readonly number[] = [],
): boolean {
  const left = replicas - placed.reduce((sum, one) => sum + one, 0);
  if (placed.length === hosts.length) {
    if (left > 0) return false;
    const sums = (level: string) => {
      const all = placed.map((pods, at) => [domainOf(hosts, `n${at}`, level), pods] as const);
      const byDomain = Map.groupBy(all, ([domain]) => domain);
      return [...byDomain.values()].map((some) => some.reduce((sum, [, pods]) => sum + pods, 0));
    };
    const isTogether = topology.required === undefined || sums(topology.required).filter((sum) => sum > 0).length === 1;
    return (
      isTogether && (topology.slices ?? []).every(({ level, size }) => sums(level).every((sum) => sum % size === 0))
    );
  }
  const most = Math.min(left, Math.floor((hosts[placed.length]?.free ?? 0) / gpus));
  return Array.from({ length: most + 1 }, (_, pods) => pods).some((pods) =>
    hasWay(hosts, { replicas, gpus, topology }, [...placed, pods]),
  );
}

test("a gang of one type is admitted if and only if there is a way, and only nodes as it wishes may take it", () => {
  const met = { admitted: 0, refused: 0, full: 0 };
  fc.assert(
    fc.property(someHosts(6), someWorkers, (hosts, workers) => {
      const parts = { name: "x", roles: { Worker: workers } };
      const { admissions, refusals } = planOf(hosts, [parts]);
      const [planned] = admissions;
      assert.equal(planned !== undefined, hasWay(hosts, workers), JSON.stringify(refusals));
      met[planned === undefined ? "refused" : "admitted"] += 1;
      if (planned === undefined && refusals[0]?.reason === "DomainFull") met.full += 1;
      if (planned !== undefined) checkAdmission(hosts, planned, parts);
    }),
    { numRuns: 1_000 },
  );
  assert.ok(met.admitted > 200 && met.refused > 100 && met.full > 10, JSON.stringify(met));
});

const someGang = fc.record({
  workers: someWorkers,
  master: fc.option(fc.record({ gpus: fc.constantFrom(1, 3), topology: someWish })),
  topology: someWish,
});

test("of gangs beside each other, each is as it wishes, and no node holds more than it has", () => {
  const met = { admitted: 0, together: 0 };
  fc.assert(
    fc.property(someHosts(8), fc.array(someGang, { minLength: 1, maxLength: 5 }), (hosts, gangs) => {
      const all = gangs.map(({ workers, master, topology }, at): JobParts => {
        const { topology: own, ...leading } = master ?? { gpus: 0, topology: undefined };
        const first = master === null ? {} : { Master: { replicas: 1, ...leading, ...(own ? { topology: own } : {}) } };
        return { name: `g${at}`, roles: { ...first, Worker: workers }, ...(topology ? { topology } : {}) };
      });
      const used = new Map<string, number>();
      for (const planned of planOf(hosts, all).admissions) {
        const parts = all.find(({ name }) => planned.jobUid === `uid-${name}`) as JobParts;
        checkAdmission(hosts, planned, parts);
        met.admitted += 1;
        if (parts.topology?.required !== undefined) met.together += 1;
        for (const [role, { gpus = 0 }] of Object.entries(parts.roles)) {
          for (const [name = ""] of nodesOfRole(planned, role)) used.set(name, (used.get(name) ?? 0) + gpus);
        }
      }
      for (const [name, gpus] of used) assert.ok(gpus <= (hosts[Number(name.slice(1))]?.free ?? 0), `${name}: ${gpus}`);
    }),
    { numRuns: 500 },
  );
  assert.ok(met.admitted > 200 && met.together > 50, JSON.stringify(met));
});

test("wishes that bind no pod never keep a gang from being admitted", () => {
  const met = { admitted: 0, refused: 0 };
  const somePreferred = fc.option(fc.record({ preferred: someLevel }), { nil: undefined });
  const someType = fc.record({
    replicas: fc.integer({ min: 1, max: 3 }),
    gpus: fc.constantFrom(1, 2, 4, 8),
    topology: somePreferred,
    zone: fc.option(fc.constantFrom("b1", "b2"), { nil: undefined }),
  });
  fc.assert(
    fc.property(
      someHosts(5),
      fc.array(someType, { minLength: 1, maxLength: 3 }),
      somePreferred,
      (hosts, types, all) => {
        const partsOf = (wishes: boolean): JobParts => {
          const roles = types.map(({ replicas, gpus, topology, zone }, at) => {
            const pod = zone === undefined ? {} : { nodeSelector: { "example.com/block": zone } };
            return [
              ["Master", "Worker", "PS"][at],
              { replicas, gpus, pod, ...(wishes && topology ? { topology } : {}) },
            ];
          });
          return { name: "x", roles: Object.fromEntries(roles), ...(wishes && all ? { topology: all } : {}) };
        };
        const [planned] = planOf(hosts, [partsOf(true)]).admissions;
        const isAdmitted = planOf(hosts, [partsOf(false)]).admissions.length > 0;
        assert.equal(planned !== undefined, isAdmitted);
        met[isAdmitted ? "admitted" : "refused"] += 1;
      },
    ),
    { numRuns: 600 },
  );
  assert.ok(met.admitted > 100 && met.refused > 100, JSON.stringify(met));
});

test("types whose flavors have levels of their own are in one domain of the job's level all the same", () => {
  const hosts: readonly Host[] = ["r1", "r1", "r2", "r2"].map((rack) => ({ block: "b1", rack, free: 8 }));
  const own = { ...flavor("h100"), topology: LEVELS.slice(1) };
  const types = { Master: { replicas: 1, cpu: 1 }, Worker: { replicas: 3, gpus: 2 } };
  const parts: JobParts = { name: "x", roles: types, topology: { required: "rack" } };
  const made = plan(
    snapshot({
      waiting: [job(parts)],
      queues: [queue("q", { h100: 1000 })],
      clusters: [cluster("east", { nodes: nodesOf(hosts), flavors: [own], topology: LEVELS })],
    }),
    AT,
  );
  const [planned] = made.admissions;
  assert.ok(planned !== undefined, JSON.stringify(made.refusals));
  checkAdmission(hosts, planned, parts);
});
