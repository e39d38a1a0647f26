import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import type { Db, Executor } from "../../../src/adapters/store/db/db.ts";
import { UnavailableError } from "../../../src/runtime/unavailable-error.ts";
import { onPostgres, openMemoryDb } from "../../support/databases.ts";
import { breachOf } from "../../support/locks/check-locks.ts";
import { checkedDb, frameOf } from "../../support/locks/checked-db.ts";
import { foreignKeysOf, migrationTexts, tablesOf } from "../../support/locks/foreign-keys.ts";
import { EXCEPTIONS, LOCK_ORDER, NEVER_LOCKED } from "../../support/locks/order.ts";
import { seededRandom } from "../../support/random.ts";
import { everyTransaction } from "../every-transaction.ts";

const ROOT = join(import.meta.dirname, "../../..");
const STORE = join(ROOT, "src/adapters/store");

const DOMAIN = "select epoch from quota_domains where name = $1 for no key update";
const SUMS = "select 1 from allocation_sums where pool = any($1) and scope = 'pool' order by pool for no key update";
const JOBS = "select uid from jobs j where j.uid = any($1) order by j.uid for no key update of j skip locked";

const kept: Record<string, readonly string[]> = {
  "a transaction that only reads": ["select * from jobs", "select * from clusters, queues"],
  "leases, jobs, clusters, the domain, sums": [
    "select 1 from leases where name = $1 and epoch = $2 for key share",
    JOBS,
    "select c.name from clusters c join g on g.name = c.name order by c.name for no key update of c",
    DOMAIN,
    SUMS,
    "insert into allocations (pool) select pool from json_to_recordset($1) as l (pool text)",
  ],
  "jobs that are locked are written later": [JOBS, DOMAIN, "update jobs set phase = $1 where uid = any($2)"],
  "a part that nothing reads runs after the statement": [
    "with asked as (insert into asks (hash) values ($1)) update jobs set phase = '' where uid = $2",
  ],
  "rows behind a gate are locked in no order": [JOBS, "delete from refusals where job_uid = any($1)"],
  "rows of a log are inserted in no order": ["insert into job_events (name) select name from unnest($1) name"],
  "one row by its second key": ["select uid from jobs where namespace = $1 and name = $2 for no key update"],
  "four statements after the domain": [DOMAIN, SUMS, "select 1", "select 2", "delete from pools where name = $1"],
};

const broken: Record<string, { statements: readonly string[]; rule: RegExp }> = {
  "jobs after clusters": {
    statements: ["select 1 from clusters where name = $1 for update", JOBS],
    rule: /locks jobs after clusters/,
  },
  "leases after the domain": {
    statements: [DOMAIN, "select bucket from bucket_leases where bucket = any($1) order by bucket for key share"],
    rule: /locks bucket_leases after quota_domains/,
  },
  "queues after the domain, by an insert": {
    statements: [DOMAIN, "insert into queues (name) values ($1)"],
    rule: /locks queues after quota_domains/,
  },
  "a foreign key's lock after the domain": {
    statements: [DOMAIN, "insert into pools as p (name, queue) values ($1, $2)"],
    rule: /locks queues after quota_domains/,
  },
  "a lock in a part that the statement reads": {
    statements: [
      `with c as (select name from clusters where name = $1 for update)
       update jobs set phase = '' where uid in (select uid from c)`,
    ],
    rule: /locks jobs after clusters/,
  },
  "a lock in a query within a query": {
    statements: [
      "update jobs j set phase = '' from (select name from clusters where name = $1 for share) c where j.uid = $2",
    ],
    rule: /locks jobs after clusters/,
  },
  "several jobs in no order": {
    statements: ["update jobs set recheck_at_ms = $2 where uid in (select job_uid from admission_clusters)"],
    rule: /locks several rows of jobs in no order/,
  },
  "several buckets that are deleted in no order": {
    statements: ["delete from bucket_leases"],
    rule: /locks several rows of bucket_leases in no order/,
  },
  "a stronger lock of the same rows": {
    statements: ["select 1 from clusters where name = $1 for key share", "delete from clusters where name = $1"],
    rule: /locks clusters for update, after the transaction has locked it for key share only/,
  },
  "a fifth statement after the domain": {
    statements: [DOMAIN, SUMS, "select 1", "select 2", "select 3", "select 4"],
    rule: /is number 5 after a lock of quota_domains or allocation_sums/,
  },
  "a fifth statement after the sums of pools": {
    statements: [SUMS, "select 1", "select 2", "select 3", "select 4", "select 5"],
    rule: /is number 5/,
  },
  "a whole table": {
    statements: ["lock table clusters in share row exclusive mode"],
    rule: /locks the whole table clusters/,
  },
  "a table without a place": {
    statements: ["insert into novelties (name) values ($1)"],
    rule: /locks novelties, which has no place/,
  },
};

