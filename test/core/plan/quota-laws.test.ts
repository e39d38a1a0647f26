import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import type { Job } from "../../../src/core/job/job.ts";
import type { PlanGang } from "../../../src/core/plan/model/plan-gang.ts";
import type { PlannedAdmission } from "../../../src/core/plan/model/plan-types.ts";
import type { PlanQueue, PlanSnapshot } from "../../../src/core/plan/model/snapshot.ts";
import { treeQueue } from "../../../src/core/plan/model/tree-queue.ts";
import { CounterState } from "../../../src/core/quota/counter-state.ts";
import type { Allocation, LedgerRow, Violation } from "../../../src/core/quota/counters.ts";
import { limitBook, TOKENS_MAX, WAITERS_MAX } from "../../../src/core/quota/limits.ts";
import { queueLimitsOf } from "../../../src/core/quota/tree.ts";
import { stateOf } from "../../support/load-snapshot.ts";
import { plan } from "../../support/plan.ts";
import { AT, cluster, job, nodes, pool, queue, snapshot, sumsOf } from "./plan-world.ts";

const EPOCH = 1;
const MODELS = ["h100", "a100"];
const QUEUES = ["root", "left", "right", "below"];
const PARENTS: Readonly<Record<string, string | null>> = { root: null, left: "root", right: "root", below: "left" };
const NO_CAPS = { project: null, namespace: null };

const model = fc.constantFrom(...MODELS);
const place = fc.record({
  project: fc.constantFrom("vision", "vision1"),
  namespace: fc.constantFrom("ml", "nlp"),
  queue: fc.constantFrom(...QUEUES),
});
const maybe = (max: number) =>
  fc.oneof({ weight: 2, arbitrary: fc.constant(null) }, { weight: 3, arbitrary: fc.nat(max) });

const someQueue = (name: string): fc.Arbitrary<PlanQueue> =>
  fc
    .tuple(
      fc.constantFrom("STRICT_FIFO" as const, "BEST_EFFORT_FIFO" as const),
      ...MODELS.map(() => fc.tuple(fc.nat(12), maybe(6), maybe(6))),
    )
    .map(([strategy, ...shares]) => {
      const made = queue(name, Object.fromEntries(MODELS.map((one, at) => [one, shares[at]![0]])), { strategy });
      const quotas = made.quotas.map((quota, at) => {
        const [, borrowing, lending] = shares[at]!;
        const borrowed = borrowing === null ? quota : { ...quota, borrowingLimit: borrowing };
        return lending === null ? borrowed : { ...borrowed, lendingLimit: lending };
      });
      return { name, parent: PARENTS[name] ?? null, strategy, quotas };
    });

const somePool = (name: string) =>
  fc
    .record({ quota: maybe(16), projectDefault: maybe(12), namespaceDefault: maybe(12) })
    .map((limits) => pool(name, limits));

const someRow = fc
  .record({ model, place, amount: fc.integer({ min: 1, max: 5 }) })
  .map(({ model: of, place: where, amount }) => ({ pool: `gpu/${of}`, ...where, amount }));

const someJob = fc.record({
  place,
  gpus: fc.integer({ min: 1, max: 4 }),
  replicas: fc.integer({ min: 1, max: 3 }),
  minAvailable: fc.integer({ min: 1, max: 3 }),
  priority: fc.nat(2),
  createTimeMs: fc.nat(3),
  gpuModels: fc.constantFrom([], [], ["h100"]),
});

function jobOf(of: typeof someJob extends fc.Arbitrary<infer T> ? T : never, at: number): Job {
  const { place: where, gpus, replicas, minAvailable, ...rest } = of;
  const roles = { Worker: { replicas, gpus } };
  const made = job({
    ...rest,
    name: `job-${at}`,
    queue: where.queue,
    roles,
    minAvailable: Math.min(minAvailable, replicas),
  });
  return { ...made, project: where.project, namespace: where.namespace };
}

type World = { readonly from: PlanSnapshot; readonly rows: readonly LedgerRow[] };

