import assert from "node:assert/strict";
import { after, before, beforeEach, test } from "node:test";
import type { Db } from "../../../src/adapters/store/db/db.ts";
import { releaseTokensIn } from "../../../src/adapters/store/ledger/release-tokens.ts";
import type { Allocation, HeldToken } from "../../../src/core/quota/counters.ts";
import type { LedgerGrant } from "../../../src/core/quota/ledger.ts";
import { waitUntil } from "../../support/bounded.ts";
import { onPostgres } from "../../support/databases.ts";
import { ledgerAt } from "../../support/ledger-at.ts";
import { seededRandom } from "../../support/random.ts";
import type { TestStore } from "../db.ts";
import { NOW } from "../jobs.ts";
import { agrees, allocation, caller, freshLedger, POOL, poolChange, releaseOf } from "../ledger-fixture.ts";

const POOLS = [POOL, "ex:b", "ex:c"];
const QUEUES = ["all", "left", "right"];

/** A trigger that refuses every statement that raises a sum above its limit in force. */
const WITNESS = `
create or replace function witness() returns trigger language plpgsql as $$
declare most bigint;
begin
  select case new.scope when 'pool' then quota
                        when 'project' then project_default
                        when 'namespace' then namespace_default end
    into most from pools where name = new.pool;
  if new.used > most and (tg_op = 'INSERT' or new.used > old.used) then
    raise exception 'over the limit: % % % uses % of %', new.pool, new.scope, new.name, new.used, most;
  end if;
  return new;
end $$`;

