import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { chmodSync, existsSync, mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { after, test } from "node:test";
import { DirectoryHeldError, lockDirectory } from "../../../src/adapters/store/db/directory-lock.ts";
import { openPglite } from "../../../src/adapters/store/db/pglite.ts";
import { holdDirectory, openDirectory } from "../../../src/compose/database.ts";

const root = mkdtempSync(join(tmpdir(), "gangway-store-"));
after(() => rmSync(root, { recursive: true, force: true }));

function run(script: string, directory: string) {
  const child = spawn(process.execPath, [join(import.meta.dirname, "..", script), directory], {
    stdio: ["pipe", "pipe", "inherit"],
  });
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  return { child, line: async () => (await lines.next()).value as string };
}

async function kill(child: ChildProcess): Promise<void> {
  child.kill("SIGKILL");
  if (child.exitCode === null && child.signalCode === null) await once(child, "exit");
}

test("a second process on a directory is told who holds it, and since when", async () => {
  const directory = join(root, "a");
  const holder = run("hold-directory.ts", directory);
  assert.equal(await holder.line(), "held");
  const since = /is held by process \d+ since \d{4}-\d\d-\d\dT.*Z/;
  assert.throws(
    () => lockDirectory(directory),
    (error) => error instanceof DirectoryHeldError && error.pid === holder.child.pid && since.test(error.message),
  );
  await kill(holder.child);
});

test("a directory is taken over from a process that was killed", async () => {
  const directory = join(root, "b");
  const holder = run("hold-directory.ts", directory);
  assert.equal(await holder.line(), "held");
  await kill(holder.child);
  lockDirectory(directory).release();
});

test("of many processes that find a dead holder one takes over", async () => {
  const directory = join(root, "c");
  const dead = run("hold-directory.ts", directory);
  await dead.line();
  await kill(dead.child);
  const rivals = Array.from({ length: 4 }, () => run("hold-directory.ts", directory));
  const said = await Promise.all(rivals.map((rival) => rival.line()));
  const winner = rivals[said.indexOf("held")];
  assert.deepEqual(said.toSorted(), ["held", ...Array(3).fill(`refused ${winner?.child.pid}`)]);
  await Promise.all(rivals.map((rival) => kill(rival.child)));
});

test("a released directory is free, also for the same process, and a held one is not", () => {
  const directory = join(root, "d");
  const first = lockDirectory(directory);
  assert.throws(() => lockDirectory(directory), DirectoryHeldError);
  first.release();
  lockDirectory(directory).release();
  assert.deepEqual(
    readdirSync(root).filter((name) => name.startsWith("d.lock")),
    ["d.lock.2"],
  );
});

test("a pid that another process has now does not hold a directory", () => {
  const directory = join(root, "e");
  const owner = { pid: process.pid, started: "another boot/1", since: "", id: "x", released: false };
  writeFileSync(`${directory}.lock.7`, JSON.stringify(owner));
  if (!existsSync("/proc/self/stat")) return assert.throws(() => lockDirectory(directory), DirectoryHeldError);
  lockDirectory(directory).release();
  assert.ok(existsSync(`${directory}.lock.8`));
});

test("a lock file without content holds no directory", () => {
  const directory = join(root, "f");
  writeFileSync(`${directory}.lock.1`, "");
  lockDirectory(directory).release();
});

test("a process that is killed while it writes loses no acknowledged write", async () => {
  const directory = join(root, "killed");
  let acknowledged: string[] = [];
  for (const count of [40, 25]) {
    const writer = run("write-until-killed.ts", directory);
    const lines: string[] = [];
    while (lines.length < count) lines.push(await writer.line());
    await kill(writer.child);
    acknowledged = [...new Set([...acknowledged, ...lines.map((line) => line.split(" ")[1] ?? "")])];
  }
  const db = await openPglite(directory);
  const kept = new Set((await db.query<{ name: string }>("select name from jobs")).map(({ name }) => name));
  const [log] = await db.query<{ jobs: number; changes: number }>(
    "select (select count(*) from jobs) as jobs, (select count(*) from job_changes) as changes",
  );
  await db.close();
  assert.ok(acknowledged.length >= 40);
  assert.deepEqual(
    acknowledged.filter((name) => !kept.has(name)),
    [],
  );
  assert.equal(log?.jobs, log?.changes);
});

for (const [name, open] of Object.entries({ "with its database": openDirectory, "beside a server": holdDirectory })) {
  test(`a data directory ${name} is closed to other users, also if it was open to them`, async (t) => {
    const directory = mkdtempSync(join(tmpdir(), "gangway-data-"));
    chmodSync(directory, 0o755);
    const parts = new AsyncDisposableStack();
    t.after(async () => {
      await parts.disposeAsync();
      rmSync(directory, { recursive: true });
    });
    await open(directory, parts);
    assert.equal((statSync(directory).mode & 0o777).toString(8), "700");
  });
}
