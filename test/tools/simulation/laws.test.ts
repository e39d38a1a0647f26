/** The laws of the simulated histories must be able to fail: each one refuses a world that breaks it. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Db } from "../../../src/adapters/store/db/db.ts";
import type { PlanGang } from "../../../src/core/plan/model/plan-gang.ts";
import type { PlannedVictim } from "../../../src/core/plan/model/preemption.ts";
import { DEFAULT_POLICY, type QueuePolicy } from "../../../src/core/plan/model/queue-policy.ts";
import type { PlannerStore } from "../../../src/planner/ports.ts";
import { job, planGang } from "../../core/plan/plan-world.ts";
import { LedgerLaws } from "./ledger-laws.ts";
import type { LedgerView, ViewedAllocation, ViewedQueue } from "./ledger-view.ts";
import { PreemptionLaws } from "./preemption-laws.ts";
import { requireFairShares, requireOwnQuota, requireSoon } from "./share-laws.ts";

const POOL = "gpu/h100";
const NOW = 1_000_000;

/** A database that shows one world after the other, and the last one from then on, with a write before each. */
function showing(...views: readonly LedgerView[]): Db {
  let at = 0;
  const query = async (text: string) => {
    if (text.includes("xmax")) return [{ xmax: String(at) }];
    const view = views[Math.min(at, views.length - 1)];
    at += 1;
    return [{ view }];
  };
  return { query } as unknown as Db;
}

function token(id: number, of: Partial<ViewedAllocation> = {}): ViewedAllocation {
  const plain = { cutToken: null, queue: "left", amount: 2, jobUid: `uid-${id}`, admission: 1, hold: false, heirs: [] };
  return { id, pool: POOL, token: `t${id}`, ...plain, ...of };
}

type OfQueue = { readonly parent?: string | null; readonly policy?: Partial<QueuePolicy>; readonly frozen?: boolean };

function queueOf(name: string, nominal: number, { parent = "all", policy, frozen = false }: OfQueue = {}): ViewedQueue {
  const quotas = [{ pool: POOL, nominal, borrowingLimit: null, lendingLimit: null }];
  return { name, parent, frozen, policy: { ...DEFAULT_POLICY, ...policy }, quotas };
}

const TREE = [queueOf("all", 0, { parent: null }), queueOf("left", 4), queueOf("right", 4)];

function world(of: Partial<LedgerView>): LedgerView {
  return { allocations: [], heirs: [], pools: [{ name: POOL, quota: 8, frozen: false }], queues: TREE, ...of };
}

const heir = { id: 7, jobUid: "nominee", pool: POOL, lacks: 2, nominated: true };
const victim = token(1, { heirs: [7] });
const cut = token(2, { jobUid: "nominee", hold: true, cutToken: "t1", queue: "right" });

type Look = { readonly before: LedgerView; readonly after: LedgerView; readonly breaks: RegExp | null };