/** Room for every pod, so that quotas decide. Limits may be lower than their use, since admins lower them. */
const someWorld: fc.Arbitrary<World> = fc
  .record({
    queues: fc.tuple(...QUEUES.map(someQueue)),
    pools: fc.tuple(...MODELS.map((one) => somePool(`gpu/${one}`))),
    rows: fc.array(someRow, { maxLength: 4 }),
    jobs: fc.array(someJob, { minLength: 1, maxLength: 6 }),
  })
  .map(({ queues, pools, rows: held, jobs }) => {
    const rows = held.map((row, at) => {
      const holder = { kind: "caller" as const, name: `caller-${at}` };
      return { ...row, token: `held-${at}`, leaseMs: null, holder, fence: BigInt(at) };
    });
    const clusters = [cluster("east", { nodes: MODELS.flatMap((one) => nodes(9, one)) })];
    const waiting = jobs.map(jobOf);
    return { from: snapshot({ waiting, queues, pools, sums: sumsOf(rows), clusters }), rows };
  });

/**
 * The same, but only a few tokens of each pool are missing: a large gang is in the waiting line, and a small one would
 * pass it.
 */
function whereOnlyPoolsLimit({ from, rows }: World): World {
  const queues = from.queues.map(({ name, parent, strategy }) => {
    return { ...queue(name, { h100: 1000, a100: 1000 }, { strategy }), parent };
  });
  const pools = from.pools.map(({ pool: name }) => {
    const used = rows.reduce((sum, row) => (row.pool === name ? sum + row.amount : sum), 0);
    return pool(name, { quota: Math.max(8, used + 3) });
  });
  return { from: { ...from, queues, pools }, rows };
}

function countersOf({ from, rows }: World): CounterState {
  const queues = queueLimitsOf(from.queues.map(treeQueue));
  const limits = { version: 1, pools: from.pools, queues, tokensMax: TOKENS_MAX, waitersMax: WAITERS_MAX };
  const state = new CounterState();
  state.open(EPOCH, { rows, limits });
  return state;
}

function linesOf(
  one: PlanGang,
  asked: readonly { readonly pool: string; readonly amount: number }[],
): readonly Allocation[] {
  const { project, namespace } = one;
  return asked.map(({ pool: of, amount }) => {
    return { pool: of, token: one.uid, amount, project, namespace, queue: one.queue, caps: NO_CAPS, leaseMs: null };
  });
}

function requestOf(one: PlanGang, allocations: readonly Allocation[]) {
  const holder = { kind: "admission" as const, jobUid: one.uid, admission: 1 };
  return { epoch: EPOCH, holder, allocations, priority: one.priority };
}

const standOf = (one: PlanGang, allocations: readonly Allocation[]) => ({
  ...requestOf(one, allocations),
  waiter: `gang/${one.uid}/1`,
  sinceMs: one.createTimeMs,
  grants: false,
});

/** How often the laws below met what they are about. Tests of their own look at it: a law also holds in fewer runs. */
const met = { refused: 0, reserved: 0, standing: 0 };

test("the planner's state refuses what the counters refuse, at the same level and with the same numbers", () => {
  fc.assert(
    fc.property(
      fc.oneof(someWorld, someWorld.map(whereOnlyPoolsLimit)),
      model,
      fc.integer({ min: 1, max: 8 }),
      fc.integer({ min: 1, max: 8 }),
      (world, of, need, most) => {
        const [one, head] = [world.from.waiting[0]!, world.from.waiting.at(-1)!];
        const { quota } = stateOf(world.from).parts;
        const account = ({ queue: own, project, namespace }: PlanGang) => quota.account(own, project, namespace);
        const state = countersOf(world);
        const name = `gpu/${of}`;
        const lacking = quota.blocks(account(head), name, {
          resource: "nvidia.com/gpu",
          need: most,
          priority: head.priority,
        });
        const isForTokens = lacking.every(({ scope, reason }) => scope.kind === "pool" && reason === "QuotaExhausted");
        if (head !== one && lacking.length > 0 && isForTokens) {
          const allocations = linesOf(head, [{ pool: name, amount: most }]);
          assert.equal(state.stand(standOf(head, allocations)).kind, "waiting");
          quota.reserve({
            jobUid: head.uid,
            holder: head.name,
            priority: head.priority,
            amounts: new Map([[name, most]]),
          });
        }
        const refusals = quota.blocks(account(one), name, { resource: "nvidia.com/gpu", need, priority: one.priority });
        assert.equal(quota.admits(account(one), name, { need, priority: one.priority }), refusals.length === 0);
        const outcome = state.grant({ ...requestOf(one, linesOf(one, [{ pool: name, amount: need }])), waiter: null });
        const [first] = refusals;
        const expected: Violation | null = first
          ? {
              scope: first.scope,
              used: first.used,
              limit: first.limit,
              requested: first.need,
              reservedForHead: first.reserved,
            }
          : null;
        assert.deepEqual(outcome.kind === "exhausted" ? outcome.violation : null, expected);
        assert.equal(outcome.kind, expected === null ? "granted" : "exhausted");
        if (expected !== null) met.refused += 1;
        if (first?.reason === "Reserved") met.reserved += 1;
      },
    ),
    { numRuns: 2_000 },
  );
});

