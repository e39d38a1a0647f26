import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { type FlavorLabels, ofRole, podNodeLabels } from "../../../src/core/job/flavor-labels.ts";
import { memberCount } from "../../../src/core/job/roles.ts";
import type { Ask, PodClass } from "../../../src/core/plan/model/ask.ts";
import type { PlanGang } from "../../../src/core/plan/model/plan-gang.ts";
import type { Plan, PlannedAdmission } from "../../../src/core/plan/model/plan-types.ts";
import type { NodeCapacity, PlanSnapshot } from "../../../src/core/plan/model/snapshot.ts";
import { nodeAllows } from "../../../src/core/pods/node-match.ts";
import { fitsIn, podRequests, type Resources, subtractResources } from "../../../src/core/pods/resources.ts";
import { type JsonObject, objectAt } from "../../../src/runtime/json.ts";
import { plan } from "../../support/plan.ts";
import { AT, admission, amounts, cluster, job, NOW, node, planGang, queue, snapshot } from "./plan-world.ts";

const MODELS = ["h100", "a100"];

const someNode = fc.record({
  model: fc.constantFrom(...MODELS),
  gpus: fc.integer({ min: 0, max: 8 }),
  cpu: fc.integer({ min: 0, max: 16 }),
  zone: fc.constantFrom("a", "b"),
  cordoned: fc.nat(4).map((n) => n === 0),
  tainted: fc.boolean(),
});
const someNodes = fc.array(someNode, { maxLength: 6 }).map((list) =>
  list.map(({ model, gpus, cpu, zone, cordoned, tainted }, at) =>
    node(`node-${at}`, model, {
      labels: { gpu: model, zone },
      unschedulable: cordoned,
      taints: tainted ? [{ key: "dedicated", value: "ml", effect: "NoSchedule" }] : [],
      allocatable: amounts(8, 16),
      free: amounts(gpus, cpu),
    }),
  ),
);
const somePod = fc.constantFrom(
  {},
  {},
  { nodeSelector: { zone: "b" } },
  { tolerations: [{ key: "dedicated", operator: "Exists" }] },
);
const someRole = fc.record({
  replicas: fc.integer({ min: 1, max: 4 }),
  gpus: fc.integer({ min: 0, max: 4 }),
  cpu: fc.integer({ min: 0, max: 4 }),
  pod: somePod,
});
const someJob = fc.record({
  master: someRole,
  worker: fc.option(someRole),
  spare: fc.nat(3),
  queue: fc.constantFrom("q", "strict", "nowhere"),
  priority: fc.nat(1),
  createTimeMs: fc.nat(3),
  gpuModels: fc.constantFrom([], [], ["h100"], ["gpu/a100"]),
  backoff: fc.constantFrom(
    null,
    null,
    { undone: 1, notBeforeMs: NOW + 5, lastCluster: "east" },
    { undone: 2, notBeforeMs: NOW, lastCluster: "west" },
  ),
});
const someJobs = fc.array(someJob, { minLength: 1, maxLength: 6 }).map((list) =>
  list.map(({ master, worker, spare, ...rest }, at) => {
    const roles = { Master: master, ...(worker === null ? {} : { Worker: worker }) };
    const total = master.replicas + (worker?.replicas ?? 0);
    return job({ ...rest, name: `job-${at}`, roles, minAvailable: Math.max(1, total - spare) });
  }),
);
const someCluster = (name: string) =>
  fc
    .record({ all: someNodes, cordoned: fc.nat(5).map((n) => n === 0), reachable: fc.nat(5).map((n) => n > 0) })
    .map(({ all, ...rest }) =>
      cluster(name, {
        nodes: all,
        ...rest,
        flavors: cluster("x", { nodes: [node("h", "h100"), node("a", "a100")] }).flavors,
      }),
    );
const someSnapshot = fc
  .record({
    jobs: someJobs,
    clusters: fc.tuple(someCluster("east"), someCluster("west")),
    nominal: fc.array(fc.nat(24), { minLength: 4, maxLength: 4 }),
    used: fc.nat(6),
  })
  .map(({ jobs, clusters, nominal, used }) =>
    snapshot({
      waiting: jobs,
      clusters: [...clusters],
      queues: [
        queue("q", { h100: nominal[0]!, a100: nominal[1]! }, { used: { "gpu/h100": used } }),
        queue("strict", { a100: nominal[2]!, h100: nominal[3]! }, { strategy: "STRICT_FIFO" }),
      ],
    }),
  );

