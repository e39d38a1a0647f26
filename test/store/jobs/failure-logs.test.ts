import assert from "node:assert/strict";
import { after, before, beforeEach, test } from "node:test";
import type { Db } from "../../../src/adapters/store/db/db.ts";
import { createStore } from "../../../src/adapters/store/store.ts";
import type { FailureLog } from "../../../src/core/job/failure-logs/kept-logs.ts";
import type { Job } from "../../../src/core/job/job.ts";
import { onEachDatabase } from "../../support/databases.ts";
import { OWN_KINDS } from "../../support/kinds.ts";
import { NOW } from "../jobs.ts";
import { freshPlanner, type TestPlanner } from "../planner-fixture.ts";

const NAMESPACE_BYTES_MAX = 40_000;

function logOf(changed: Partial<FailureLog> & { readonly text?: string } = {}): FailureLog {
  const { text = "boom", ...rest } = changed;
  const attempt = rest.attempt ?? 1;
  const replica = rest.replica ?? "Worker/0";
  return {
    podUid: `${replica}-${attempt}`,
    container: "pytorch",
    restarts: 0,
    replica,
    attempt,
    admission: 1,
    cluster: "east",
    pod: "train-worker-0",
    exitCode: 1,
    reason: "Error",
    lines: { text, cut: false },
    problem: null,
    ...rest,
  };
}

onEachDatabase((openDb) => {
  let db: Db;
  let store: ReturnType<typeof createStore>;
  let planner: TestPlanner;
  before(async () => {
    db = await openDb();
  });
  after(() => db.close());
  beforeEach(async () => {
    planner = await freshPlanner(db);
    store = createStore(db, {
      clock: { nowMs: () => NOW },
      kinds: OWN_KINDS,
      openNamespaces: true,
      defaultQueue: "research",
      failureLogBytesMax: NAMESPACE_BYTES_MAX,
      onAppended: () => {},
    });
  });

  const keep = ({ uid, namespace }: Job, ...logs: readonly FailureLog[]) =>
    store.failureLogs.keep({ jobUid: uid, namespace, gang: true, logs });
  const logsOf = async ({ uid }: Job) => (await store.reads.failureLogs(uid))?.logs ?? [];
  const attemptsOf = async (job: Job) => (await logsOf(job)).map(({ attempt }) => attempt);
  const settingsOf = (keepFailureLogs?: boolean) => ({
    name: "team",
    project: "default",
    defaultQueue: "research",
    version: 0,
    ...(keepFailureLogs === undefined ? {} : { keepFailureLogs }),
  });

  test("a log is kept once, with everything that is known of it", async () => {
    const job = await planner.submit();
    const log = logOf({ text: "line 1\nline 2 é", lines: { text: "line 1\nline 2 é", cut: true } });
    assert.equal(await keep(job, log), 16);
    assert.equal(await keep(job, { ...log, lines: { text: "another", cut: false } }), 0);
    assert.deepEqual(
      await logsOf(job),
      [{ ...log, readMs: NOW }].map(({ ...all }) => all),
    );
    assert.deepEqual(await store.failureLogs.keptRuns(job.uid), [
      { podUid: log.podUid, container: "pytorch", restarts: 0 },
    ]);
  });

  test("a problem is kept in place of lines", async () => {
    const job = await planner.submit();
    const problem = { reason: "Forbidden", message: "may not read logs" };
    assert.equal(await keep(job, logOf({ text: "", problem })), 0);
    assert.deepEqual((await logsOf(job))[0]?.problem, problem);
  });

  test("the last three attempts stay", async () => {
    const job = await planner.submit();
    for (const attempt of [1, 2, 3, 4, 5]) await keep(job, logOf({ attempt }));
    assert.deepEqual(await attemptsOf(job), [5, 4, 3]);
  });

  test("of a namespace the oldest go, whichever job they belong to", async () => {
    const [first, second] = [await planner.submit(), await planner.submit()];
    const text = "x".repeat(16_000);
    await keep(first, logOf({ attempt: 1, text }));
    await keep(first, logOf({ attempt: 2, text }));
    await keep(second, logOf({ attempt: 1, text }));
    assert.deepEqual([await attemptsOf(first), await attemptsOf(second)], [[2], [1]]);
    const others = Array.from({ length: 8 }, (_, at) =>
      keep(at % 2 === 0 ? first : second, logOf({ attempt: 3 + at, text })),
    );
    await Promise.all(others);
    const [row] = await db.query<{ bytes: number }>("select sum(bytes)::int as bytes from failure_logs");
    assert.ok((row?.bytes ?? 0) <= NAMESPACE_BYTES_MAX && (row?.bytes ?? 0) > 0);
  });

  test("a namespace that keeps none loses those that it has, and takes no new ones; that is audited", async () => {
    const job = await planner.submit();
    await keep(job, logOf());
    assert.equal((await store.admin.updateNamespace(settingsOf())).kind, "done");
    assert.equal((await logsOf(job)).length, 1, "an update that does not name it leaves it as it is");
    await store.admin.updateNamespace(settingsOf(false));
    assert.deepEqual(await store.reads.failureLogs(job.uid), { keeps: false, logs: [] });
    assert.equal(await store.failureLogs.keptRuns(job.uid), null);
    assert.equal(await keep(job, logOf({ attempt: 2 })), 0);
    assert.deepEqual(await attemptsOf(job), []);
    const entries = await db.query<{ details: { after: { keepFailureLogs: boolean } } }>(
      "select details from audit_entries where action = 'UpdateNamespace' order by id",
    );
    assert.deepEqual(
      entries.map(({ details }) => details.after.keepFailureLogs),
      [true, false],
    );
    await store.admin.updateNamespace(settingsOf(true));
    assert.ok((await keep(job, logOf({ attempt: 3 }))) > 0);
  });

  test("logs go with their job, and a job that is gone gets none", async () => {
    const job = await planner.submit();
    await keep(job, logOf());
    await db.query("delete from jobs where uid = $1", [job.uid]);
    assert.deepEqual(await db.query("select 1 from failure_logs"), []);
    assert.equal(await keep(job, logOf({ attempt: 2 })), 0);
    assert.equal(await store.reads.failureLogs(job.uid), null);
  });

  test("logs are kept while other transactions delete the jobs of the namespace", async () => {
    const jobs = await Promise.all(Array.from({ length: 6 }, () => planner.submit()));
    const text = "x".repeat(9_000);
    const keeping = jobs.flatMap((job) => [1, 2, 3].map((attempt) => keep(job, logOf({ attempt, text }))));
    const deleting = jobs.slice(0, 3).map(({ uid }) => db.query("delete from jobs where uid = $1", [uid]));
    await Promise.all([...keeping, ...deleting]);
    const [row] = await db.query<{ bytes: number }>("select coalesce(sum(bytes), 0)::int as bytes from failure_logs");
    assert.ok((row?.bytes ?? 0) <= NAMESPACE_BYTES_MAX);
  });
});
