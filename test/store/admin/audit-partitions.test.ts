/** The audit log in its partitions: nothing is lost or out of order at their borders, and old ones leave. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { appendAudit, listAudit } from "../../../src/adapters/store/admin/audit.ts";
import {
  dropAuditPartition,
  makeAuditPartitions,
  pruneAudit,
} from "../../../src/adapters/store/admin/audit-partitions.ts";
import type { Db } from "../../../src/adapters/store/db/db.ts";
import type { AuditQuery } from "../../../src/core/admin/audit.ts";
import { onEachDatabase, onPostgres } from "../../support/databases.ts";

const DAY = 86_400_000;
const YEAR = 365 * DAY;
const MONTH = 31 * DAY;

type Bound = { readonly name: string; readonly bound: string };

/** The partitions with their bounds, by name. */
function boundsOf(db: Db): Promise<readonly Bound[]> {
  return db.query<Bound>(
    `select c.relname as name, pg_get_expr(c.relpartbound, c.oid) as bound from pg_class c
      where c.relispartition and c.relkind = 'r' order by name`,
  );
}

/** The time at which the first partition ends; all tests count from it. */
async function firstEnd(db: Db): Promise<number> {
  const first = (await boundsOf(db)).find(({ name }) => name === "audit_entries_first");
  return Number(/TO \('(\d+)'\)/.exec(first?.bound ?? "")?.[1] ?? assert.fail());
}

async function write(db: Db, ...entries: readonly (readonly [subject: string, timeMs: number])[]): Promise<void> {
  for (const [subject, timeMs] of entries) {
    const actor = subject.length % 2 === 0 ? "ann" : "bob";
    await db.tx((tx) => appendAudit(tx, { timeMs, subject, actor, action: "CreateQueue", details: {} }));
  }
}

type Filter = Partial<AuditQuery["filter"]>;

/** The subjects of all pages. */
async function listed(db: Db, filter: Filter = {}, pageSize = 2): Promise<readonly string[]> {
  const subjects: string[] = [];
  let after: string | null = null;
  do {
    const page: Awaited<ReturnType<typeof listAudit>> = await listAudit(db, {
      filter: { actor: null, action: null, subject: null, ...filter },
      pageSize,
      after,
    });
    assert.ok(page !== "badCursor");
    subjects.push(...page.entries.map(({ subject }) => subject));
    after = page.next;
  } while (after !== null);
  return subjects;
}

/** The partitions in which entries are, by their subjects. */
async function places(db: Db): Promise<Readonly<Record<string, string>>> {
  const rows = await db.query<{ subject: string; place: string }>(
    "select subject, tableoid::regclass::text as place from audit_entries",
  );
  return Object.fromEntries(rows.map(({ subject, place }) => [subject, place.replace("audit_entries_", "")]));
}

/** A database of its own: a partition that is dropped is gone for other tests too. */
async function withDb(open: () => Promise<Db>, work: (db: Db) => Promise<void>): Promise<void> {
  const db = await open();
  try {
    await work(db);
  } finally {
    await db.close();
  }
}

onEachDatabase((openDb) => {
  test("entries on both sides of each border are listed in the order in which they were written", () =>
    withDb(openDb, async (db) => {
      const end = await firstEnd(db);
      await makeAuditPartitions(db, { nowMs: end - 2 * DAY, keptMs: YEAR });
      assert.deepEqual(
        (await boundsOf(db)).map(({ name, bound }) => [name, bound]),
        [
          [`audit_entries_${end}`, `FOR VALUES FROM ('${end}') TO ('${end + MONTH}')`],
          ["audit_entries_default", "DEFAULT"],
          ["audit_entries_first", `FOR VALUES FROM (MINVALUE) TO ('${end}')`],
        ],
      );
      await makeAuditPartitions(db, { nowMs: end + 1, keptMs: YEAR });
      const next = end + MONTH;
      const entries = [
        ["after", end],
        ["before", end - 1],
        ["old", -5],
        ["last", next - 1],
        ["next", next],
        ["beyond", next + YEAR],
        ["late", end - 2],
      ] as const;
      await write(db, ...entries);
      assert.deepEqual(await places(db), {
        old: "first",
        late: "first",
        before: "first",
        after: String(end),
        last: String(end),
        next: String(next),
        beyond: "default",
      });
      const expected = (keeps: (subject: string, timeMs: number) => boolean) =>
        entries
          .filter(([subject, timeMs]) => keeps(subject, timeMs))
          .map(([subject]) => subject)
          .reverse();
      for (const pageSize of [1, 2, 7]) {
        assert.deepEqual(
          await listed(db, {}, pageSize),
          expected(() => true),
        );
        assert.deepEqual(
          await listed(db, { actor: "ann" }, pageSize),
          expected((subject) => subject.length % 2 === 0),
        );
        for (const at of [end - 1, end, next, next + YEAR]) {
          assert.deepEqual(
            await listed(db, { sinceMs: at }, pageSize),
            expected((_, timeMs) => timeMs >= at),
          );
          assert.deepEqual(
            await listed(db, { untilMs: at }, pageSize),
            expected((_, timeMs) => timeMs < at),
          );
        }
      }
      assert.deepEqual(await listed(db, { subject: "next", action: "CreateQueue" }), ["next"]);
    }));

  test("entries without a partition are kept, and partitions are made around them", () =>
    withDb(openDb, async (db) => {
      const end = await firstEnd(db);
      // No process has run for 30 days, and a clock is 10 days ahead.
      const nowMs = end + 30 * DAY;
      await write(db, ["now", nowMs], ["ahead", nowMs + 10 * DAY]);
      await makeAuditPartitions(db, { nowMs, keptMs: YEAR });
      const begin = nowMs + 11 * DAY;
      assert.deepEqual(
        (await boundsOf(db)).map(({ name }) => name),
        [`audit_entries_${begin}`, "audit_entries_default", "audit_entries_first"],
      );
      await write(db, ["soon", nowMs + 1], ["later", begin]);
      assert.deepEqual(await places(db), {
        now: "default",
        ahead: "default",
        soon: "default",
        later: String(begin),
      });
      assert.deepEqual(await listed(db), ["later", "soon", "ahead", "now"]);
      assert.equal(await pruneAudit(db, nowMs + 1), 1);
      assert.deepEqual(await listed(db), ["later", "soon", "ahead"]);
    }));

  test("old entries of the first partition are deleted, until it leaves as a whole like the others", () =>
    withDb(openDb, async (db) => {
      const end = await firstEnd(db);
      await makeAuditPartitions(db, { nowMs: end - 2 * DAY, keptMs: YEAR });
      await write(db, ["a", end - 2], ["b", end - 1], ["c", end], ["d", end + MONTH - 1], ["e", end + MONTH]);
      assert.equal(await dropAuditPartition(db, end - 1), false);
      assert.equal(await pruneAudit(db, end - 1), 1);
      assert.equal(await pruneAudit(db, end - 1), 0);
      assert.deepEqual(await listed(db), ["e", "d", "c", "b"]);
      assert.equal(await dropAuditPartition(db, end), true);
      assert.equal(await dropAuditPartition(db, end), false);
      assert.deepEqual(await listed(db), ["e", "d", "c"]);
      // The next partition leaves as a whole: its oldest entry stays as long as its newest.
      assert.equal(await dropAuditPartition(db, end + MONTH - 1), false);
      assert.equal(await pruneAudit(db, end + MONTH - 1), 0);
      assert.deepEqual(await listed(db), ["e", "d", "c"]);
      assert.equal(await dropAuditPartition(db, end + MONTH), true);
      assert.deepEqual(await listed(db), ["e"]);
      // An entry of long ago still has a place, and leaves by the next deletion.
      await write(db, ["late", end - 2]);
      assert.deepEqual(await places(db), { e: "default", late: "default" });
      assert.equal(await pruneAudit(db, end), 1);
      assert.deepEqual(await listed(db), ["e"]);
    }));
});