function gangOf(from: PlanSnapshot, planned: PlannedAdmission): PlanGang {
  return [...from.waiting, ...from.admitted].find((one) => one.uid === planned.jobUid)!;
}

/** The class of the pods of a replica type. */
function classOf({ ask }: PlanGang, role: string): PodClass {
  return ask.podClasses[ask.roles.find((one) => one.role === role)!.podClass]!;
}

/** The use of a pool by a queue's own allocations. */
function usedBy(from: PlanSnapshot, queueName: string, pool: string): number {
  const found = from.sums.find(
    ({ scope }) => scope.kind === "queue" && scope.queue === queueName && scope.pool === pool,
  );
  return found?.used ?? 0;
}

type Pod = {
  readonly jobUid: string;
  readonly spec: JsonObject;
  readonly requests: Resources;
  readonly flavorLabels: FlavorLabels;
};

/** Every pod that a plan sends to a cluster. */
function podsFor(from: PlanSnapshot, made: Plan, clusterName: string): readonly Pod[] {
  return made.admissions
    .filter((planned) => planned.cluster === clusterName)
    .flatMap((planned) =>
      Object.entries(planned.members).flatMap(([role, count]) => {
        const { jobUid } = planned;
        const flavorLabels = ofRole(planned.flavorLabels, role);
        const { scheduling: spec, requests } = classOf(gangOf(from, planned), role);
        return Array.from({ length: count }, () => ({ jobUid, spec, requests, flavorLabels }));
      }),
    );
}

/** Tries every way to place the pods, one pod and one node at a time; alike pods take nodes in rising order. */
function canPlace(pods: readonly Pod[], all: readonly NodeCapacity[]): boolean {
  const order = [...pods].sort((a, b) => (b.requests["nvidia.com/gpu"] ?? 0) - (a.requests["nvidia.com/gpu"] ?? 0));
  const dead = new Set<string>();
  const search = (at: number, free: readonly Resources[]): boolean => {
    const pod = order[at];
    if (pod === undefined) return true;
    const key = `${at}|${JSON.stringify(free)}`;
    if (dead.has(key)) return false;
    for (const [index, one] of all.entries()) {
      const allowed =
        nodeAllows(pod.spec, one) &&
        Object.entries(podNodeLabels(pod.requests, pod.flavorLabels)).every(([k, v]) => one.labels[k] === v);
      if (!allowed || !fitsIn(pod.requests, free[index]!)) continue;
      const next = free.map((amount, i) => (i === index ? subtractResources(amount, pod.requests) : amount));
      if (search(at + 1, next)) return true;
    }
    dead.add(key);
    return false;
  };
  return search(
    0,
    all.map((one) => one.free),
  );
}

/** The pods of all members of a gang, or of the first that it accepts. */
const podsOf = ({ roles }: Ask, which: "replicas" | "first") => roles.reduce((sum, role) => sum + role[which], 0);

test("every waiting job is admitted or refused, exactly once", () => {
  fc.assert(
    fc.property(someSnapshot, (from) => {
      const made = plan(from, AT);
      const named = [...made.admissions.map((a) => a.jobUid), ...made.refusals.map((r) => r.jobUid)].sort();
      assert.deepEqual(named, from.waiting.map((one) => one.uid).sort());
    }),
  );
});

test("a gang is admitted with all its members, or with some between them and its minimum", () => {
  fc.assert(
    fc.property(someSnapshot, (from) => {
      for (const planned of plan(from, AT).admissions) {
        const { ask } = gangOf(from, planned);
        for (const { role, replicas, first } of ask.roles) {
          const count = planned.members[role] ?? 0;
          assert.ok(count >= first && count <= replicas, `${count} of ${role}, ${first} to ${replicas}`);
        }
      }
    }),
  );
});

test("every admitted pod can be placed on a node of its cluster", () => {
  fc.assert(
    fc.property(someSnapshot, (from) => {
      const made = plan(from, AT);
      for (const one of from.clusters) {
        assert.ok(canPlace(podsFor(from, made, one.name), one.capacity!.nodes), one.name);
      }
    }),
  );
});

test("a plan never takes more of a flavor than a queue's quota leaves", () => {
  fc.assert(
    fc.property(someSnapshot, (from) => {
      const allocations = plan(from, AT).admissions.flatMap((planned) => planned.allocations);
      for (const one of from.queues) {
        for (const quota of one.quotas) {
          const taken = allocations.filter((l) => l.queue === one.name && l.pool === quota.flavor);
          if (taken.length === 0) continue;
          const sum = taken.reduce((total, l) => total + l.amount, usedBy(from, one.name, quota.flavor));
          assert.ok(sum <= quota.nominal);
        }
      }
    }),
  );
});