const looks: Record<string, Look> = {
  "a pool that grows above its limit": {
    before: world({ queues: [queueOf("left", 99, { parent: null })] }),
    after: world({ queues: [queueOf("left", 99, { parent: null })], allocations: [token(1, { amount: 9 })] }),
    breaks: /pool gpu\/h100 uses 9 of 8/,
  },
  "a limit that falls below what is used": {
    before: world({ allocations: [token(1, { amount: 6 })] }),
    after: world({ allocations: [token(1, { amount: 6 })], pools: [{ name: POOL, quota: 2, frozen: false }] }),
    breaks: null,
  },
  "a tree that uses more than it has": {
    before: world({ queues: [queueOf("all", 0, { parent: null }), queueOf("left", 3)] }),
    after: world({
      queues: [queueOf("all", 0, { parent: null }), queueOf("left", 3)],
      allocations: [token(1, { amount: 4 })],
    }),
    breaks: /queue all uses 4 of 3/,
  },
  "a queue that borrows what its sibling lends": {
    before: world({}),
    after: world({ allocations: [token(1, { amount: 8 })] }),
    breaks: null,
  },
  "a grant in a queue below one that is frozen": {
    before: world({ queues: [queueOf("all", 0, { parent: null, frozen: true }), queueOf("left", 4)] }),
    after: world({
      queues: [queueOf("all", 0, { parent: null, frozen: true }), queueOf("left", 4)],
      allocations: [token(1)],
    }),
    breaks: /t1 of 2 gpu\/h100 in queue left of uid-1 was granted/,
  },
  "a nominee that boards in a pool that is frozen": {
    before: world({ allocations: [token(1, { hold: true })], pools: [{ name: POOL, quota: 8, frozen: true }] }),
    after: world({ allocations: [token(1)], pools: [{ name: POOL, quota: 8, frozen: true }] }),
    breaks: /was granted, and its queue or its pool is frozen/,
  },
  "tokens that are turned over to their heir": {
    before: world({ allocations: [victim], heirs: [heir] }),
    after: world({ allocations: [cut], heirs: [{ ...heir, lacks: 0 }] }),
    breaks: null,
  },
  "tokens that go free although their heir lacks them": {
    before: world({ allocations: [victim], heirs: [heir] }),
    after: world({ heirs: [heir] }),
    breaks: /2 ended, and its heirs lack more/,
  },
  "tokens that go free and are counted as the heir's": {
    before: world({ allocations: [victim], heirs: [heir] }),
    after: world({ heirs: [{ ...heir, lacks: 0 }] }),
    breaks: /lacks 2 less of gpu\/h100, and got 0/,
  },
  "tokens that end when their heir is no nominee any more": {
    before: world({ allocations: [victim], heirs: [heir] }),
    after: world({ heirs: [{ ...heir, nominated: false }] }),
    breaks: null,
  },
  "a hold that is taken from its nominee": {
    before: world({ allocations: [cut], heirs: [{ ...heir, lacks: 0 }] }),
    after: world({ heirs: [{ ...heir, lacks: 0 }] }),
    breaks: /was taken from a nominee/,
  },
  "a hold that passes to another job": {
    before: world({ allocations: [cut], heirs: [{ ...heir, lacks: 0 }] }),
    after: world({ allocations: [{ ...cut, jobUid: "thief" }], heirs: [{ ...heir, lacks: 0 }] }),
    breaks: /has another holder/,
  },
};
for (const [what, { before, after, breaks }] of Object.entries(looks)) {
  test(`the ledger's laws ${breaks === null ? "allow" : "refuse"} ${what}`, async () => {
    const laws = new LedgerLaws(showing(before, after));
    await laws.look("first");
    if (breaks === null) await laws.look("second");
    else await assert.rejects(laws.look("second"), breaks);
  });
}

type Preempted = {
  readonly reason: PlannedVictim["reason"];
  readonly queues?: readonly ViewedQueue[];
  readonly pools?: LedgerView["pools"];
  readonly victim?: Partial<PlanGang>;
  readonly nominee?: Partial<PlanGang>;
  readonly members?: PlannedVictim["members"];
  /** Tokens of the victim, in its queue. */
  readonly uses?: number;
  readonly breaks: RegExp | null;
};

const free = { withinQueue: "LOWER_PRIORITY", reclaimWithinTree: "ANY" } as const;
const tree = (left: Partial<QueuePolicy> = {}, right: Partial<QueuePolicy> = free) => [
  queueOf("all", 0, { parent: null }),
  queueOf("left", 1, { policy: left }),
  queueOf("right", 4, { policy: right }),
];

