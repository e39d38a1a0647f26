import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { cpSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { PGlite } from "@electric-sql/pglite";
import type { Db } from "../../../src/adapters/store/db/db.ts";
import { type MigrationClient, migrate } from "../../../src/adapters/store/db/migrate.ts";
import { migrateDatabase } from "../../../src/adapters/store/db/migrate-server.ts";
import { openPglite } from "../../../src/adapters/store/db/pglite.ts";
import { openPostgres } from "../../../src/adapters/store/db/postgres.ts";
import { requireSchema } from "../../../src/adapters/store/db/schema.ts";
import { SCHEMA_VERSIONS } from "../../../src/adapters/store/db/schema-versions.ts";
import { readGangs } from "../../../src/adapters/store/planning/read-gangs.ts";
import { createStore } from "../../../src/adapters/store/store.ts";
import { connect, type GangwayClient } from "../../../src/cli/rpc/client.ts";
import { startEmbedded } from "../../../src/compose/embedded.ts";
import { readConfig } from "../../../src/config/config.ts";
import { bareSpec, type JobSpec } from "../../../src/core/job/spec.ts";
import { gangOf } from "../../../src/core/plan/model/plan-gang.ts";
import { JobPhase } from "../../../src/gen/gangway/v1/job_pb.ts";
import { JobService } from "../../../src/gen/gangway/v1/job_service_pb.ts";
import { ReleaseOutcome, ResourceManager } from "../../../src/gen/gangway/v1/resource_manager_pb.ts";
import { OWN_KINDS } from "../../support/kinds.ts";
import { ledgerAt } from "../../support/ledger-at.ts";
import { migratedImage } from "../../support/pglite-image.ts";
import { createEmptyDatabase, onServer, postgresOptions, postgresServer } from "../../support/postgres.ts";
import { snapshotOf } from "../../support/snapshot.ts";
import { NOW } from "../jobs.ts";
import { clientOf, fillReleased, RELEASED_NAMES, runReleased, schemaLines } from "../last-release.ts";
import { releaseOf } from "../ledger-fixture.ts";

const server = await postgresServer();
const JOB = "01900000-0000-7000-8000-000000000001";
const POOL = "gpu/h100";

/** Writes a grant as version 2 of the program did: without sums of projects and namespaces. */
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

const storeOptions = {
  kinds: OWN_KINDS,
  clock: { nowMs: () => NOW },
  openNamespaces: true,
  defaultQueue: "research",
  onAppended: () => {},
};
/** Offline, since some of these databases are several versions behind. */
const migrateOptions = (url: string) => ({ url, connectTimeoutMs: 10_000, offline: true });

/** The files with number 0003 do not depend on each other: databases ran any part of them, in any order. */
const version3 = RELEASED_NAMES.filter((name) => name.startsWith("0003"));
const olderThan3 = RELEASED_NAMES.filter((name) => !version3.includes(name));
const without = (name: string) => version3.filter((other) => other !== name);
const states: Record<string, readonly string[]> = {
  "nothing of version 3": [],
  ...Object.fromEntries(version3.map((name) => [`${name} alone`, [name]])),
  ...Object.fromEntries(version3.map((name) => [`all of version 3 but ${name}`, without(name)])),
  "the whole of version 3": version3,
  "the whole of version 3 in the opposite order": version3.toReversed(),
};

/**
 * The sums that the ledger's rows must have, the jobs and the clusters, of a database that was filled before it was
 * upgraded.
 */
async function assertKept(db: Pick<Db, "query">): Promise<void> {
  assert.deepEqual(await db.query("select distinct simulated from admissions"), [{ simulated: true }]);
  assert.deepEqual(await db.query("select distinct simulation from clusters"), [{ simulation: "until_real" }]);
  const jobs = await db.query("select name, phase from jobs order by name");
  assert.deepEqual(
    jobs.map((row) => Object.values(row as object).join(" ")),
    ["done SUCCEEDED", "held RUNNING", "next WAITING"],
  );
  type Specs = { readonly spec: JobSpec; readonly outline: JobSpec | null; readonly sized: boolean };
  const specs = await db.query<Specs>(
    "select spec, outline, spec_bytes = octet_length(spec::text) as sized from jobs order by name",
  );
  for (const { spec, outline, sized } of specs) assert.deepEqual([outline, sized], [bareSpec(spec), true]);
  const sums = await db.query<{ scope: string }>("select scope from allocation_sums where pool = $1 order by scope", [
    POOL,
  ]);
  assert.deepEqual(
    sums.map(({ scope }) => scope),
    ["namespace", "pool", "project", "queue"],
  );
}

/** The names of jobs whose gangs are not those of their records. */
async function outdated(db: Db): Promise<readonly string[]> {
  const rows = await db.query<{ name: string }>(
    "select name from jobs where gang_version is distinct from version order by name",
  );
  return rows.map(({ name }) => name);
}

/** The gang of each job that goes on has the ask of the job's templates. */
async function assertGangs(db: Db): Promise<void> {
  const { worker } = createStore(db, storeOptions);
  const going = await db.query<{ uid: string }>("select uid from jobs where completion_ms is null");
  const select = { condition: "j.completion_ms is null", params: [] };
  const gangs = await readGangs(db, select, { kinds: OWN_KINDS, asks: new Map() });
  assert.equal(gangs.length, going.length);
  for (const gang of gangs) {
    const { job } = (await worker.loadJob(gang.uid)) ?? assert.fail();
    assert.deepEqual(gang, gangOf(job, OWN_KINDS, { generation: 1, lastAdmission: gang.lastAdmission }));
    assert.ok(gang.ask.roles.length > 0);
  }
}

/** A job that the last release has recorded is preempted for another one. */
async function assertPreempts(db: Db): Promise<void> {
  const { worker, planner, members } = createStore(db, storeOptions);
  const select = { condition: "j.name in ('held', 'next')", params: [], order: "order by j.name" };
  const [held, next] = await readGangs(db, select, { kinds: OWN_KINDS, asks: new Map() });
  const [live] = held?.admissions ?? [];
  assert.ok(held && next && live);
  const { uid: jobUid, askHash, generation, queue } = next;
  const where = { cluster: "a100-west", admissionCounter: 0, members: {}, flavors: {}, flavorLabels: {} };
  const planned = { kind: "admit", jobUid, askHash, generation, admission: 1, ...where, allocations: [] } as const;
  const admission = { admission: live.number, members: live.members };
  const victims = [{ jobUid: held.uid, queue: held.queue, ...admission, reason: "InClusterQueue" as const }];
  const plannerEpoch = (await members.takeLease("planner", "p1")) ?? assert.fail();
  const outcomes = await planner.recordPreemptions([{ planned, victims, queue }], plannerEpoch, NOW);
  assert.deepEqual(outcomes, [{ kind: "recorded", evicted: victims }]);
  const victim = (await worker.loadJob(held.uid))?.job.status ?? assert.fail();
  assert.deepEqual([victim.eviction?.preemption, victim.attempts.preemptions], ["InClusterQueue", undefined]);
  assert.equal((await worker.loadJob(jobUid))?.job.status.nomination?.victims.length, 1);
}

/** A store over a database that was upgraded reads and changes the records that the last release has written. */
async function assertWorks(db: Db): Promise<void> {
  await requireSchema(db);
  await assertKept(db);
  const { pools, ledgerOf, worker } = createStore(db, storeOptions);
  assert.deepEqual((await pools.check(null)).sums, []);
  await snapshotOf(db);
  assert.deepEqual(await outdated(db), ["done"]);
  await assertGangs(db);
  const [held] = await db.query<{ uid: string }>("select uid from jobs where name = 'held'");
  const loaded = await worker.loadJob(held?.uid ?? "");
  assert.deepEqual(loaded?.job.admissions[0]?.members, { Worker: 2 });
  const labels = { "nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3" };
  assert.deepEqual(loaded.job.admissions[0]?.flavorLabels, { "nvidia.com/gpu": labels });
  const holder = { kind: "caller", name: "anonymous" } as const;
  const ledger = ledgerAt({ ledgerOf }, NOW);
  const [released] = await ledger.release([releaseOf({ pool: "ex:warehouse", token: "query-17", holder })]);
  assert.equal(released?.kind, "released");
  assert.deepEqual((await pools.check(null)).sums, []);
  await assertPreempts(db);
}

describe("on PGlite", () => {
  let pglite: PGlite;
  let client: MigrationClient;
  const query: Db["query"] = async <R>(text: string, params: readonly unknown[] = []) =>
    (await pglite.query<R>(text, [...params])).rows;
  /** Leaves nothing of the schema. */
  const empty = () => client.query("drop schema public cascade; create schema public");
  before(async () => {
    // The parts of a server take longer to make than a schema, so all tests in memory share one.
    pglite = await PGlite.create({ loadDataDir: await migratedImage() });
    client = clientOf(pglite);
  });
  after(() => pglite.close());

  test("every state of version 3 upgrades to the schema of a new database, and keeps jobs and tokens", async () => {
    await empty();
    await migrate(client);
    const made = await schemaLines(client);
    assert.ok(made.length > 200);
    for (const [name, applied] of Object.entries(states)) {
      await empty();
      await runReleased(client, [...olderThan3, ...applied]);
      await fillReleased(client);
      const ran = await migrate(client);
      const due = SCHEMA_VERSIONS.flat().filter((file) => !olderThan3.includes(file) && !applied.includes(file));
      assert.deepEqual(ran, due, name);
      assert.deepEqual(await schemaLines(client), made, name);
      await assertKept({ query });
      assert.deepEqual(await migrate(client), [], name);
    }
  });

  test("an upgrade retires the simulated clusters beside a real one, whose admissions are real", async () => {
    await empty();
    await runReleased(client);
    await fillReleased(client);
    await client.query("update clusters set simulated = false, credentials = '{}' where name = 'h100-east'");
    await migrate(client);
    const clusters = await client.query("select name, simulation from clusters order by name");
    assert.deepEqual(clusters.rows, [
      { name: "a100-west", simulation: "retired" },
      { name: "h100-east", simulation: null },
    ]);
    const admissions = await client.query("select cluster, simulated from admissions order by cluster");
    assert.deepEqual(admissions.rows, [
      { cluster: "a100-west", simulated: true },
      { cluster: "h100-east", simulated: false },
    ]);
  });

  test("an upgrade deletes request ids whose jobs have left the log, and lets unused asks be pruned", async () => {
    await empty();
    await runReleased(client);
    await fillReleased(client);
    const later = SCHEMA_VERSIONS.flat().filter((name) => !RELEASED_NAMES.includes(name) && name < "0031");
    await runReleased(client, later);
    await client.query(OLD_REQUESTS);
    await migrate(client);
    const ids = await query("select request_id from request_ids where namespace = 'old' order by request_id");
    assert.deepEqual(ids, [{ request_id: "deleted-lately" }, { request_id: "exists" }]);
    assert.deepEqual(await query("select hash from unused_asks"), [{ hash: "unused" }]);
    // A program of the version before deletes a job and changes the ask of another one.
    await query("update jobs set ask_hash = 'mine' where name = 'done'");
    await query("update jobs set ask_hash = 'other' where name = 'done'");
    await query("delete from jobs where name = 'done'");
    assert.deepEqual(await query("select hash from unused_asks order by id"), [
      { hash: "unused" },
      { hash: "mine" },
      { hash: "other" },
    ]);
  });

  test("a data directory of the last release opens, with its jobs and tokens", async () => {
    await inReleasedDirectory(async (directory) => {
      const db = await openPglite(join(directory, "db"));
      await assertWorks(db);
      await db.close();
    });
  });

  test("gangs are computed in batches: a process that is killed meanwhile loses one batch", async () => {
    await inReleasedDirectory(async (directory) => {
      const data = join(directory, "db");
      const filling = await openPglite(data);
      await filling.query(COPIES, [1_300]);
      await filling.close();
      const child = spawn(process.execPath, [join(import.meta.dirname, "../refresh-until-killed.ts"), data], {
        stdio: ["ignore", "pipe", "inherit"],
      });
      await once(child.stdout, "data");
      child.kill("SIGKILL");
      await once(child, "exit");
      const db = await openPglite(data);
      const left = await outdated(db);
      assert.ok(left.length > 1 && left.length < 1_303, `${left.length} of 1,303 jobs have no gang yet`);
      const [asks] = await db.query<{ count: number }>("select count(*) as count from asks");
      assert.ok((asks?.count ?? 0) > 0);
      await snapshotOf(db);
      assert.deepEqual(await outdated(db), ["done"]);
      await assertGangs(db);
      await db.close();
    });
  });

  test("the service starts on a data directory of the last release and continues its jobs", {
    timeout: 300_000,
  }, async () => {
    await inReleasedDirectory(async (directory) => {
      const config = readConfig(directory, { GANGWAY_DATA: directory, GANGWAY_LOG_LEVEL: "silent" });
      const options = {
        exit: false,
        examples: false,
        listen: "127.0.0.1:0",
        data: null,
        insecure: false,
        simulate: false,
      };
      const service = await startEmbedded(options, config, OWN_KINDS);
      const stop = new AbortController();
      const client = connect(service.address, stop.signal);
      try {
        await assertContinues(client);
      } finally {
        stop.abort();
        client.close();
        await service.close();
      }
    });
  });

  test("a data directory of a version after the next is refused, and one of the next version opens", async () => {
    await inReleasedDirectory(async (directory) => {
      const db = await openPglite(join(directory, "db"));
      const record = (version: number) => `comment on table migrations is 'schema version ${version}'`;
      await db.query(record(SCHEMA_VERSIONS.length + 1));
      await db.close();
      const next = await openPglite(join(directory, "db"));
      await next.query(record(SCHEMA_VERSIONS.length + 2));
      await next.close();
      await assert.rejects(openPglite(join(directory, "db")), /install the version of gangway/);
    });
  });
});

/** Request ids of a job that exists, of one that was deleted within 14 days, and of one that was deleted before. */
const OLD_REQUESTS = `
insert into request_ids (namespace, request_id, sent, job_uid, create_ms)
select 'old', 'exists', '{}'::json, uid, 1 from jobs where name = 'done'
union all select 'old', 'deleted-lately', '{}'::json, '01900000-0000-7000-8000-00000000aaaa'::uuid, 1
union all select 'old', 'gone', '{}'::json, '01900000-0000-7000-8000-00000000bbbb'::uuid, 1;
insert into job_changes (job_uid, version, change, job, previous_phase, previous_cluster, at_ms)
values ('01900000-0000-7000-8000-00000000aaaa', 2, 'DELETED', '{}', 'WAITING', '', 1);
insert into asks (hash, ask) values ('unused', '{}')`;

/** Copies the job that waits. */
const COPIES = `
insert into jobs
select (json_populate_record(j, json_build_object('uid', gen_random_uuid(), 'name', j.name || n))).*
  from jobs j, generate_series(1, $1::int) n where j.name = 'next'`;

/** A directory with the database of an embedded service of the last release; it is removed afterwards. */
async function inReleasedDirectory(work: (directory: string) => Promise<void>): Promise<void> {
  const directory = mkdtempSync(join(tmpdir(), "gangway-upgrade-"));
  try {
    cpSync(await releasedDirectory(), join(directory, "db"), { recursive: true });
    await work(directory);
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

let made: Promise<string> | null = null;
after(async () => made && rmSync(await made, { recursive: true, force: true }));

/** Makes the database of the last release once for all tests, which copy it. */
function releasedDirectory(): Promise<string> {
  const make = async () => {
    const directory = mkdtempSync(join(tmpdir(), "gangway-released-"));
    const pglite = await PGlite.create(directory);
    await runReleased(clientOf(pglite));
    await fillReleased(clientOf(pglite));
    await pglite.close();
    return directory;
  };
  made ??= make();
  return made;
}

/** The job that waited for tokens runs once the job that held them is cancelled; a caller can release its token. */
async function assertContinues(client: GangwayClient): Promise<void> {
  const { outcome } = await client.call(ResourceManager.method.releaseResource, {
    resourceNamespace: "ex:warehouse",
    allocationToken: "query-17",
  });
  assert.equal(outcome, ReleaseOutcome.RELEASED);
  const stop = new AbortController();
  let cancelled = false;
  for await (const { job } of client.stream(JobService.method.watchJobs, {}, stop.signal)) {
    const name = job?.metadata?.name;
    const phase = job?.status?.phase;
    if (name === "done") assert.equal(phase, JobPhase.SUCCEEDED);
    if (name === "held" && !cancelled && phase === JobPhase.RUNNING) {
      cancelled = true;
      await client.call(JobService.method.cancelJob, { namespace: "team", name: "held" });
    }
    if (name === "next" && phase === JobPhase.RUNNING) break;
  }
  stop.abort();
  assert.ok(cancelled);
}

describe("on PostgreSQL", { skip: server === null }, () => {
  test("all sums count the grants of version 2 after the migration, and its later grants after an epoch", async () => {
    const { url, drop } = await createEmptyDatabase(server ?? "");
    const db = await openPostgres(postgresOptions(url));
    try {
      await onServer(url, (client) => runReleased(client, olderThan3));
      await db.query(
        "insert into queues (name, strategy, create_ms, update_ms) values ('research', 'STRICT_FIFO', 7, 7)",
      );
      await db.query(`insert into pools (name, domain) values ('${POOL}', 'default')`);
      await db.query(
        `insert into queue_quotas (queue, position, flavor, resource, nominal)
         values ('research', 0, '${POOL}', 'gpu', 8)`,
      );
      await grantAsVersion2(db, { token: "a", amount: 3, fence: 1 });
      assert.equal((await migrateDatabase(migrateOptions(url))).kind, "migrated");
      const { ledgerOf, pools } = createStore(db, storeOptions);
      const ledger = ledgerAt({ ledgerOf }, NOW);
      assert.deepEqual((await pools.check(null)).sums, []);
      const pool = await pools.get(POOL);
      assert.deepEqual([pool?.createTimeMs, pool?.defaultLeaseMs, pool?.quota], [7, 3_600_000, null]);

      await grantAsVersion2(db, { token: "b", amount: 2, fence: 2 });
      const holder = { kind: "admission", jobUid: JOB, admission: 1 } as const;
      const [released] = await ledger.release([releaseOf({ pool: POOL, token: "a", holder })]);
      assert.equal(released?.kind, "released");
      await grantAsVersion2(db, { token: "c", amount: 1, fence: 3 });
      assert.equal((await pools.check(null)).sums.length, 2);
      const raised = await ledger.raiseEpoch(null);
      assert.deepEqual(raised.kind === "raised" && raised.rows.map(({ token }) => token), ["b", "c"]);
      assert.deepEqual((await pools.check(null)).sums, []);
    } finally {
      await db.close();
      await drop();
    }
  });

  for (const [name, applied] of Object.entries(states)) {
    test(`a database with ${name} upgrades through gangway migrate, with jobs and tokens in it`, async () => {
      const { url, drop } = await createEmptyDatabase(server ?? "");
      try {
        await onServer(url, async (client) => {
          await runReleased(client, [...olderThan3, ...applied]);
          await fillReleased(client);
        });
        const outcome = await migrateDatabase(migrateOptions(url));
        const due = SCHEMA_VERSIONS.flat().filter((file) => !olderThan3.includes(file) && !applied.includes(file));
        assert.deepEqual(outcome, { kind: "migrated", ran: due });
        const db = await openPostgres(postgresOptions(url));
        await (applied.includes("0003_resource-manager") ? assertWorks(db) : assertKept(db));
        await db.close();
      } finally {
        await drop();
      }
    });
  }
});
