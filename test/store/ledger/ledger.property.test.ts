import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import fc from "fast-check";
import type { Db } from "../../../src/adapters/store/db/db.ts";
import { CounterState } from "../../../src/core/quota/counter-state.ts";
import type { Allocation, Scope } from "../../../src/core/quota/counters.ts";
import { openMemoryDb } from "../../support/databases.ts";
import { ledgerAt } from "../../support/ledger-at.ts";
import { NOW } from "../jobs.ts";
import { agrees, allocation, caller, freshLedger, POOL, poolChange, releaseOf } from "../ledger-fixture.ts";

const POOLS = [POOL, "ex:other"];
const QUEUES = ["root", "left", "right", "deep"];
const PARENTS: Readonly<Record<string, string>> = { left: "root", right: "root", deep: "left" };
const TOKENS = ["a", "b", "c", "d", "e", "f"];
const HOLDERS = ["flyte", "other"];

let db: Db;
before(async () => {
  db = await openMemoryDb();
});
after(() => db.close());

const limit = fc.option(fc.nat({ max: 8 }), { freq: 2 });
const anyLine = fc
  .record({
    pool: fc.constantFrom(...POOLS),
    token: fc.constantFrom(...TOKENS),
    amount: fc.integer({ min: 1, max: 4 }),
    project: fc.constantFrom("p", "p1"),
    namespace: fc.constantFrom("n", "n1"),
    queue: fc.option(fc.constantFrom(...QUEUES)),
    caps: fc.record({ project: limit, namespace: limit }),
  })
  .map((of) => allocation({ ...of, leaseMs: null }));
const anyLines = fc.uniqueArray(anyLine, {
  minLength: 1,
  maxLength: 3,
  selector: ({ pool, token }) => `${pool} ${token}`,
});

type Step =
  | { readonly kind: "grant"; readonly allocations: readonly Allocation[]; readonly holder: string }
  | { readonly kind: "release"; readonly pool: string; readonly token: string; readonly holder: string }
  | { readonly kind: "pool"; readonly pool: string; readonly quota: number | null; readonly project: number | null }
  | {
      readonly kind: "queue";
      readonly queue: string;
      readonly nominal: number;
      readonly lending: number | null;
      readonly borrowing: number | null;
    }
  | { readonly kind: "raise" };

const anyStep: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      kind: fc.constant("grant" as const),
      allocations: anyLines,
      holder: fc.constantFrom(...HOLDERS),
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({
      kind: fc.constant("release" as const),
      pool: fc.constantFrom(...POOLS),
      token: fc.constantFrom(...TOKENS),
      holder: fc.constantFrom(...HOLDERS),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant("pool" as const),
      pool: fc.constantFrom(...POOLS),
      quota: limit,
      project: limit,
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant("queue" as const),
      queue: fc.constantFrom(...QUEUES),
      nominal: fc.nat({ max: 6 }),
      lending: limit,
      borrowing: limit,
    }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("raise" as const) }) },
);

function sorted(sums: readonly { readonly scope: Scope; readonly used: number }[]) {
  return sums.map(({ scope, used }) => `${JSON.stringify(scope)} ${used}`).sort();
}

/** The ledger, and the counters' specification that is opened from it. */
async function pair() {
  const ledger = await freshLedger(db);
  const { store } = ledger;
  const quotas = POOLS.map((flavor) => ({ flavor, resource: "slots", nominal: 4 }));
  await store.pools.register(poolChange({ name: "ex:other", quota: 6 }), { version: 0, actor: "admin" });
  for (const name of QUEUES) await store.admin.createQueue({ name, strategy: "BEST_EFFORT_FIFO", quotas });
  for (const [name, parent] of Object.entries(PARENTS)) {
    await db.query("update queues set parent = $2 where name = $1", [name, parent]);
  }
  const counters = new CounterState();
  let { epoch } = ledger;
  let fences = 0n;
  const raise = async () => {
    const raised = await ledgerAt(store).raiseEpoch(epoch);
    assert.ok(raised.kind === "raised");
    epoch = raised.epoch;
    counters.open(epoch, raised);
  };
  await raise();

  const steps = {
    grant: async ({ allocations, holder: name }: Extract<Step, { kind: "grant" }>) => {
      const holder = caller(name);
      const asked = counters.grant({ epoch, holder, allocations, priority: 0, waiter: null });
      fences += 1n;
      // Asks the ledger even if the counters refuse, as counters that have lost tokens would.
      const fence = asked.kind === "granted" ? asked.fence : (BigInt(epoch) << 32n) + (1n << 31n) + fences;
      const [outcome] = await ledgerAt(store, NOW).commit(epoch, [{ allocations, holder, fence }]);
      if (asked.kind === "granted") assert.deepEqual(outcome, { kind: "committed" });
      else if (asked.kind === "exhausted") assert.deepEqual(outcome, { kind: "over", violation: asked.violation });
      else assert.equal(outcome?.kind, "taken");
    },
    release: async ({ pool, token, holder }: Extract<Step, { kind: "release" }>) => {
      const [outcome] = await ledgerAt(store, NOW).release([releaseOf({ pool, token, holder: caller(holder) })]);
      if (outcome?.kind === "released") assert.deepEqual(counters.free(epoch, [outcome.ref]), ["freed"]);
    },
    pool: async ({ pool, quota, project }: Extract<Step, { kind: "pool" }>) => {
      await store.pools.register(poolChange({ name: pool, quota, projectDefault: project }), {
        version: 0,
        actor: "admin",
      });
      counters.setLimits(epoch, await ledgerAt(store).readLimits());
    },
    queue: async ({ queue, nominal, lending, borrowing }: Extract<Step, { kind: "queue" }>) => {
      await db.query(
        `update queue_quotas set nominal = $2, lending_limit = $3, borrowing_limit = $4
          where queue = $1 and position = 0`,
        [queue, nominal, lending, borrowing],
      );
      await db.query("update quota_domains set limits_version = limits_version + 1");
      counters.setLimits(epoch, await ledgerAt(store).readLimits());
    },
    raise,
  };
  return { store, counters, steps };
}

test("the ledger decides and counts like the counters' specification", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(anyStep, { minLength: 4, maxLength: 25 }), async (history) => {
      const { store, counters, steps } = await pair();
      for (const step of history) {
        await steps[step.kind](step as never);
        assert.deepEqual(sorted(await ledgerAt(store).readUsed()), sorted(counters.used()));
      }
      assert.equal(await agrees(store), true);
    }),
    { numRuns: 40 },
  );
});
