import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import type { Db } from "../../src/adapters/store/db.ts";
import { openPostgres } from "../../src/adapters/store/postgres.ts";
import { createStore } from "../../src/adapters/store/store.ts";
import { createEmptyDatabase, onServer, postgresOptions, postgresServer } from "../support/postgres.ts";
import { NOW } from "./jobs.ts";
import { releaseOf } from "./ledger-fixture.ts";

const server = await postgresServer();
const MIGRATIONS = join(import.meta.dirname, "../../migrations");
const JOB = "01900000-0000-7000-8000-000000000001";
const POOL = "gpu/h100";

/** What version 2 of the program wrote for a grant: no sums of projects and namespaces. */
async function grantAsVersion2(db: Db, of: { token: string; amount: number; fence: number }): Promise<void> {
  const { token, amount, fence } = of;
  for (const [scope, name] of [
    ["queue", "research"],
    ["pool", ""],
  ]) {
    await db.query(
      `insert into allocation_sums as s (pool, scope, name, used) values ('${POOL}', $1, $2, $3)
       on conflict (pool, scope, name) do update set used = s.used + excluded.used`,
      [scope, name, amount],
    );
  }
  await db.query(
    `insert into allocations (pool, token, queue, project, namespace, amount, fence, job_uid, admission, granted_ms)
     values ('${POOL}', $1, 'research', 'vision "a"', 'team', $2, $3, '${JOB}', 1, ${NOW})`,
    [token, amount, fence],
  );
}

async function migrateFrom(url: string, prefixes: readonly string[]): Promise<void> {
  const files = readdirSync(MIGRATIONS).filter((file) => prefixes.includes(file.slice(0, 4)));
  await onServer(url, async (client) => {
    for (const file of files.sort()) await client.query(readFileSync(join(MIGRATIONS, file), "utf8"));
  });
}

describe("on PostgreSQL", { skip: server === null }, () => {
  test("what version 2 has granted is counted everywhere after the migration, and what it still grants after a raised epoch", async () => {
    const { url, drop } = await createEmptyDatabase(server ?? "");
    const db = await openPostgres(postgresOptions(url));
    try {
      await migrateFrom(url, ["0001", "0002"]);
      await db.query(
        "insert into queues (name, strategy, create_ms, update_ms) values ('research', 'STRICT_FIFO', 7, 7)",
      );
      await db.query(`insert into pools (name, domain) values ('${POOL}', 'default')`);
      await db.query(
        `insert into queue_quotas (queue, position, flavor, resource, nominal) values ('research', 0, '${POOL}', 'gpu', 8)`,
      );
      await grantAsVersion2(db, { token: "a", amount: 3, fence: 1 });
      await migrateFrom(url, ["0003"]);
      const options = {
        clock: { nowMs: () => NOW },
        openNamespaces: true,
        defaultQueue: "research",
        onAppended: () => {},
      };
      const { ledger, pools } = createStore(db, options);
      assert.deepEqual((await pools.check(null)).sums, []);
      const pool = await pools.get(POOL);
      assert.deepEqual([pool?.createTimeMs, pool?.defaultLeaseMs, pool?.quota], [7, 3_600_000, null]);

      await grantAsVersion2(db, { token: "b", amount: 2, fence: 2 });
      const holder = { kind: "admission", jobUid: JOB, admission: 1 } as const;
      const [released] = await ledger.release([releaseOf({ pool: POOL, token: "a", holder })], NOW);
      assert.equal(released?.kind, "released");
      await grantAsVersion2(db, { token: "c", amount: 1, fence: 3 });
      assert.equal((await pools.check(null)).sums.length, 2);
      const raised = await ledger.raiseEpoch("default", null);
      assert.deepEqual(raised.kind === "raised" && raised.rows.map(({ token }) => token), ["b", "c"]);
      assert.deepEqual((await pools.check(null)).sums, []);
    } finally {
      await db.close();
      await drop();
    }
  });
});