for (const [name, statements] of Object.entries(kept)) {
  test(`keeps the order: ${name}`, () => assert.equal(breachOf(statements), null));
}
for (const [name, { statements, rule }] of Object.entries(broken)) {
  test(`breaks the order: ${name}`, () => assert.match(breachOf(statements)?.rule ?? "nothing is broken", rule));
}

test("every table of the migrations has a place in the order, or is never locked", () => {
  const placed = LOCK_ORDER.map(({ name }) => name);
  const made = tablesOf(migrationTexts()).filter((name) => !NEVER_LOCKED.includes(name));
  assert.deepEqual([...placed].sort(), [...made].sort());
});

test("the foreign keys of the migrations are read", () => {
  const references = migrationTexts().match(/\breferences \w+/g) ?? [];
  assert.equal(foreignKeysOf(migrationTexts()).length, references.length);
});

test("the map names the tables in this order", () => {
  const text = readFileSync(join(ROOT, "docs/architecture/locks.md"), "utf8");
  const listed = [...text.matchAll(/^\d+\. (.*)$/gm)].flatMap(([, line = ""]) =>
    [...line.matchAll(/`(\w+)`/g)].map(([, name]) => name),
  );
  assert.deepEqual(
    listed,
    LOCK_ORDER.map(({ name }) => name),
  );
});

test("a transaction that breaks the order fails, with its file, its statement and the rule", async () => {
  const idle: Executor = { query: async () => [] };
  const db: Db = { ...idle, tx: (fn) => fn(idle), close: async () => undefined };
  const at = "    at breaker (file:///x/src/adapters/store/jobs/some-file.ts:1:1)";
  const checked = checkedDb(db, { place: () => frameOf(at), report: () => undefined });
  const breaking = checked.tx(async (tx) => {
    await tx.query(DOMAIN);
    await tx.query(JOBS);
  });
  await assert.rejects(
    breaking,
    /src\/adapters\/store\/jobs\/some-file\.ts, breaker: statement 2 of 2 locks jobs after .*: select uid from jobs/,
  );
});

test("every file of the store that locks rows or begins a transaction is seen, and keeps the order", async () => {
  const files = new Set<string>();
  const db = checkedDb(await openMemoryDb(), { seen: (file) => files.add(file) });
  try {
    const acts = await everyTransaction(db, seededRandom(1));
    for (let round = 0; round < 6; round += 1) for (const act of Object.values(acts)) await settled(act);
  } finally {
    await db.close();
  }
  const unseen = readdirSync(STORE, { recursive: true, encoding: "utf8" })
    .filter((file) => file.endsWith(".ts") && !file.startsWith("db/"))
    .filter((file) => LOCKS.test(readFileSync(join(STORE, file), "utf8")) && !files.has(`src/adapters/store/${file}`));
  assert.deepEqual(unseen, []);
  assert.deepEqual(Object.keys(EXCEPTIONS), []);
});

/** Text of a file that runs statements in a transaction of its own, or that lock rows. */
const LOCKS = new RegExp(
  "\\bdb\\.tx\\(|\\bundoable<|\\breadSnapshot\\(|" +
    "\\.query[^;]*;[^]*(\\binsert into |\\bupdate \\w+ |\\bdelete from |\\bfor (no key |key )?(update|share)\\b)",
);

/** Runs a transaction. Another one may have deleted what it is about. */
async function settled(act: () => Promise<unknown>): Promise<void> {
  await act().catch((error: unknown) => {
    if (!(error instanceof UnavailableError)) throw error;
  });
}

/** A database that remembers statements that the server has ended because of a deadlock. They are run again. */
function watchingDeadlocks(db: Db, deadlocks: string[]): Db {
  const watching = (executor: Executor): Executor => ({
    query: async (text, params) => {
      try {
        return await executor.query(text, params);
      } catch (error) {
        if ((error as { readonly code?: unknown }).code === "40P01") deadlocks.push(text);
        throw error;
      }
    },
  });
  return { ...db, ...watching(db), tx: (fn) => db.tx((tx) => fn(watching(tx))) };
}

onPostgres((openDb) => {
  test("many transactions of every kind at once never wait for each other in a circle", async (t) => {
    const deadlocks: string[] = [];
    const db = watchingDeadlocks(await openDb(), deadlocks);
    t.after(() => db.close());
    const random = seededRandom(3);
    const acts = Object.values(await everyTransaction(db, random));
    const client = async () => {
      for (let run = 0; run < 120; run += 1) {
        const act = acts[Math.floor(random() * acts.length)];
        if (act !== undefined) await settled(act);
      }
    };
    await Promise.all(Array.from({ length: 12 }, client));
    assert.deepEqual(deadlocks, []);
  });
});