test("every admitted GPU is in an allocation, under the flavor of its nodes", () => {
  fc.assert(
    fc.property(someSnapshot, (from) => {
      for (const planned of plan(from, AT).admissions) {
        const gang = gangOf(from, planned);
        const byPool: Record<string, number> = {};
        for (const [role, count] of Object.entries(planned.members)) {
          const gpus = (count * (classOf(gang, role).requests["nvidia.com/gpu"] ?? 0)) / 1000;
          const pool = `gpu/${ofRole(planned.flavorLabels, role)["nvidia.com/gpu"]?.["gpu"]}`;
          if (gpus > 0) byPool[pool] = (byPool[pool] ?? 0) + gpus;
        }
        assert.deepEqual(Object.fromEntries(planned.allocations.map(({ pool, amount }) => [pool, amount])), byPool);
      }
    }),
  );
});

test("the same snapshot gives the same plan, also with its clusters and jobs in another order", () => {
  fc.assert(
    fc.property(someSnapshot, (from) => {
      const made = plan(from, AT);
      assert.deepEqual(plan(structuredClone(from), AT), made);
      const turned = { ...from, waiting: from.waiting.toReversed(), clusters: from.clusters.toReversed() };
      assert.deepEqual(plan(turned, AT), made);
    }),
  );
});

test("a cordoned or unreachable cluster gets no gang", () => {
  fc.assert(
    fc.property(someSnapshot, (from) => {
      const open = from.clusters.filter((one) => one.reachable && !one.cordoned).map((one) => one.name);
      for (const planned of plan(from, AT).admissions) assert.ok(open.includes(planned.cluster ?? ""));
    }),
  );
});

test("each admission to a cluster expects the counter after those before it", () => {
  fc.assert(
    fc.property(someSnapshot, (from) => {
      const made = plan(from, AT);
      for (const one of from.clusters) {
        const counters = made.admissions.filter((a) => a.cluster === one.name).map((a) => a.admissionCounter);
        assert.deepEqual(
          counters,
          counters.map((_, at) => one.admissionCounter + at),
        );
      }
    }),
  );
});

test("more room never refuses a gang that would be admitted alone", () => {
  fc.assert(
    fc.property(someSnapshot, someNodes, (from, more) => {
      const alone = { ...from, waiting: from.waiting.slice(0, 1) };
      fc.pre(plan(alone, AT).admissions.length === 1);
      const added = more.map((one, at) => ({ ...one, name: `more-${at}` }));
      const wider = alone.clusters.map((one) => ({
        ...one,
        capacity: { ...one.capacity!, nodes: [...one.capacity!.nodes, ...added] },
      }));
      assert.equal(plan({ ...alone, clusters: wider }, AT).admissions.length, 1);
    }),
    { numRuns: 500 },
  );
});

test("a gang that fits a cluster alone, by trying every way, is not refused for lack of room", () => {
  fc.assert(
    fc.property(someSnapshot, (from) => {
      const one = { ...from.waiting[0]!, backoff: null };
      const alone = {
        ...from,
        waiting: [one],
        queues: [queue("q", { h100: 99 }), queue("strict", { h100: 99 }), queue("nowhere", { h100: 99 })],
      };
      const made = plan(alone, AT);
      fc.pre(["NoCapacity", "TooLarge"].includes(made.refusals[0]?.reason ?? ""));
      const least = { ...one, admissions: [] };
      const minimum = plan({ ...alone, clusters: alone.clusters.map(roomy), waiting: [least] }, AT).admissions[0];
      fc.pre(minimum !== undefined && memberCount(minimum.members) === podsOf(one.ask, "first"));
      for (const each of alone.clusters.filter((c) => c.reachable && !c.cordoned)) {
        const pods = podsFor(
          alone,
          { admissions: [{ ...minimum, cluster: each.name }], inLine: null, refusals: [], replanAtMs: null },
          each.name,
        );
        assert.ok(!canPlace(pods, each.capacity!.nodes), each.name);
      }
    }),
    { numRuns: 300 },
  );
});