onPostgres((openDb) => {
  let db: Db;
  let store: TestStore;
  let epoch: number;
  let grant: (allocations: readonly Allocation[], holder?: LedgerGrant["holder"]) => LedgerGrant;
  before(async () => {
    db = await openDb();
    await db.query(WITNESS);
    await db.query(
      "create trigger witness after insert or update on allocation_sums for each row execute function witness()",
    );
  });
  after(() => db.close());
  beforeEach(async () => {
    ({ store, epoch, grant } = await freshLedger(db));
  });

  const commit = async (made: LedgerGrant, under = epoch) =>
    (await ledgerAt(store, NOW).commit(under, [made]))[0]?.kind;

  function held({ allocations, holder, fence }: LedgerGrant): readonly HeldToken[] {
    return allocations.map(({ caps: _, ...rest }) => ({ ...rest, holder, fence, confirmed: false }));
  }

  /** Waits until this many connections of this database wait for a lock. */
  async function blocked(count: number): Promise<void> {
    const waiting = "select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'";
    await waitUntil(`${count} wait for a lock`, async () => (await db.query(waiting)).length >= count, { pollMs: 1 });
  }

  /** Runs `act` while another transaction holds the lock of the pool. */
  async function withPoolTaken<T>(act: () => Promise<T>): Promise<T> {
    await commit(grant([allocation({ token: "first" })]));
    return db.tx(async (tx) => {
      await tx.query("select 1 from allocation_sums where pool = $1 and scope = 'pool' for update", [POOL]);
      return act();
    });
  }

  test("concurrent grants, releases, limits, repairs and epochs exceed no limit and keep every sum right", async () => {
    const random = seededRandom(7);
    const pick = <T>(of: readonly T[]): T => of[Math.floor(random() * of.length)] as T;
    const upTo = (max: number) => Math.floor(random() * (max + 1));
    const quotas = POOLS.map((flavor) => ({ flavor, resource: "slots", nominal: 5 }));
    for (const name of POOLS.slice(1))
      await store.pools.register(poolChange({ name, quota: 8 }), { version: 0, actor: "admin" });
    for (const name of QUEUES) await store.admin.createQueue({ name, strategy: "BEST_EFFORT_FIFO", quotas });
    await db.query("update queues set parent = 'all' where name <> 'all' and name <> 'research'");
    let present = epoch;
    const outcomes: Record<string, number> = {};
    const count = (kind: string | undefined) => {
      outcomes[kind ?? "none"] = (outcomes[kind ?? "none"] ?? 0) + 1;
    };

    const client = async (name: string) => {
      for (let round = 0; round < 40; round += 1) {
        const pools = POOLS.filter(() => random() < 0.5);
        const allocations = (pools.length === 0 ? [POOL] : pools).reverse().map((pool) =>
          allocation({
            pool,
            token: `${name}/${upTo(3)}`,
            amount: 1 + upTo(2),
            project: pick(["p", "p1"]),
            queue: pick([null, "left", "right"]),
          }),
        );
        const made = grant(allocations, caller(name));
        const under = present;
        const fence = (BigInt(under) << 32n) + (made.fence & 0xffff_ffffn);
        count(await commit({ ...made, fence }, under));
        const tokens = POOLS.map((pool) => releaseOf({ pool, token: `${name}/${upTo(3)}`, holder: caller(name) }));
        for (const { kind } of await ledgerAt(store, NOW).release(tokens.reverse())) count(kind);
      }
    };
    const admin = async () => {
      for (let round = 0; round < 25; round += 1) {
        const pool = pick(POOLS);
        await store.pools.register(poolChange({ name: pool, quota: upTo(10), projectDefault: pick([null, upTo(6)]) }), {
          version: 0,
          actor: "admin",
        });
        const queue = await store.admin.getQueue(pick(["left", "right"]));
        assert.ok(queue);
        const changed = quotas.map((quota) => ({ ...quota, nominal: upTo(6) }));
        await store.admin.updateQueue({ ...queue, quotas: changed, version: 0 });
      }
    };
    const keeper = async () => {
      for (let round = 0; round < 12; round += 1) {
        const raised = await ledgerAt(store).raiseEpoch(null);
        present = raised.epoch;
        await store.pools.repair(null);
        await ledgerAt(store).confirmReleases(await ledgerAt(store).unconfirmedReleases(50));
        const { sums } = await store.pools.check(null);
        assert.deepEqual(sums, []);
      }
    };
    await Promise.all([...["c1", "c2", "c3", "c4", "c5", "c6"].map(client), admin(), keeper()]);
    assert.equal(await agrees(store), true);
    assert.ok((outcomes["committed"] ?? 0) > 0 && (outcomes["over"] ?? 0) > 0 && (outcomes["released"] ?? 0) > 0);
  });

  test("of many grants for the last room, one is committed", async () => {
    for (let round = 0; round < 5; round += 1) {
      ({ store, epoch, grant } = await freshLedger(db));
      const grants = Array.from({ length: 12 }, (_, at) => grant([allocation({ token: `t${at}`, amount: 6 })]));
      const kinds = await Promise.all(grants.map((made) => commit(made)));
      assert.equal(kinds.filter((kind) => kind === "committed").length, 1);
    }
  });

  test("of many releases of one token, one succeeds", async () => {
    await commit(grant([allocation({ amount: 10 })]));
    const outcomes = await Promise.all(
      Array.from({ length: 12 }, () => ledgerAt(store, NOW).release([releaseOf({ token: "t1" })])),
    );
    const released = outcomes.flat().filter(({ kind }) => kind === "released");
    assert.equal(released.length, 1);
    assert.equal(await agrees(store), true);
  });

  test("a commit and a void of the same grant agree on which came first", async () => {
    for (let round = 0; round < 40; round += 1) {
      const made = grant([
        allocation({ token: `a${round}`, amount: 1 }),
        allocation({ token: `b${round}`, amount: 1 }),
      ]);
      const both = [() => commit(made), () => ledgerAt(store, NOW).voidGrants(held(made).slice(0, 1))] as const;
      const [committed, voided] =
        round % 2 === 0
          ? await Promise.all([both[0](), both[1]()])
          : (await Promise.all([both[1](), both[0]()])).reverse();
      assert.ok(
        (committed === "committed" && String(voided) === "live") ||
          (committed === "gone" && String(voided) === "voided"),
        `${committed} and ${voided}`,
      );
      assert.equal(await commit(made), committed);
      const tokens = made.allocations.map(({ token }) => releaseOf({ token }));
      for (const { kind } of await ledgerAt(store, NOW).release(tokens)) {
        assert.equal(kind, committed === "committed" ? "released" : "notHeld");
      }
    }
  });

  test("a void waits for a commit in progress, and the commit wins", async () => {
    const made = grant([allocation()]);
    const inFlight = await withPoolTaken(async () => {
      const committing = commit(made);
      await blocked(1);
      const voiding = ledgerAt(store, NOW).voidGrants(held(made));
      await blocked(2);
      return { committing, voiding };
    });
    assert.equal(await inFlight.committing, "committed");
    assert.deepEqual(await inFlight.voiding, ["live"]);
  });

  test("a repeated commit waits for a release in progress, and is then refused", async () => {
    const made = grant([allocation()]);
    assert.equal(await commit(made), "committed");
    const repeated = await db.tx(async (tx) => {
      await releaseTokensIn(tx, { requests: [releaseOf({ token: "t1" })], counts: () => true, nowMs: NOW });
      const committing = commit(made);
      await Promise.race([committing, blocked(1)]);
      return { committing };
    });
    assert.equal(await repeated.committing, "gone");
  });

  test("raising the epoch waits for a running commit and reads it; later old commits are refused", async () => {
    const [early, late] = [grant([allocation({ token: "early" })]), grant([allocation({ token: "late" })])];
    let raisedAt: number | null = null;
    const inFlight = await withPoolTaken(async () => {
      const committing = commit(early);
      await blocked(1);
      const raising = ledgerAt(store)
        .raiseEpoch(epoch)
        .then((raised) => {
          raisedAt = raised.epoch;
          return raised;
        });
      await blocked(2);
      const coming = commit(late);
      await blocked(3);
      assert.equal(raisedAt, null);
      return { committing, raising, coming };
    });
    assert.equal(await inFlight.committing, "committed");
    const raised = await inFlight.raising;
    assert.ok(raised.kind === "raised");
    assert.equal(await inFlight.coming, "epochMoved");
    assert.deepEqual(raised.rows.map(({ token }) => token).sort(), ["early", "first"]);
    assert.equal(await commit(late, raised.epoch), "epochMoved");
  });

  test("a lowered limit waits for a commit in progress, and applies to every later one", async () => {
    const inFlight = await withPoolTaken(async () => {
      const committing = commit(grant([allocation({ token: "early", amount: 8 })]));
      await blocked(1);
      const lowering = store.pools.register(poolChange({ quota: 3 }), { version: 0, actor: "admin" });
      await blocked(2);
      const coming = commit(grant([allocation({ token: "late" })]));
      await blocked(3);
      return { committing, lowering, coming };
    });
    assert.equal(await inFlight.committing, "committed");
    assert.equal((await inFlight.lowering).kind, "done");
    assert.equal(await inFlight.coming, "over");
  });

  test("of many processes that expect the same epoch, one raises it", async () => {
    const outcomes = await Promise.all(Array.from({ length: 8 }, () => ledgerAt(store).raiseEpoch(epoch)));
    assert.equal(outcomes.filter(({ kind }) => kind === "raised").length, 1);
    assert.ok(outcomes.every((outcome) => outcome.epoch === epoch + 1));
  });

  test("of many registrations of one pool in different domains, the first fixes the domain", async () => {
    const domains = Array.from({ length: 8 }, (_, at) => `d${at % 4}`);
    const outcomes = await Promise.all(
      domains.map((domain) =>
        store.pools.register(poolChange({ name: "new", quota: 1, domain }), { version: 0, actor: "a" }),
      ),
    );
    const pool = await store.pools.get("new");
    assert.ok(pool);
    for (const [at, outcome] of outcomes.entries()) {
      if (domains[at] === pool.domain) assert.equal(outcome.kind, "done");
      else assert.deepEqual(outcome, { kind: "fixed", field: "domain", is: pool.domain });
    }
    assert.equal(pool.version, 1);
    assert.deepEqual(
      (await store.pools.listDomains()).map(({ domain }) => domain).sort(),
      ["default", pool.domain].sort(),
    );
  });
});
