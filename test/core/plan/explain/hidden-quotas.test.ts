/** Why a gang waits, without pools and queues that a caller may not see: all words that name one. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { describeBlocked } from "../../../../src/core/plan/explain/blocked-messages.ts";
import {
  type MaySeeQuota,
  messageWithoutQuotas,
  quotasWithoutNames,
} from "../../../../src/core/plan/explain/hidden-quotas.ts";
import { describeNeed } from "../../../../src/core/plan/explain/message-parts.ts";
import { changed, refuse, refuseFor, waitingLineMessage, withHead } from "../../../../src/core/plan/explain/refuse.ts";
import type { BlockedPod } from "../../../../src/core/plan/model/blocked-pod.ts";
import type { QuotaRefusal } from "../../../../src/core/plan/model/plan-types.ts";
import { preemptedMessage } from "../../../../src/core/plan/model/preemption-messages.ts";
import { stopMessage } from "../../../../src/core/plan/model/queue-stop.ts";
import { fullMessage } from "../../../../src/core/plan/queues/running-jobs.ts";
import { budgetMessage } from "../../../../src/core/plan/victims/budget.ts";

const gang = { uid: "u", generation: 1, queue: "mine" } as Parameters<typeof refuseFor>[0];
const quota = (scope: QuotaRefusal["scope"], more: Partial<QuotaRefusal> = {}): QuotaRefusal => ({
  queue: "mine",
  flavor: scope.pool,
  scope,
  reason: "QuotaExhausted",
  need: 4,
  used: 8,
  limit: 8,
  reserved: 2,
  heldBy: ["ml/train"],
  ...more,
});
const said = (...quotas: readonly QuotaRefusal[]) =>
  refuseFor(gang, { quotas, clusters: [], stoppedByQuota: true }).message;
const inPool = (pool: string) => ({ kind: "pool", pool }) as const;
const inQueue = (queue: string, pool: string) => ({ kind: "queue", queue, pool }) as const;
const groups = [{ requests: { gpu: 8_000, fast: 1_000 }, count: 4 }] as unknown as Parameters<typeof describeNeed>[0];
const blocked = { role: "Worker", node: "n", nodes: 1, placed: 0, never: false } as const;
const label = (flavor: string) =>
  describeBlocked(
    { ...blocked, obstacles: [{ kind: "label", key: "gpu", value: "h", flavor }] } as unknown as BlockedPod,
    { cluster: "c", gang: describeNeed(groups, { gpu: flavor }), fit: 0, tooLarge: false },
  );
const lacking = (flavor: string) =>
  refuseFor(gang, {
    quotas: [],
    clusters: ["a", "b"].map((cluster) => {
      return {
        cluster,
        reason: "NoSuchFlavor",
        message: `it has no ${flavor}`,
        flavor,
        need: 1,
        have: 0,
        blocked: null,
      };
    }),
    stoppedByQuota: false,
  }).message;

/** Words about a pool and a queue. `shown`: the same for a caller that may see neither. */
const cases: Readonly<Record<string, { words: (pool: string, queue: string) => string; shown: string }>> = {
  "what a pool lacks": {
    words: (pool) => said(quota(inPool(pool))),
    shown: "needs 4 of another pool; another pool uses 8 of 8 (held by ml/train)",
  },
  "what a queue above lacks": {
    words: (pool, queue) => said(quota(inQueue(queue, pool))),
    shown: "needs 4 of another pool; another queue uses 8 of 8 (held by ml/train)",
  },
  "a limit that is never enough": {
    words: (pool, queue) => said(quota(inQueue(queue, pool), { reason: "AboveQuota" })),
    shown: "needs 4 of another pool; another queue may use 8 at most",
  },
  "no quota": {
    words: (pool) =>
      changed(refuse(gang, { reason: "NoQuota", message: said(quota(inPool(pool), { reason: "NoQuota" })) })).message,
    shown: "queue mine has no quota for another pool; this has changed, and the planner is about to look at it again",
  },
  "what is kept": {
    words: (pool) => said(quota(inPool(pool), { reason: "Reserved", heldBy: [] })),
    shown: "needs 4 of another pool; another pool uses 8 of 8, and keeps 2 for the first of its waiting line",
  },
  "a frozen pool": {
    words: (pool) => said(quota(inPool(pool), { reason: "PoolFrozen" })),
    shown: "needs 4 of another pool; another pool is frozen",
  },
  "a frozen queue above": {
    words: (_, queue) => stopMessage("mine", { queue, drains: false, freeze: { by: "ann", atMs: 0, reason: "" } }),
    shown: "another queue, above queue mine, is frozen by ann",
  },
  "a full queue above": {
    words: (_, queue) => fullMessage(`queue ${queue}`, { running: 3, limit: 3 }),
    shown: "another queue runs 3 jobs, and may run 3 at most",
  },
  "a waiting line": {
    words: (pool) => `it waits${waitingLineMessage([pool, `${pool}.b`])}; and more`,
    shown: "it waits; it is in the waiting line of another pool; and more",
  },
  "a request": {
    words: (pool) => describeNeed(groups, { gpu: pool, fast: `${pool}.b` }),
    shown: "4 pods of 8 gpu (another pool) and 1 fast (another pool)",
  },
  "a label of a flavor": {
    words: label,
    shown: "needs 4 pods of 8 gpu (another pool); 0 fit now on c; for the first Worker pod, node n lacks label gpu=h",
  },
  "a flavor that no cluster has": {
    words: lacking,
    shown: "no cluster can be used: a: it has no such pool; b: it has no such pool",
  },
  "a head": {
    words: (pool) => {
      const behind = refuse(gang, {
        reason: "BehindHead",
        message: "waits behind ml/b, the head of the strict queue mine",
      });
      return withHead(behind, { ...behind, message: said(quota(inPool(pool))) }).message;
    },
    shown:
      "waits behind ml/b, the head of the strict queue mine: needs 4 of another pool; another pool uses 8 of 8 " +
      "(held by ml/train)",
  },
};

