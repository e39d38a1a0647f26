import assert from "node:assert/strict";
import { test } from "node:test";
import { flavorChoices } from "../../../src/core/plan/fit/flavor-choices.ts";
import { CHOICES_MAX } from "../../../src/core/plan/model/flavors.ts";
import type { Plan } from "../../../src/core/plan/model/plan-types.ts";
import { shapeOf } from "../../../src/core/plan/queues/ask-shape.ts";
import { stateOf } from "../../support/load-snapshot.ts";
import { plan } from "../../support/plan.ts";
import { AT, admission, cluster, job, nodes, planGang, pool, queue, snapshot } from "./plan-world.ts";

const POOL = "gpu/h100";

/** A gang of some pods with 8 GPUs each. */
const gang = (name: string, replicas: number, parts: Partial<Parameters<typeof job>[0]> = {}) =>
  job({ name, roles: { Worker: { replicas, gpus: 8 } }, ...parts });

const HOLDERS = "(held by caller two, caller one, ml/c, ml/d, ml/draining)";
const RESOURCES = ["nvidia.com/gpu", "rdma/hca"];
const FLAVORS = { "nvidia.com/gpu": POOL };

/** An admission that was undone in another cluster. Null: pods of it may still run. */
const left = (tokensReleasedMs: number | null) =>
  admission({ cluster: "west", state: "undone", members: { Worker: 1 }, flavors: FLAVORS, tokensReleasedMs });

const shared = { parent: "all", strategy: "BEST_EFFORT_FIFO" } as const;

/** `left` and `right` have 16 each and lend their unused quota. Their parent `all` has 8 of its own. */
function tree(of: { readonly left?: object; readonly right?: object; readonly used?: number } = {}) {
  const quotas = (shares: object = {}) => [{ flavor: POOL, resource: "nvidia.com/gpu", nominal: 16, ...shares }];
  return [
    queue("all", { h100: 8 }),
    { ...queue("left", {}, shared), quotas: quotas(of.left) },
    { ...queue("right", {}, { ...shared, used: { [POOL]: of.used ?? 0 } }), quotas: quotas(of.right) },
  ];
}

function short({ admissions, inLine, refusals }: Plan): readonly string[] {
  return [
    ...admissions.map(({ jobUid, members }) => `${jobUid} admitted with ${members["Worker"]}`),
    ...(inLine === null ? [] : [`${inLine.planned.jobUid} is in the waiting line`]),
    ...refusals.map(({ jobUid, reason, message }) => `${jobUid}: ${reason}: ${message}`),
  ];
}