const preemptions: Record<string, Preempted> = {
  "one of a queue above its quota": { reason: "InCohortReclamation", breaks: null },
  "one of a queue within its quota": { reason: "InCohortReclamation", uses: 1, breaks: /left is within its quota/ },
  "a part of a gang": { reason: "InCohortReclamation", members: { Worker: 1 }, breaks: /not the whole gang/ },
  "one in a queue that is frozen": {
    reason: "InCohortReclamation",
    queues: tree().map((queue) => (queue.name === "left" ? { ...queue, frozen: true } : queue)),
    breaks: /its queue left is frozen/,
  },
  "one that uses a pool that is frozen": {
    reason: "InCohortReclamation",
    pools: [{ name: POOL, quota: null, frozen: true }],
    breaks: /uses pools that are frozen/,
  },
  "one for a queue that is frozen": {
    reason: "InCohortReclamation",
    queues: tree().map((queue) => (queue.name === "right" ? { ...queue, frozen: true } : queue)),
    breaks: /queue right is frozen/,
  },
  "one of another queue by within_queue": { reason: "InClusterQueue", breaks: /another queue/ },
  "one of the own queue": { reason: "InClusterQueue", victim: { queue: "right", priority: -1 }, breaks: null },
  "one of equal priority": { reason: "InClusterQueue", victim: { queue: "right" }, breaks: /within_queue is LOWER_P/ },
  "one against a policy that never reclaims": {
    reason: "InCohortReclamation",
    queues: tree({}, { reclaimWithinTree: "NEVER" }),
    breaks: /reclaim_within_tree is NEVER/,
  },
  "one of a higher priority than it may be while borrowing": {
    reason: "InCohortReclaimWhileBorrowing",
    queues: tree({}, { ...free, borrowWithin: { policy: "LOWER_PRIORITY", maxPriority: -2 } }),
    victim: { priority: -1 },
    breaks: /borrow_within is LOWER_PRIORITY -2/,
  },
  "one for a class that never preempts": {
    reason: "InCohortReclamation",
    nominee: { neverPreempts: true },
    breaks: /class never preempts/,
  },
  "one that runs for too short a time": {
    reason: "InCohortReclamation",
    queues: tree({ minRuntimeReclaimMs: 60_000 }),
    breaks: /runs for too short a time/,
  },
  "one that was preempted often enough": {
    reason: "InCohortReclamation",
    queues: tree({ maxPreemptions: 2 }),
    victim: { preemptions: 2 },
    breaks: /preempted 2 times of 2/,
  },
  "more than the budget of the nominee's queue": {
    reason: "InCohortReclamation",
    queues: tree({}, { ...free, preemptionsPerHour: 0 }),
    breaks: /has caused 1 preemptions of 0/,
  },
  "one that did not agree to be taken back": { reason: "Reservation", breaks: /agreed to nothing/ },
};
for (const [what, of] of Object.entries(preemptions)) {
  test(`the laws of preemption ${of.breaks === null ? "allow" : "refuse"} to preempt ${what}`, async () => {
    const recording = record(of);
    if (of.breaks === null) await recording;
    else await assert.rejects(recording, of.breaks);
  });
}

/** Records one preemption through the laws, in a store that takes it as it is. */
async function record({ reason, queues = tree(), pools, uses = 2, ...of }: Preempted): Promise<void> {
  const ends = { state: "live" as const, tokensReleasedMs: null, goneMs: null };
  const place = { cluster: "east", members: { Worker: 2 }, flavors: { "nvidia.com/gpu": POOL }, flavorLabels: {} };
  const live = { number: 1, admitTimeMs: NOW - 10_000, ...place, ...ends };
  const gang = (name: string, queue: string) =>
    planGang(job({ name, queue, roles: { Worker: { replicas: 2, gpus: 1 } } }));
  const gangs: readonly PlanGang[] = [
    { ...gang("victim", "left"), waits: false, admissions: [live], ...of.victim },
    { ...gang("nominee", "right"), ...of.nominee },
  ];
  const [taken, nominee] = gangs as [PlanGang, PlanGang];
  const allocations = [token(1, { jobUid: taken.uid, queue: taken.queue, amount: uses })];
  const view = world({ queues, allocations, ...(pools === undefined ? {} : { pools }) });
  const laws = new PreemptionLaws(showing(view), async (uids) => gangs.filter(({ uid }) => uids.includes(uid)));
  const recorded = async (records: Parameters<PlannerStore["recordPreemptions"]>[0]) =>
    records.map(({ victims }) => ({ kind: "recorded" as const, evicted: victims }));
  const store = laws.watch({ recordPreemptions: recorded } as unknown as PlannerStore);
  const victims = [
    { jobUid: taken.uid, queue: taken.queue, admission: 1, members: of.members ?? live.members, reason },
  ];
  const numbers = { admission: 1, admissionCounter: 0, askHash: "", generation: 1, allocations: [] };
  const planned = { kind: "admit" as const, jobUid: nominee.uid, ...numbers, ...place };
  await store.recordPreemptions([{ planned, victims, queue: nominee.queue }], 1, NOW);
}

