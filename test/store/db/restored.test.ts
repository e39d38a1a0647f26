/** What a restore does to positions and fences: by a command for a folder, and by itself on a new timeline. */
import assert from "node:assert/strict";
import { cpSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, test } from "node:test";
import type { Db } from "../../../src/adapters/store/db/db.ts";
import { openPglite } from "../../../src/adapters/store/db/pglite.ts";
import { openPostgres } from "../../../src/adapters/store/db/postgres.ts";
import { createStore } from "../../../src/adapters/store/store.ts";
import { startEmbedded } from "../../../src/compose/embedded.ts";
import { markRestoredFolder } from "../../../src/compose/restored-folder.ts";
import { readConfig } from "../../../src/config/config.ts";
import { run } from "../../cli/harness.ts";
import { newDataFolder } from "../../support/data-folder.ts";
import { OWN_KINDS } from "../../support/kinds.ts";
import { createDatabase, postgresOptions } from "../../support/postgres.ts";
import { hasPostgresPrograms, PostgresProcess } from "../../support/postgres-process.ts";
import { NOW, newJob, sentOf } from "../jobs.ts";

function storeOf(db: Db) {
  return createStore(db, {
    clock: { nowMs: () => NOW },
    kinds: OWN_KINDS,
    openNamespaces: true,
    defaultQueue: "research",
    onAppended: () => {},
  });
}

async function fill(db: Db, ...names: readonly string[]) {
  const store = storeOf(db);
  await store.admin.ensureQueue({ name: "research", strategy: "BEST_EFFORT_FIFO", quotas: [] });
  for (const name of names) {
    const job = newJob({ name });
    await store.intake.createJob({ job, sent: sentOf(job), requestId: "" });
  }
  return (await store.watch.sequence()).head;
}

async function epochOf(db: Db): Promise<number> {
  const [row] = await db.query<{ epoch: number }>("select epoch from quota_domains where name = 'default'");
  return row?.epoch ?? Number.NaN;
}

test("a folder that was put back from a copy begins anew once the command has marked it", async (t) => {
  const directory = mkdtempSync(join(tmpdir(), "gangway-restored-"));
  t.after(() => rmSync(directory, { recursive: true, force: true }));
  const [data, copy] = [join(directory, "data"), join(directory, "copy")];
  assert.equal((await markRestoredFolder(data)).kind, "refused");
  const first = await openPglite(join(data, "db"));
  const before = await fill(first, "a");
  const epoch = await epochOf(first);
  await first.close();
  cpSync(data, copy, { recursive: true });
  const running = await openPglite(join(data, "db"));
  const { position } = await fill(running, "b", "c");
  assert.equal(position, 3);
  const held = await markRestoredFolder(data);
  assert.ok(held.kind === "refused" && /is held by process/.test(held.message), JSON.stringify(held));
  await running.close();
  rmSync(data, { recursive: true });
  cpSync(copy, data, { recursive: true });
  assert.deepEqual(await markRestoredFolder(data), { kind: "migrated", ran: [] });
  const restored = await openPglite(join(data, "db"));
  const head = await fill(restored, "d", "e");
  assert.equal(head.position, 3);
  assert.notEqual(head.incarnation, before.incarnation);
  assert.equal((await storeOf(restored).watch.entriesAfter({ ...before, position: 3 }, 9)).gap, true);
  assert.ok((await epochOf(restored)) >= epoch + 1_000);
  await restored.close();
});

/** Serves a folder while `work` runs. */
async function serving<T>(data: string, work: (gangway: (...argv: string[]) => Promise<string>) => Promise<T>) {
  const config = readConfig(data, { GANGWAY_DATA: data, GANGWAY_LOG_LEVEL: "silent" });
  const options = { exit: false, examples: false, listen: "127.0.0.1:0", data, insecure: false, simulate: false };
  const { address, close } = await startEmbedded(options, config, OWN_KINDS);
  const gangway = async (...argv: string[]) => {
    const { exitCode, stdout, stderr } = await run(argv, { address });
    assert.equal(exitCode, 0, stderr);
    return stdout;
  };
  try {
    return await work(gangway);
  } finally {
    await close();
  }
}

test("a token without a lease that was released after the copy is held until it is released or taken", async (t) => {
  const data = newDataFolder("gangway-restored-");
  const copy = mkdtempSync(join(tmpdir(), "gangway-copy-"));
  t.after(() => {
    for (const one of [data, copy]) rmSync(one, { recursive: true, force: true });
  });
  await serving(data, async (gangway) => {
    await gangway("quota", "register", "ex:warehouse", "--quota", "20", "--default-lease", "never");
    for (const token of ["q1", "q2"]) await gangway("alloc", "ex:warehouse", token);
  });
  cpSync(data, copy, { recursive: true });
  await serving(data, async (gangway) => {
    for (const token of ["q1", "q2"]) await gangway("release", "ex:warehouse", token);
  });
  rmSync(data, { recursive: true });
  cpSync(copy, data, { recursive: true });
  assert.equal((await markRestoredFolder(data)).kind, "migrated");
  await serving(data, async (gangway) => {
    await gangway("quota", "reconcile");
    assert.match(await gangway("quota", "allocations", "--pool", "ex:warehouse"), /q1.*\n.*q2/);
    assert.match(await gangway("release", "ex:warehouse", "q1"), /released/);
    await gangway("quota", "release", "ex:warehouse", "q2", "--force", "--reason", "released before the restore");
    assert.equal(await gangway("quota", "allocations", "--pool", "ex:warehouse"), "");
  });
});

test("gangway migrate tells what it was asked for, and refuses a folder without --restored", async () => {
  const asked: unknown[] = [];
  const migrate = async (request: unknown) => {
    asked.push(request);
    return { kind: "migrated" as const, ran: [] };
  };
  const { exitCode, stdout } = await run(["migrate", "--restored", "--data", "folder"], { migrate });
  assert.equal(exitCode, 0);
  assert.match(stdout, /watches begin anew/);
  assert.deepEqual(asked, [{ offline: false, restored: true, data: "folder" }]);
  assert.doesNotMatch((await run(["migrate"], { migrate })).stdout, /anew/);
  const usage = await run(["migrate", "--data", "folder"], { migrate });
  assert.equal(usage.exitCode, 2);
  assert.match(usage.stderr, /--data needs --restored/);
});

describe("on a server of its own", { skip: !hasPostgresPrograms() }, () => {
  test("a promoted standby gives positions in a new incarnation, and a restarted server in the same", async (t) => {
    const server = await PostgresProcess.start();
    t.after(() => server.stop());
    const { url } = await createDatabase(server.url);
    const open = () => openPostgres(postgresOptions(url));
    let db = await open();
    const before = await fill(db, "a");
    const epoch = await epochOf(db);
    // Databases of tests do not wait for the disk.
    await db.query("checkpoint");
    await db.close();
    await server.crash();
    await server.start();
    db = await open();
    assert.deepEqual(await fill(db, "b"), { ...before, position: 2 });
    await db.query("checkpoint");
    await db.close();
    await server.promote();
    db = await open();
    // Nothing was written yet: an idle log notices it too.
    const { head, given } = await storeOf(db).watch.sequence();
    assert.deepEqual([head.position, given], [2, 0]);
    assert.notEqual(head.incarnation, before.incarnation);
    assert.equal((await storeOf(db).watch.entriesAfter(before, 9)).gap, true);
    assert.equal(await epochOf(db), epoch + 1_000);
    assert.deepEqual(await fill(db, "c"), { ...head, position: 3 });
    await db.close();
  });
});
