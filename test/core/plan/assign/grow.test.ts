import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import type { Job } from "../../../../src/core/job/job.ts";
import { firstMembers, memberCount } from "../../../../src/core/job/roles.ts";
import { plan } from "../../../support/plan.ts";
import { AT, admission, cluster, job, NOW, nodes, queue, type SnapshotParts, snapshot } from "../plan-world.ts";

type Parts = { readonly has: number; readonly of: number; readonly queue?: string; readonly cluster?: string };

/** A TFJob whose members take a node each, and of which it has some: a third of them are parameter servers. */
function running(name: string, { has, of, queue: inQueue = "q", cluster: at = "east" }: Parts): Job {
  const servers = Math.floor(of / 3);
  const roles = { Worker: { replicas: of - servers, gpus: 8 }, PS: { replicas: servers, gpus: 8 } };
  const made = job({ name, roles, queue: inQueue, minAvailable: 1 });
  const facts = { flavors: { "nvidia.com/gpu": "gpu/h100" }, nodeLabels: { gpu: "h100" } };
  const live = admission({ cluster: at, members: firstMembers(made.spec, has), ...facts });
  return { ...made, spec: { ...made.spec, kind: "TFJob" }, admissions: [live] };
}

const elastic = (one: Job): Job => ({ ...one, spec: { ...one.spec, kindSpec: { enableDynamicWorker: true } } });

/** `name members` of each growth, in the plan's order. */
function grown(parts: SnapshotParts): readonly string[] {
  const made = plan(snapshot({ clusters: [cluster("east", { nodes: nodes(4, "h100") })], ...parts }), AT);
  const growths = made.admissions.filter(({ kind }) => kind === "grow");
  return growths.map(({ jobUid, members }) => `${jobUid.slice(4)} ${memberCount(members)}`);
}

test("an elastic gang grows by all members that there is room for, in the order in which members are admitted", () => {
  const some = fc.record({
    has: fc.integer({ min: 1, max: 9 }),
    lacks: fc.integer({ min: 1, max: 9 }),
    free: fc.nat(12),
  });
  fc.assert(
    fc.property(some, ({ has, lacks, free }) => {
      const one = elastic(running("a", { has, of: has + lacks }));
      const clusters = [cluster("east", { nodes: nodes(has + free, "h100") })];
      const [growth] = plan(snapshot({ admitted: [one], clusters }), AT).admissions;
      const more = Math.min(free, lacks);
      assert.deepEqual(growth?.members, more === 0 ? undefined : firstMembers(one.spec, has + more));
      assert.equal(growth?.allocations[0]?.amount, more === 0 ? undefined : more * 8);
    }),
  );
});

const small = running("a", { has: 1, of: 2 });
const [live] = small.admissions;
const { spec } = small;

const stays: Record<string, SnapshotParts> = {
  "it has all its members": { admitted: [running("a", { has: 2, of: 2 })] },
  "its cancellation was requested": { admitted: [{ ...small, cancel: { reason: "", atMs: NOW } }] },
  "its deletion was requested": { admitted: [{ ...small, deleteTimeMs: NOW }] },
  "it is suspended": { admitted: [{ ...small, spec: { ...spec, runPolicy: { ...spec.runPolicy, suspend: true } } }] },
  "its admission has ended": { admitted: [{ ...small, admissions: [{ ...live!, state: "ended" }] }] },
  "it has no cluster": { admitted: [{ ...small, admissions: [{ ...live!, cluster: null }] }] },
  "its cluster is not known": { admitted: [running("a", { has: 1, of: 2, cluster: "west" })] },
  "its cluster is retired": { admitted: [small], clusters: [cluster("east", { simulated: true, retired: true })] },
  "its cluster is cordoned": { admitted: [small], clusters: [cluster("east", { cordoned: true })] },
  "its cluster cannot be reached": { admitted: [small], clusters: [cluster("east", { reachable: false })] },
  "the capacity of its cluster is not known": { admitted: [small], clusters: [cluster("east", { capacity: null })] },
  "its cluster has no room for all members": {
    admitted: [small],
    clusters: [cluster("east", { nodes: nodes(1, "h100") })],
  },
  "its cluster has no room for any more": {
    admitted: [elastic(small)],
    clusters: [cluster("east", { nodes: nodes(1, "h100") })],
  },
  "its kind is not known, and its cluster has no room for all members": {
    admitted: [
      { ...elastic(running("a", { has: 1, of: 9 })), spec: { ...running("a", { has: 1, of: 9 }).spec, kind: "Gone" } },
    ],
  },
  "its kind has no replica types that may grow, and its cluster has no room for all members": {
    admitted: [{ ...running("a", { has: 1, of: 9 }), spec: { ...running("a", { has: 1, of: 9 }).spec, kind: "Job" } }],
  },
  "its queue is not known": { admitted: [running("a", { has: 1, of: 2, queue: "nowhere" })] },
  "its queue has no quota left": { admitted: [small], queues: [queue("q", { h100: 15 }, { used: { "gpu/h100": 8 } })] },
  "its flavors lack one that its members now request": {
    admitted: [{ ...small, admissions: [{ ...live!, flavors: {} }] }],
  },
};
for (const [name, parts] of Object.entries(stays)) {
  test(`a gang does not grow if ${name}`, () => assert.deepEqual(grown(parts), []));
}

test("a gang that needs no flavor grows without a quota", () => {
  const one = job({ name: "a", queue: "nowhere", roles: { Worker: { replicas: 2, cpu: 1 } }, minAvailable: 1 });
  const admitted = [{ ...one, admissions: [admission({ cluster: "east", members: { Worker: 1 } })] }];
  assert.deepEqual(grown({ admitted }), ["a 2"]);
});

test("of gangs that could grow, the first is the one with the higher priority, then the older one", () => {
  const parts = { has: 1, of: 2 };
  const young = { ...running("a", parts), createTimeMs: 2 };
  const old = { ...running("b", parts), createTimeMs: 1 };
  const high = running("c", parts);
  const first = { ...high, createTimeMs: 3, spec: { ...high.spec, priority: 1 } };
  const clusters = [cluster("east", { nodes: nodes(5, "h100") })];
  assert.deepEqual(grown({ admitted: [young, old, first], clusters }), ["c 2", "b 2"]);
});
