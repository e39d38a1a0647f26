import assert from "node:assert/strict";
import { test } from "node:test";
import { plan } from "../../src/core/plan/plan.ts";
import type { Plan } from "../../src/core/plan/plan-types.ts";
import { AT, cluster, job, nodes, pool, queue, snapshot } from "./plan-world.ts";

const POOL = "gpu/h100";

/** A gang of some pods with 8 GPUs each. */
const gang = (name: string, replicas: number, parts: Partial<Parameters<typeof job>[0]> = {}) =>
  job({ name, roles: { Worker: { replicas, gpus: 8 } }, ...parts });

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