onPostgres((openDb) => {
  test("several processes make and drop partitions at once, each of them once", () =>
    withDb(openDb, async (db) => {
      const end = await firstEnd(db);
      const six = <T>(work: () => Promise<T>) => Promise.all(Array.from({ length: 6 }, work));
      await six(() => makeAuditPartitions(db, { nowMs: end - 2 * DAY, keptMs: 5 * DAY }));
      const made = (await boundsOf(db)).map(({ name }) => name).filter((name) => /\d$/.test(name));
      assert.deepEqual(
        made,
        Array.from({ length: 5 }, (_, day) => `audit_entries_${end + day * DAY}`),
      );
      const dropped = await six(() => dropAuditPartition(db, end + DAY));
      assert.equal(dropped.filter((one) => one).length, 2);
    }));

  test("a partition waits briefly for a transaction that writes, and is dropped once that has ended", () =>
    withDb(openDb, async (db) => {
      const end = await firstEnd(db);
      const wrote = Promise.withResolvers<void>();
      const go = Promise.withResolvers<void>();
      const writing = db.tx(async (tx) => {
        await appendAudit(tx, { timeMs: end - 1, subject: "slow", action: "CreateQueue", details: {} });
        wrote.resolve();
        await go.promise;
      });
      await wrote.promise;
      const dropping = assert.rejects(dropAuditPartition(db, end), /lock timeout/);
      // Another writer waits behind the drop at most as long as that waits.
      await write(db, ["quick", end + 1]);
      await dropping;
      assert.deepEqual(await listed(db), ["quick"]);
      go.resolve();
      await writing;
      assert.deepEqual(await listed(db), ["quick", "slow"].toSorted());
      assert.equal(await dropAuditPartition(db, end), true);
      assert.deepEqual(await listed(db), ["quick"]);
    }));

  test("an entry that is written while its partition is dropped is kept", () =>
    withDb(openDb, async (db) => {
      const end = await firstEnd(db);
      const writes: Promise<void>[] = [];
      await db.tx(async (tx) => {
        await tx.query("drop table audit_entries_first");
        writes.push(write(db, ["meanwhile", end - 1]));
        for (let waiting = 0; waiting === 0; ) {
          const [row] = await tx.query<{ count: number }>(
            "select count(*) from pg_locks where relation = 'audit_entries'::regclass and not granted",
          );
          waiting = row?.count ?? 0;
        }
      });
      await Promise.all(writes);
      assert.deepEqual(await places(db), { meanwhile: "default" });
    }));

  test("a page of the newest entries is read by an index of each partition", () =>
    withDb(openDb, async (db) => {
      const end = await firstEnd(db);
      await makeAuditPartitions(db, { nowMs: end - 2 * DAY, keptMs: YEAR });
      await db.query(
        `insert into audit_entries (at_ms, actor, action, subject, reason, details)
         select $1::bigint + n * 100000, 'a' || n % 10, 'CreateQueue', 's', '', '{}'
           from generate_series(-20000, 20000) n`,
        [end],
      );
      await db.query("analyze audit_entries");
      const plan = await db.query<{ "QUERY PLAN": string }>(
        "explain (costs off) select id from audit_entries where actor = 'a1' order by id desc limit 100",
      );
      const text = plan.map((row) => row["QUERY PLAN"]).join("\n");
      assert.match(text, /Merge Append/);
      assert.doesNotMatch(text, /Sort\b(?! Key)|Seq Scan/);
    }));
});
