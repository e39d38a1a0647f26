/** Replica types of one gang with different flavors. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { ofRole } from "../../../src/core/job/flavor-labels.ts";
import { DEFAULT_POLICY, type QueuePolicy } from "../../../src/core/plan/model/queue-policy.ts";
import type { PlanSnapshot } from "../../../src/core/plan/model/snapshot.ts";
import { stateOf } from "../../support/load-snapshot.ts";
import { plan } from "../../support/plan.ts";
import { simulateOn } from "../../support/simulate-on.ts";
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
  type SnapshotParts,
  snapshot,
} from "./plan-world.ts";

const GPU = "nvidia.com/gpu";
const on = (model: string) => ({ nodeSelector: { gpu: model } });
const both = [...nodes(4, "h100"), ...nodes(4, "a100")];
const TRIES_NEXT: QueuePolicy = {
  ...DEFAULT_POLICY,
  fungibility: { ...DEFAULT_POLICY.fungibility, whenCanBorrow: "TRY_NEXT_FLAVOR" },
};

/** `Master gpu/h100, Worker gpu/a100 on east: 1 gpu/h100, 4 gpu/a100`, or the refusal. */
function answerOf(from: PlanSnapshot): string {
  const { admissions, refusals } = plan(from, AT);
  const [planned] = admissions;
  if (planned === undefined) return `${refusals[0]?.reason}: ${refusals[0]?.message}`;
  const roles = Object.keys(planned.members).map((role) => `${role} ${ofRole(planned.flavors, role)[GPU] ?? "none"}`);
  const tokens = planned.allocations.map(({ pool, amount }) => `${amount} ${pool}`);
  return `${roles.join(", ")} on ${planned.cluster}: ${tokens.join(", ")}`;
}

const masterAndWorkers: JobParts["roles"] = { Master: { replicas: 1, gpus: 1 }, Worker: { replicas: 4, gpus: 1 } };

type Case = {
  readonly roles?: JobParts["roles"];
  readonly models?: readonly string[];
  readonly quotas: Readonly<Record<string, number>>;
  readonly more?: Omit<SnapshotParts, "waiting">;
  readonly policy?: QueuePolicy;
  readonly answer: string;
};