test("the law above met refusals, and some for a gang in the line", () => {
  const { refused, reserved } = met;
  assert.ok(refused > 100 && reserved > 10, `${refused} were refused, ${reserved} for a gang in the line`);
});

test("counters grant every admission of a plan in its order, also past the gang in the waiting line", () => {
  fc.assert(
    fc.property(someWorld, (world) => {
      const { from } = world;
      const state = countersOf(world);
      const find = ({ jobUid }: PlannedAdmission) => from.waiting.find(({ uid }) => uid === jobUid)!;
      const made = plan(from, AT);
      const stand = () => {
        if (made.inLine === null) return;
        const { planned } = made.inLine;
        const one = find(planned);
        const allocations = linesOf(one, planned.allocations);
        const waits = state.stand(standOf(one, allocations));
        assert.ok(
          waits.kind === "waiting" && waits.violation?.scope.kind === "pool",
          "it lacks tokens of a pool alone",
        );
        assert.equal(made.refusals.filter(({ jobUid }) => jobUid === one.uid).length, 1, "it waits");
        met.standing += 1;
      };
      for (const [at, planned] of made.admissions.entries()) {
        if (at === made.inLine?.after) stand();
        const one = find(planned);
        const outcome = state.grant({ ...requestOf(one, linesOf(one, planned.allocations)), waiter: null });
        assert.equal(outcome.kind, "granted");
      }
      if (made.inLine?.after === made.admissions.length) stand();
    }),
    { numRuns: 1_000 },
  );
});

test("the law above met gangs in a waiting line", () => {
  assert.ok(met.standing > 50, `${met.standing} were in a waiting line`);
});

test("a plan never takes more than a limit leaves at any level, and nothing where use exceeds a limit", () => {
  fc.assert(
    fc.property(someWorld, (world) => {
      const { from, rows } = world;
      const book = limitBook({ pools: from.pools, queues: queueLimitsOf(from.queues.map(treeQueue)) });
      const before = new Map(
        countersOf(world)
          .used()
          .map(({ scope, used }) => [JSON.stringify(scope), used]),
      );
      const taken = plan(from, AT).admissions.flatMap(({ allocations, jobUid }) =>
        allocations.map((allocation) => ({
          ...allocation,
          token: jobUid,
          leaseMs: null,
          holder: { kind: "caller" as const, name: jobUid },
          fence: 0n,
        })),
      );
      const after = countersOf({ from, rows: [...rows, ...taken] }).used();
      for (const { scope, used } of after) {
        if (used === before.get(JSON.stringify(scope))) continue;
        const { quota, projectDefault, namespaceDefault } = book.pool(scope.pool);
        const limit = {
          pool: quota,
          project: projectDefault,
          namespace: namespaceDefault,
          queue: scope.kind === "queue" ? book.queue(scope.queue, scope.pool).ceiling : null,
        }[scope.kind];
        assert.ok(used <= (limit ?? Number.MAX_SAFE_INTEGER), `${JSON.stringify(scope)} uses ${used} of ${limit}`);
      }
    }),
    { numRuns: 1_000 },
  );
});

test("the gang in the line is the first of the order that waits for tokens alone", () => {
  fc.assert(
    fc.property(someWorld, ({ from }) => {
      const { inLine, refusals } = plan(from, AT);
      const waits = refusals.filter(({ quotas }) =>
        quotas.some(({ flavor: of }) =>
          quotas
            .filter((quota) => quota.flavor === of)
            .every(({ scope, reason }) => scope.kind === "pool" && reason === "QuotaExhausted"),
        ),
      );
      assert.equal(inLine?.planned.jobUid, waits[0]?.jobUid);
    }),
    { numRuns: 500 },
  );
});