function roomy(one: PlanSnapshot["clusters"][number]) {
  const all = ["a", "b"].flatMap((zone) =>
    Array.from({ length: 8 }, (_, at) => node(`${zone}-${at}`, "h100", { labels: { gpu: "h100", zone } })),
  );
  return { ...one, cordoned: false, reachable: true, capacity: { nodes: all, seen: [], unbound: [] } };
}

test("members that no node shows yet keep their room", () => {
  fc.assert(
    fc.property(someNodes, someRole, fc.nat(4), someJobs, (all, role, shown, waiting) => {
      const running = job({
        name: "running",
        roles: { Worker: role },
        admissions: [admission({ cluster: "east", members: { Worker: role.replicas } })],
      });
      const empty = { ...snapshot({ admitted: [running], clusters: [cluster("east", { nodes: all })] }) };
      const pod = objectAt(running.spec.replicaSpecs["Worker"]?.template, "spec");
      const held = Array.from({ length: Math.max(0, role.replicas - shown) }, () => ({
        jobUid: running.uid,
        spec: pod,
        requests: podRequests(pod),
        flavorLabels: {},
      }));
      fc.pre(canPlace(held, all));
      const seen = Array.from({ length: Math.min(shown, role.replicas) }, (_, index) => ({
        jobUid: running.uid,
        admission: 1,
        role: "worker",
        index,
      }));
      const from = {
        ...empty,
        waiting: waiting.map((one) => planGang(one)),
        clusters: empty.clusters.map((c) => ({ ...c, capacity: { ...c.capacity!, seen } })),
      };
      const made = plan(from, AT);
      assert.ok(canPlace([...held, ...podsFor(from, made, "east")], all));
    }),
  );
});

test("a gang grows to its full size where it runs, is charged for new members, and stays in room and quota", () => {
  const someGrowing = fc.array(
    fc.record({ role: someRole, has: fc.integer({ min: 1, max: 4 }), queue: fc.constantFrom("q", "strict") }),
    {
      maxLength: 3,
    },
  );
  fc.assert(
    fc.property(someSnapshot, someGrowing, (base, growing) => {
      const admitted = growing.map(({ role, has, queue: name }, at) => {
        const members = { Worker: Math.min(has, role.replicas) };
        const flavors: Record<string, string> = role.gpus > 0 ? { "nvidia.com/gpu": "gpu/h100" } : {};
        const flavorLabels: FlavorLabels = role.gpus > 0 ? { "nvidia.com/gpu": { gpu: "h100" } } : {};
        return job({
          name: `running-${at}`,
          queue: name,
          roles: { Worker: role },
          minAvailable: members.Worker,
          admissions: [admission({ cluster: "east", members, flavors, flavorLabels })],
        });
      });
      const from = { ...base, admitted: admitted.map((one) => planGang(one)) };
      const all = base.clusters[0]!.capacity!.nodes;
      const held = admitted.flatMap((one) => {
        const spec = objectAt(one.spec.replicaSpecs["Worker"]?.template, "spec");
        const { members, flavorLabels } = one.admissions[0]!;
        return Array.from({ length: members["Worker"]! }, () => ({
          jobUid: one.uid,
          spec,
          requests: podRequests(spec),
          flavorLabels,
        }));
      });
      fc.pre(canPlace(held, all));
      const made = plan(from, AT);
      const grown = made.admissions.filter((planned) => planned.kind === "grow");
      for (const planned of grown) {
        const one = admitted.find(({ uid }) => uid === planned.jobUid)!;
        const { replicas } = one.spec.replicaSpecs["Worker"]!;
        assert.deepEqual([planned.cluster, planned.admission, planned.members], ["east", 1, { Worker: replicas }]);
        const requests = podRequests(objectAt(one.spec.replicaSpecs["Worker"]?.template, "spec"));
        const added = (replicas - one.admissions[0]!.members["Worker"]!) * ((requests["nvidia.com/gpu"] ?? 0) / 1000);
        assert.equal(
          planned.allocations.reduce((sum, l) => sum + l.amount, 0),
          added,
        );
        const limits = from.queues.find((q) => q.name === one.spec.runPolicy.schedulingPolicy.queue)!;
        for (const l of planned.allocations) {
          const nominal = limits.quotas.find((quota) => quota.flavor === l.pool)!.nominal;
          assert.ok(l.amount <= nominal - usedBy(from, limits.name, l.pool));
        }
      }
      const still = held.filter((pod) => !grown.some(({ jobUid }) => jobUid === pod.jobUid));
      assert.ok(canPlace([...still, ...podsFor(from, made, "east")], all));
    }),
  );
});