const cases: Readonly<Record<string, Case>> = {
  "all types get the first flavor if it has the quota for all": {
    quotas: { h100: 5, a100: 8 },
    answer: "Master gpu/h100, Worker gpu/h100 on east: 5 gpu/h100",
  },
  "a type for which the first flavor has too little quota gets the next one": {
    quotas: { h100: 2, a100: 8 },
    answer: "Master gpu/h100, Worker gpu/a100 on east: 1 gpu/h100, 4 gpu/a100",
  },
  "what the types before it take of a pool counts": {
    quotas: { h100: 4, a100: 8 },
    answer: "Master gpu/h100, Worker gpu/a100 on east: 1 gpu/h100, 4 gpu/a100",
  },
  "a type gets a later flavor if those after it would get none": {
    quotas: { h100: 4, a100: 1 },
    answer: "Master gpu/a100, Worker gpu/h100 on east: 1 gpu/a100, 4 gpu/h100",
  },
  "nodes decide like quotas": {
    quotas: { h100: 50, a100: 50 },
    more: { clusters: [cluster("east", { nodes: [node("h", "h100", { free: amounts(2) }), node("a", "a100")] })] },
    answer: "Master gpu/h100, Worker gpu/a100 on east: 1 gpu/h100, 4 gpu/a100",
  },
  "a type whose pods select nodes of one model gets that flavor": {
    roles: { Master: { replicas: 1, gpus: 8, pod: on("a100") }, Worker: { replicas: 4, gpus: 8, pod: on("h100") } },
    quotas: { h100: 50, a100: 50 },
    answer: "Master gpu/a100, Worker gpu/h100 on east: 8 gpu/a100, 32 gpu/h100",
  },
  "a type without GPUs gets no flavor": {
    roles: { Launcher: { replicas: 1, cpu: 1 }, Worker: { replicas: 4, gpus: 1 } },
    quotas: { h100: 2, a100: 8 },
    answer: "Launcher gpu/a100, Worker gpu/a100 on east: 4 gpu/a100",
  },
  "a model that the job asks for is that of all types": {
    models: ["a100"],
    quotas: { h100: 50, a100: 50 },
    answer: "Master gpu/a100, Worker gpu/a100 on east: 5 gpu/a100",
  },
  "all types run in one cluster": {
    roles: { Master: { replicas: 1, gpus: 1, pod: on("a100") }, Worker: { replicas: 4, gpus: 1, pod: on("h100") } },
    quotas: { h100: 50, a100: 50 },
    more: {
      clusters: [
        cluster("east", { nodes: nodes(4, "h100") }),
        cluster("north", { nodes: both }),
        cluster("west", { nodes: nodes(4, "a100") }),
      ],
    },
    answer: "Master gpu/a100, Worker gpu/h100 on north: 1 gpu/a100, 4 gpu/h100",
  },
  "no flavors are mixed that no cluster has together, so that reasons name none": {
    quotas: { h100: 4, a100: 4 },
    more: {
      clusters: [cluster("east", { nodes: nodes(4, "h100") }), cluster("west", { nodes: nodes(4, "a100") })],
    },
    answer:
      "AboveQuota: needs 5 of gpu/h100; queue q may use 4 at most; needs 5 of gpu/a100; queue q may use 4 at most",
  },
  "no cluster takes a part of the types": {
    roles: { Master: { replicas: 1, gpus: 1, pod: on("a100") }, Worker: { replicas: 4, gpus: 1, pod: on("h100") } },
    quotas: { h100: 50, a100: 50 },
    more: {
      clusters: [cluster("east", { nodes: nodes(4, "h100") }), cluster("west", { nodes: nodes(4, "a100") })],
    },
    answer: "NoCluster: no cluster can be used: east: it has no gpu/a100; west: it has no gpu/h100",
  },
  "each type tries the next flavor before it borrows": {
    policy: TRIES_NEXT,
    quotas: { h100: 1, a100: 4 },
    more: { queues: [queue("all", { h100: 50, a100: 50 })] },
    answer: "Master gpu/h100, Worker gpu/a100 on east: 1 gpu/h100, 4 gpu/a100",
  },
  "without that, each type borrows the first flavor": {
    quotas: { h100: 1, a100: 4 },
    more: { queues: [queue("all", { h100: 50, a100: 50 })] },
    answer: "Master gpu/h100, Worker gpu/h100 on east: 5 gpu/h100",
  },
  "a refusal names what all types need of a flavor that could have them": {
    quotas: { h100: 5, a100: 5 },
    more: { queues: [queue("q", { h100: 5, a100: 5 }, { used: { "gpu/h100": 5, "gpu/a100": 4 } })] },
    answer: "QuotaExhausted: needs 5 of gpu/h100; queue q uses 5 of 5; needs 5 of gpu/a100; queue q uses 4 of 5",
  },
  "a refusal names what the types need that no flavor could have together": {
    quotas: { h100: 4, a100: 4 },
    more: { queues: [queue("q", { h100: 4, a100: 4 }, { used: { "gpu/h100": 2, "gpu/a100": 4 } })] },
    answer:
      "QuotaExhausted: needs 4 of gpu/a100; queue q uses 4 of 4; needs 1 of gpu/a100; queue q uses 4 of 4; " +
      "needs 4 of gpu/h100; queue q uses 2 of 4",
  },
};
for (const [name, { roles = masterAndWorkers, models = [], quotas, more = {}, policy, answer }] of Object.entries(
  cases,
)) {
  test(name, () => {
    const [parent] = more.queues?.map((one) => one.name) ?? [];
    const above = parent === undefined || parent === "q" ? {} : { parent };
    const own = queue("q", quotas, { ...above, ...(policy === undefined ? {} : { policy }) });
    const queues = parent === "q" ? more.queues : [own, ...(more.queues ?? [])];
    const waiting = [job({ name: "x", roles, gpuModels: models })];
    const from = snapshot({ clusters: [cluster("east", { nodes: both })], ...more, queues: queues ?? [own], waiting });
    assert.equal(answerOf(from), answer);
  });
}