const cases: Record<string, { from: Parameters<typeof snapshot>[0]; made: readonly string[] }> = {
  "a queue borrows quota that others of its tree do not use": {
    from: {
      waiting: [gang("a", 5, { queue: "left" })],
      queues: tree(),
      clusters: [cluster("east", { nodes: nodes(8, "h100") })],
    },
    made: ["uid-a admitted with 5"],
  },
  "a queue cannot borrow quota that others of its tree use, and the refusal names the queue above": {
    from: { waiting: [gang("a", 4, { queue: "left" })], queues: tree({ used: 16 }) },
    made: ["uid-a: QuotaExhausted: needs 32 of gpu/h100; queue all uses 16 of 40"],
  },
  "a borrowing limit holds even if others have more left": {
    from: { waiting: [gang("a", 4, { queue: "left" })], queues: tree({ left: { borrowingLimit: 8 } }) },
    made: ["uid-a: AboveQuota: needs 32 of gpu/h100; queue left may use 24 at most"],
  },
  "a queue keeps the quota that it does not lend": {
    from: {
      waiting: [gang("a", 4, { queue: "left" }), gang("b", 2, { queue: "right" })],
      queues: tree({ right: { lendingLimit: 0 } }),
    },
    made: ["uid-b admitted with 2", "uid-a: AboveQuota: needs 32 of gpu/h100; queue all may use 24 at most"],
  },
  "a project's default holds across queues": {
    from: {
      waiting: [gang("a", 1), gang("b", 1)],
      queues: [queue("q", { h100: 99 })],
      pools: [pool(POOL, { projectDefault: 12 })],
    },
    made: [
      "uid-a admitted with 1",
      "uid-b: QuotaExhausted: needs 8 of gpu/h100; project research uses 8 of 12 (held by ml/a)",
    ],
  },
  "a namespace's default of 0 admits none": {
    from: {
      waiting: [gang("a", 1)],
      queues: [queue("q", { h100: 99 })],
      pools: [pool(POOL, { namespaceDefault: 0 })],
    },
    made: ["uid-a: AboveQuota: needs 8 of gpu/h100; namespace ml may use 0 at most"],
  },
  "every level that is in the way is named": {
    from: {
      waiting: [gang("a", 1), gang("b", 1)],
      queues: [queue("q", { h100: 12 })],
      pools: [pool(POOL, { quota: 15, namespaceDefault: 9 })],
    },
    made: [
      "uid-a admitted with 1",
      "uid-b: QuotaExhausted: " +
        [
          "needs 8 of gpu/h100; pool gpu/h100 uses 8 of 15 (held by ml/a)",
          "needs 8 of gpu/h100; queue q uses 8 of 12 (held by ml/a)",
          "needs 8 of gpu/h100; namespace ml uses 8 of 9 (held by ml/a)",
        ].join("; "),
    ],
  },
  "a gang that also lacks a quota, or has no cluster, is not in the waiting line": {
    from: {
      waiting: [
        gang("queue", 2, { queue: "small" }),
        gang("cluster", 3, { priority: 1, clusters: ["east"] }),
        gang("first", 2, { createTimeMs: 1 }),
      ],
      queues: [queue("q", { h100: 99 }), queue("small", { h100: 8 })],
      pools: [pool(POOL, { quota: 30 })],
      sums: [{ scope: { kind: "pool", pool: POOL }, used: 20 }],
      callers: [{ caller: "flyte", pool: POOL, project: "p", namespace: "n", queue: null, amount: 20 }],
      clusters: [cluster("east", { nodes: nodes(2, "h100") })],
    },
    made: [
      "uid-first is in the waiting line",
      "uid-cluster: QuotaExhausted: needs 24 of gpu/h100; pool gpu/h100 uses 20 of 30 (held by caller flyte)",
      "uid-first: QuotaExhausted: needs 16 of gpu/h100; pool gpu/h100 uses 20 of 30 (held by caller flyte); " +
        "it is in the waiting line of gpu/h100",
      "uid-queue: AboveQuota: needs 16 of gpu/h100; queue small may use 8 at most",
    ],
  },
  "a gang that would take the room of the one in the waiting line is refused by the pool alone": {
    from: {
      waiting: [gang("first", 2), gang("next", 1, { createTimeMs: 1 }), gang("low", 1, { priority: -1 })],
      queues: [queue("q", { h100: 20 })],
      pools: [pool(POOL, { quota: 28 })],
      sums: [{ scope: { kind: "pool", pool: POOL }, used: 20 }],
    },
    made: [
      "uid-first is in the waiting line",
      "uid-first: QuotaExhausted: needs 16 of gpu/h100; pool gpu/h100 uses 20 of 28; " +
        "it is in the waiting line of gpu/h100",
      "uid-next: Reserved: needs 8 of gpu/h100; pool gpu/h100 uses 20 of 28, and keeps 16 for ml/first",
      "uid-low: Reserved: needs 8 of gpu/h100; pool gpu/h100 uses 20 of 28, and keeps 16 for ml/first",
    ],
  },
  "a gang for which all of one flavor is kept and another is exhausted lacks quota": {
    from: {
      waiting: [gang("first", 2, { gpuModels: ["h100"] }), gang("next", 1, { createTimeMs: 1 })],
      queues: [queue("q", { h100: 99, a100: 9 }, { used: { "gpu/a100": 8 } })],
      pools: [pool(POOL, { quota: 28 }), pool("gpu/a100")],
      sums: [
        { scope: { kind: "pool", pool: POOL }, used: 20 },
        { scope: { kind: "queue", pool: "gpu/a100", queue: "q" }, used: 8 },
      ],
    },
    made: [
      "uid-first is in the waiting line",
      "uid-first: QuotaExhausted: needs 16 of gpu/h100; pool gpu/h100 uses 20 of 28; " +
        "it is in the waiting line of gpu/h100",
      "uid-next: QuotaExhausted: needs 8 of gpu/h100; pool gpu/h100 uses 20 of 28, and keeps 16 for ml/first; " +
        "needs 8 of gpu/a100; queue q uses 8 of 9",
    ],
  },
  "a gang that needs exactly the whole limit may still get it": {
    from: { waiting: [gang("a", 2)], queues: [queue("q", { h100: 16 }, { used: { [POOL]: 8 } })] },
    made: ["uid-a: QuotaExhausted: needs 16 of gpu/h100; queue q uses 8 of 16"],
  },
  "a queue above counts only the part of a request that the queue's own guarantee does not cover": {
    from: { waiting: [gang("a", 4, { queue: "left" })], queues: tree({ left: { lendingLimit: 0 }, used: 16 }) },
    made: ["uid-a: QuotaExhausted: needs 16 of gpu/h100; queue all uses 16 of 24"],
  },
  "members that need no flavor yet are admitted even if more of it is used than its pool allows": {
    from: {
      waiting: [
        job({ name: "a", roles: { Master: { replicas: 1 }, Worker: { replicas: 2, gpus: 8 } }, minAvailable: 1 }),
      ],
      queues: [queue("q", { h100: 99 })],
      pools: [pool(POOL, { quota: 8 })],
      sums: [{ scope: { kind: "pool", pool: POOL }, used: 9 }],
    },
    made: ["uid-a admitted with 0"],
  },
  "a gang is refused only by quotas of what it requests": {
    from: {
      waiting: [gang("a", 1)],
      queues: [
        {
          ...queue("q", {}),
          quotas: [POOL, "rdma/ib"].map((name, at) => ({ flavor: name, resource: RESOURCES[at] ?? "", nominal: 4 })),
        },
      ],
      pools: [pool(POOL), pool("rdma/ib")],
    },
    made: ["uid-a: AboveQuota: needs 8 of gpu/h100; queue q may use 4 at most"],
  },
  "a gang that names a model is told that the queue has no quota for that model": {
    from: {
      waiting: [gang("a", 1, { gpuModels: ["b200"] }), gang("b", 1, { queue: "none" })],
      queues: [queue("q", { h100: 8 }), queue("none", {})],
    },
    made: [
      "uid-a: NoQuota: queue q has no quota for b200",
      "uid-b: NoQuota: queue none has no quota for nvidia.com/gpu",
    ],
  },
  "holders are named with all that they hold, largest first, then by name, at most five": {
    from: {
      waiting: [
        gang("z", 1, { createTimeMs: 9 }),
        gang("draining", 1, { admissions: [left(null)] }),
        gang("b-gone", 1, { admissions: [left(5)] }),
      ],
      admitted: ["e", "d", "c"].map((name) =>
        gang(name, 1, { admissions: [admission({ cluster: "west", members: { Worker: 1 }, flavors: FLAVORS })] }),
      ),
      queues: [queue("q", { h100: 8 }, { used: { [POOL]: 8 } })],
      callers: [1, 8, 8].map((amount, at) => ({
        caller: at === 1 ? "one" : "two",
        pool: POOL,
        project: "p",
        namespace: "n",
        queue: "q",
        amount,
      })),
    },
    made: ["z", "b-gone"]
      .map((name) => `uid-${name}: QuotaExhausted: needs 8 of gpu/h100; queue q uses 8 of 8 ${HOLDERS}`)
      .concat("uid-draining: Draining: pods of its admission 1 still run on west"),
  },
  "holders include the gangs that the plan itself admits": {
    from: {
      waiting: [gang("a", 9), gang("b", 1, { createTimeMs: 1 }), gang("c", 2, { createTimeMs: 2 })],
      admitted: [
        gang("host", 0, {
          roles: { Master: { replicas: 1 }, Worker: { replicas: 1, gpus: 8 } },
          admissions: [admission({ cluster: "west", members: { Master: 1, Worker: 0 }, flavors: FLAVORS })],
        }),
      ],
      queues: [queue("q", { h100: 20 }, { used: { [POOL]: 1 } })],
      callers: [{ caller: "one", pool: POOL, project: "p", namespace: "n", queue: "q", amount: 1 }],
    },
    made: [
      "uid-b admitted with 1",
      "uid-a: AboveQuota: needs 72 of gpu/h100; queue q may use 20 at most",
      "uid-c: QuotaExhausted: needs 16 of gpu/h100; queue q uses 9 of 20 (held by ml/b, caller one)",
    ],
  },
  "a gang that accepts fewer members is admitted with them and does not wait in the line": {
    from: {
      waiting: [gang("a", 2, { minAvailable: 1 })],
      queues: [queue("q", { h100: 99 })],
      pools: [pool(POOL, { quota: 16 })],
      sums: [{ scope: { kind: "pool", pool: POOL }, used: 8 }],
    },
    made: ["uid-a admitted with 1"],
  },
};