/** What each queue uses, in gangs of two. */
type Used = Readonly<Record<string, number>>;

const INNER = [queueOf("team", 0), queueOf("a", 0, { parent: "team" }), queueOf("b", 0, { parent: "team" })];
const OF_ALL = [queueOf("all", 16, { parent: null }), queueOf("left", 0, { policy: { weight: 2 } }), ...INNER];

const shares: Record<string, { readonly used: Used; readonly demand?: Used; readonly breaks: RegExp | null }> = {
  "shares by weights within one gang": { used: { left: 5, a: 2, b: 1 }, breaks: null },
  "a queue above its weight": { used: { left: 8, a: 0, b: 0 }, breaks: /left is 2\.\d+ gangs above/ },
  "a queue below its weight": { used: { left: 3, a: 3, b: 2 }, breaks: /left is 2\.\d+ gangs below/ },
  "uneven shares below an inner queue": { used: { left: 5, a: 3, b: 0 }, breaks: /a is 1\.5 gangs above/ },
  "a queue that asks for less than its weight": { used: { left: 1, a: 4, b: 3 }, demand: { left: 1 }, breaks: null },
  "a quota that is left although gangs ask for it": { used: { left: 4, a: 1, b: 1 }, breaks: /uses 12 of 16/ },
};
for (const [what, { used, demand, breaks }] of Object.entries(shares)) {
  test(`the law of fair shares ${breaks === null ? "allows" : "refuses"} ${what}`, () => {
    const asks = Object.entries({ left: 8, a: 8, b: 8, ...demand }).map(([leaf, gangs]) => [leaf, 2 * gangs] as const);
    const asked = { pool: POOL, gpus: 2, demand: new Map(asks) };
    const judge = () => requireFairShares(using(used, OF_ALL), asked);
    if (breaks === null) judge();
    else assert.throws(judge, breaks);
  });
}

const ownQuotas: Record<string, { readonly used: Used; readonly demand: number; readonly breaks: RegExp | null }> = {
  "a queue that uses its own quota": { used: { left: 2, right: 2 }, demand: 8, breaks: null },
  "a queue that uses less": { used: { left: 1, right: 3 }, demand: 8, breaks: /left uses 2 of its own 4/ },
  "a queue that uses all that it asks for": { used: { left: 1, right: 3 }, demand: 2, breaks: null },
};
for (const [what, { used, demand, breaks }] of Object.entries(ownQuotas)) {
  test(`the law of own quotas ${breaks === null ? "allows" : "refuses"} ${what}`, () => {
    const judge = () => requireOwnQuota(using(used, TREE), { pool: POOL, demand: new Map([["left", demand]]) }, "left");
    if (breaks === null) judge();
    else assert.throws(judge, breaks);
  });
}

test("the law of waiting refuses a gang that waits for longer than its bound", () => {
  requireSoon(NOW, NOW + 60_000, 60_000);
  requireSoon(null, NOW + 60_001, 60_000);
  assert.throws(() => requireSoon(NOW, NOW + 60_001, 60_000), /has waited 60001 ms of 60000/);
});

function using(used: Used, queues: readonly ViewedQueue[]): LedgerView {
  const allocations = Object.entries(used).map(([queue, gangs], at) => token(at, { queue, amount: 2 * gangs }));
  return world({ queues, allocations });
}