const BY_TYPE = { "Master:nvidia.com/gpu": "gpu/h100", "Worker:nvidia.com/gpu": "gpu/a100" };
const LABELS = { "Master:nvidia.com/gpu": { gpu: "h100" }, "Worker:nvidia.com/gpu": { gpu: "a100" } };
const running = (name: string, parts: Partial<JobParts> & Parameters<typeof admission>[0]) => {
  const { members = { Master: 1, Worker: 4 }, flavors = BY_TYPE, flavorLabels = LABELS, cluster: at, ...of } = parts;
  const live = admission({ cluster: at, members, flavors, flavorLabels, admitTimeMs: NOW - 100 });
  return planGang(job({ ...of, name, roles: parts.roles ?? masterAndWorkers, admissions: [live] }));
};

test("members that no node shows yet take nodes of their own type's flavor", () => {
  const one = { Master: { replicas: 1, gpus: 8 }, Worker: { replicas: 1, gpus: 8 } };
  const full = running("full", { cluster: "east", members: { Master: 1, Worker: 1 }, roles: one });
  const from = snapshot({
    admitted: [full],
    waiting: [job({ name: "x", roles: { Worker: { replicas: 1, gpus: 1 } } })],
    clusters: [cluster("east", { nodes: [node("h", "h100"), node("a", "a100"), node("a-2", "a100")] })],
  });
  assert.equal(answerOf(from), "Worker gpu/a100 on east: 1 gpu/a100");
});

test("a gang grows under the flavor of the type that lacks members", () => {
  const grows = running("grows", { cluster: "east", members: { Master: 1, Worker: 2 }, minAvailable: 3 });
  const of = { admitted: [grows], clusters: [cluster("east", { nodes: both })] };
  const left = (a100: number) => [queue("q", { h100: 50, a100 }, { used: { "gpu/a100": 2 } })];
  const answer = "Master gpu/h100, Worker gpu/a100 on east: 2 gpu/a100";
  assert.equal(answerOf(snapshot({ ...of, queues: left(4) })), answer);
  assert.deepEqual(plan(snapshot({ ...of, queues: left(3) }), AT).admissions, []);
});

test("an admission that was recorded with one list of flavors for all types is read as before", () => {
  const old = { flavors: { [GPU]: "gpu/h100" }, flavorLabels: { [GPU]: { gpu: "h100" } } };
  const grows = running("grows", { cluster: "east", members: { Master: 1, Worker: 2 }, minAvailable: 3, ...old });
  const from = snapshot({ admitted: [grows], clusters: [cluster("east", { nodes: both })] });
  assert.equal(answerOf(from), "Master gpu/h100, Worker gpu/h100 on east: 2 gpu/h100");
});

const preempts: QueuePolicy = { ...DEFAULT_POLICY, reserveAfterMs: 0, withinQueue: "LOWER_PRIORITY" };
const BOUNDS = { admissionsMax: Number.POSITIVE_INFINITY };

/** `x preempts a, b with Master gpu/h100, Worker gpu/a100`. */
function preemptionsOf(from: PlanSnapshot): readonly string[] {
  const { preemptions, admissions } = stateOf(from).round(NOW, BOUNDS);
  assert.deepEqual(admissions, []);
  return preemptions.map(({ planned, victims }) => {
    const roles = Object.keys(planned.members).map((role) => `${role} ${ofRole(planned.flavors, role)[GPU]}`);
    return `${planned.jobUid} preempts ${victims.map(({ jobUid }) => jobUid).sort()} with ${roles.join(", ")}`;
  });
}

const single = (name: string, model: string, gpus: number) =>
  running(name, {
    ...{ cluster: "east", members: { Worker: 1 }, roles: { Worker: { replicas: 1, gpus } } },
    ...{ flavors: { [GPU]: `gpu/${model}` }, flavorLabels: { [GPU]: { gpu: model } } },
  });