for (const [name, { from, made }] of Object.entries(cases)) {
  test(name, () => assert.deepEqual([...short(plan(snapshot(from), AT))].sort(), [...made].sort()));
}

test("the gang in the waiting line has the admission that it would get", () => {
  const one = planGang(gang("a", 1, { priority: 3, createTimeMs: 4 }));
  const from = snapshot({
    waiting: [one],
    queues: [queue("q", { h100: 99 })],
    pools: [pool(POOL, { quota: 7 + 8 })],
    sums: [{ scope: { kind: "pool", pool: POOL }, used: 8 }],
  });
  const planned = {
    kind: "admit",
    jobUid: "uid-a",
    askHash: one.askHash,
    generation: 1,
    admission: 1,
    cluster: "east",
    admissionCounter: 7,
    members: { Worker: 1 },
    flavors: FLAVORS,
    flavorLabels: { "nvidia.com/gpu": { gpu: "h100" } },
    allocations: [{ pool: POOL, amount: 8, project: "research", namespace: "ml", queue: "q" }],
  };
  assert.deepEqual(plan(from, AT).inLine, { planned, priority: 3, sinceMs: 4, after: 0 });
});

test("a resource without a quota is a refusal of its own", () => {
  const [refusal] = plan(snapshot({ waiting: [gang("a", 1)], queues: [queue("q", {})] }), AT).refusals;
  const scope = { kind: "queue", pool: "nvidia.com/gpu", queue: "q" };
  const amounts = { need: 8, used: 0, limit: 0, reserved: 0 };
  assert.deepEqual(refusal?.quotas, [
    { queue: "q", flavor: "nvidia.com/gpu", scope, reason: "NoQuota", ...amounts, heldBy: [] },
  ]);
});

test("of very many combinations of flavors, a bounded number is tried", () => {
  const resources = ["x/a", "x/b", "x/c"];
  const names = resources.flatMap((resource) =>
    [1, 2, 3, 4, 5, 6].map((at) => ({ flavor: `${resource}-${at}`, resource })),
  );
  const limits = queue("q", {}, { quotas: names.map((each) => ({ ...each, nominal: 99 })) });
  const from = snapshot({ queues: [limits], pools: names.map(({ flavor }) => pool(flavor)) });
  const { quota } = stateOf(from).parts;
  const requests = Object.fromEntries(resources.map((resource) => [resource, 1000]));
  const { ask } = planGang(gang("a", 1));
  const shape = shapeOf("", { ...ask, podClasses: [{ requests, scheduling: {} }] });
  const asking = { shape, priority: 0, account: quota.account("q", "research", "ml") };
  const { choices, inLine, cut } = flavorChoices(asking, limits, {
    sized: shape.all,
    resources,
    quota,
    excludes: () => false,
    cannotHave: () => false,
    inOneCluster: () => true,
  });
  assert.deepEqual([choices.length, inLine.length, cut], [CHOICES_MAX, CHOICES_MAX, true]);
});