const mine = { pool: (name: string) => name.startsWith("mine"), queue: (name: string) => name.startsWith("mine") };
const blind: MaySeeQuota = { ...mine, pool: () => false };

for (const [name, { words, shown }] of Object.entries(cases)) {
  test(`pools and queues are hidden in words about ${name}`, () => {
    for (const [pool, queue] of [
      ["secret/pool.x:1", "secret-queue"],
      ["S", "s"],
    ] as const) {
      assert.equal(messageWithoutQuotas(words(pool, queue), blind), shown);
    }
    assert.equal(messageWithoutQuotas(shown, blind), shown, "and stay so");
    assert.equal(messageWithoutQuotas(words("mine/a", "mine-b"), mine), words("mine/a", "mine-b"));
  });
}

test("words about preemptions and budgets of the own queue stay", () => {
  for (const words of [
    `Admission 1 is undone: ${preemptedMessage("ml/b", "InCohortReclamation")}.`,
    `Admission 1 is undone: ${preemptedMessage("ml/b", "InCohortFairSharing")}.`,
    budgetMessage({ queue: "mine", max: 3, untilMs: 0 }),
    budgetMessage({ queue: "mine", max: 3, untilMs: null }),
  ]) {
    assert.equal(messageWithoutQuotas(words, blind), words);
  }
});

test("quotas of hidden pools are left out, and a hidden queue has no name", () => {
  const quotas = [quota(inPool("mine")), quota(inPool("secret")), quota(inQueue("secret", "mine"))];
  assert.deepEqual(
    quotasWithoutNames(quotas, mine).map(({ flavor, scope }) => [flavor, scope]),
    [
      ["mine", inPool("mine")],
      ["mine", inQueue("", "mine")],
    ],
  );
});