test("gangs are preempted over all the flavors of a gang's types", () => {
  const roles = {
    Master: { replicas: 1, gpus: 2, pod: on("h100") },
    Worker: { replicas: 2, gpus: 4, pod: on("a100") },
  };
  const from = snapshot({
    waiting: [job({ name: "x", priority: 1, roles })],
    admitted: [single("h", "h100", 4), single("a", "a100", 4), single("b", "a100", 4)],
    queues: [queue("q", { h100: 4, a100: 8 }, { policy: preempts, used: { "gpu/h100": 4, "gpu/a100": 8 } })],
    clusters: [cluster("east", { nodes: both })],
  });
  const found = "uid-x preempts uid-a,uid-b,uid-h with Master gpu/h100, Worker gpu/a100";
  assert.deepEqual(preemptionsOf(from), [found]);
});

test("a type takes what is free of the next flavor before another type's gangs are preempted", () => {
  const from = snapshot({
    waiting: [job({ name: "x", priority: 1, roles: masterAndWorkers })],
    admitted: [single("h", "h100", 4)],
    queues: [queue("q", { h100: 4, a100: 8 }, { policy: preempts, used: { "gpu/h100": 3 } })],
    clusters: [cluster("east", { nodes: both })],
  });
  assert.equal(answerOf(from), "Master gpu/h100, Worker gpu/a100 on east: 1 gpu/h100, 4 gpu/a100");
});

test("a gang with two flavors is preempted for what it holds of one", () => {
  const from = snapshot({
    waiting: [job({ name: "x", priority: 1, gpuModels: ["a100"], roles: { Worker: { replicas: 1, gpus: 2 } } })],
    admitted: [running("two", { cluster: "east" })],
    queues: [queue("q", { h100: 1, a100: 4 }, { policy: preempts, used: { "gpu/h100": 1, "gpu/a100": 4 } })],
    clusters: [cluster("east", { nodes: both })],
  });
  assert.deepEqual(preemptionsOf(from), ["uid-x preempts uid-two with Worker gpu/a100"]);
});

test("a simulated job is told the flavors of its types, or what is in the way on each cluster", () => {
  const roles = {
    Master: { replicas: 1, gpus: 1, pod: on("a100") },
    Worker: { replicas: 4, gpus: 8, pod: on("h100") },
  };
  const queues = [queue("q", { h100: 50, a100: 50 })];
  const asked = job({ name: "x", roles });
  const fits = simulateOn(snapshot({ clusters: [cluster("east", { nodes: both })], queues }), asked, AT);
  assert.deepEqual(
    [fits.verdict, fits.admission?.flavors],
    ["FITS_NOW", { "Master:nvidia.com/gpu": "gpu/a100", "Worker:nvidia.com/gpu": "gpu/h100" }],
  );
  const tight = [...nodes(3, "h100"), ...nodes(4, "a100")];
  const never = simulateOn(snapshot({ clusters: [cluster("east", { nodes: tight })], queues }), asked, AT);
  assert.equal(never.verdict, "NEVER");
  assert.match(
    never.message,
    /5 pods \(1 of 1 nvidia\.com\/gpu \(gpu\/a100\), 4 of 8 nvidia\.com\/gpu \(gpu\/h100\)\)/,
  );
});

test("a gang of many types gets the flavor that it got when all had to have the same", () => {
  const names = Array.from({ length: 12 }, (_, at) => `Type${String(at).padStart(2, "0")}`);
  const roles = Object.fromEntries(names.map((name) => [name, { replicas: 1, gpus: 1 }]));
  for (const policy of [DEFAULT_POLICY, preempts, TRIES_NEXT]) {
    const from = snapshot({
      waiting: [planGang(job({ name: "x", roles }))],
      queues: [queue("q", { h100: 50, a100: 50, l4: 50, v100: 50 }, { policy })],
      clusters: [cluster("east", { nodes: nodes(2, "v100"), flavors: ["h100", "a100", "l4", "v100"].map(flavor) })],
    });
    const [planned] = plan(from, AT).admissions;
    assert.deepEqual(planned?.flavors, { [GPU]: "gpu/v100" }, JSON.stringify(policy));
  }
});
