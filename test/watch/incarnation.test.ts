/** A log whose positions were given again is another one: cursors and open streams of the one before have a gap. */
import assert from "node:assert/strict";
import { after, before, beforeEach, test } from "node:test";
import { markRestored } from "../../src/adapters/store/db/begin-anew.ts";
import type { Db } from "../../src/adapters/store/db/db.ts";
import { readFleet } from "../../src/adapters/store/planning/read-fleet.ts";
import type { WatchItem } from "../../src/core/job/request/event-log.ts";
import { systemClock } from "../../src/runtime/clock.ts";
import { encodeCursor, parseCursor } from "../../src/watch/cursor.ts";
import { createWatch, type Watch } from "../../src/watch/watch.ts";
import { freshStore, type TestStore } from "../store/db.ts";
import { newJob, sentOf } from "../store/jobs.ts";
import { entriesAfter } from "../store/log.ts";
import { onEachDatabase } from "../support/databases.ts";
import { OWN_KINDS } from "../support/kinds.ts";

const ALL = { namespace: "", names: [], kinds: [], phases: [], queue: "", cluster: null, labels: {} };

test("a cursor names its incarnation and has at most 40 characters", () => {
  for (const incarnation of ["", "a", "0123456789"]) {
    for (const position of [0, 7, Number.MAX_SAFE_INTEGER]) {
      const cursor = encodeCursor({ incarnation, position });
      assert.ok(cursor.length <= 40);
      assert.deepEqual(parseCursor(cursor), { incarnation, position });
    }
  }
  const bytes = (text: string) => Buffer.from(text).toString("base64url");
  for (const text of [
    "p1.",
    "p1.a.1",
    "p2.1",
    "p2..1",
    "p2.x.1",
    "p2.01234567890.1",
    "p2.a.9007199254740993",
    "p3.a.1",
  ]) {
    assert.equal(parseCursor(bytes(text)), null, text);
  }
  assert.deepEqual(parseCursor(bytes("p1.12")), { incarnation: "", position: 12 });
});

onEachDatabase((openDb) => {
  let db: Db;
  let store: TestStore;
  let watch: Watch;
  const stop = new AbortController();
  before(async () => {
    db = await openDb();
  });
  after(async () => {
    stop.abort();
    await db.close();
  });
  beforeEach(async () => {
    store = (await freshStore(db)).store;
    watch = makeWatch();
  });

  function makeWatch(): Watch {
    const loopFailed = ({ error }: { readonly error: unknown }) => assert.ifError(error);
    return createWatch({ clock: systemClock(), store: store.watch }, { loopFailed });
  }

  async function submit(...names: readonly string[]): Promise<void> {
    for (const name of names) {
      const job = newJob({ name });
      await store.intake.createJob({ job, sent: sentOf(job), requestId: "" });
    }
    await watch.runOnce();
  }

  /** Reads a stream until an item of this type. */
  async function until(
    type: WatchItem["type"],
    stream: AsyncIterator<WatchItem>,
  ): Promise<{ readonly seen: readonly string[]; readonly cursor: string }> {
    const seen: string[] = [];
    for (;;) {
      const { value, done } = await stream.next();
      assert.ok(done !== true);
      const item: WatchItem = value;
      seen.push("job" in item ? `${item.type} ${item.job.name}` : item.type);
      if (item.type === type) return { seen, cursor: item.cursor };
    }
  }

  function open(cursor = "", by = watch): AsyncIterator<WatchItem> {
    return by.watch({ filter: ALL, cursor, full: false }, stop.signal)[Symbol.asyncIterator]();
  }

  /** What a restore of a dump does: everything after it is gone, and a process begins anew. */
  async function restoreTo(position: number): Promise<void> {
    await db.query("delete from jobs where uid in (select job_uid from job_changes where position > $1)", [position]);
    await db.query("delete from job_changes where position > $1", [position]);
    await db.query("update job_log set head = $1", [position]);
  }

  const names = (count: number, prefix: string) => Array.from({ length: count }, (_, at) => `${prefix}-${at}`);

  /** What happened to the log. The server of the tests does not change, so its name in the log does. */
  const losses: Readonly<Record<string, () => Promise<void>>> = {
    "on another timeline": async () => {
      await restoreTo(2);
      await db.query("update job_log set server = '1/00000001/1'");
      watch = makeWatch();
    },
    "whose head went back under a process that had seen it": () => restoreTo(2),
    "that a command has marked": async () => {
      await restoreTo(2);
      await markRestored({ query: async (text, params) => ({ rows: await db.query(text, params) }) });
      watch = makeWatch();
    },
  };
  for (const [name, lose] of Object.entries(losses)) {
    test(`a client that resumes at a cursor of a log ${name} gets GAP, also once the log has passed it`, async () => {
      await submit(...names(5, "old"));
      const { cursor } = await until("BOOKMARK", open());
      const [before] = await db.query<{ epoch: number }>("select epoch from quota_domains where name = 'default'");
      await lose();
      await submit(...names(9, "new"));
      const { seen } = await until("BOOKMARK", open(cursor));
      assert.equal(seen[0], "GAP");
      assert.deepEqual(
        new Set(seen.slice(1, -1)),
        new Set([...names(2, "old"), ...names(9, "new")].map((one) => `ADDED ${one}`)),
      );
      const [after] = await db.query<{ epoch: number }>("select epoch from quota_domains where name = 'default'");
      assert.ok((after?.epoch ?? 0) >= (before?.epoch ?? 0) + 1_000);
      // It happens once.
      const { incarnation } = await store.watch.head();
      await makeWatch().runOnce();
      assert.equal((await store.watch.head()).incarnation, incarnation);
    });

    test(`an open stream of a log ${name} gets GAP`, async () => {
      await submit(...names(5, "old"));
      const [stream, other] = [open(), open()];
      await until("BOOKMARK", stream);
      await until("BOOKMARK", other);
      const streaming = watch;
      await lose();
      await submit(...names(9, "new"));
      await streaming.runOnce();
      for (const one of [stream, other]) {
        const { seen } = await until("GAP", one);
        assert.equal(seen.filter((item) => item.includes("new")).length, 0);
        assert.equal((await until("BOOKMARK", one)).seen.length, 12);
      }
    });
  }

  test("kept pages of another incarnation are not served", async () => {
    await submit(...names(5, "old"));
    const first = encodeCursor({ ...(await store.watch.head()), position: 1 });
    // A process that has just started reads pages of the log.
    const late = makeWatch();
    const reader = open(first, late);
    assert.deepEqual((await reader.next()).value?.type, "ADDED");
    await reader.return?.();
    await restoreTo(1);
    await db.query("update job_log set server = '1/00000001/1'");
    watch = makeWatch();
    await submit(...names(5, "new"));
    const { seen } = await until("BOOKMARK", open(first, late));
    // The page may be sent to who was in that incarnation, but then comes the gap.
    const fromGap = seen.slice(seen.indexOf("GAP"));
    assert.equal(fromGap.length, 8, fromGap.join());
    const again = encodeCursor({ ...(await store.watch.head()), position: 1 });
    assert.equal((await open(again, late).next()).value?.job.name, "new-0");
  });

  test("a log whose server does not tell its name, or is not known yet, keeps its incarnation", async () => {
    await submit("a");
    const { incarnation } = await store.watch.head();
    await db.query("update job_log set server = null");
    await submit("b");
    assert.equal((await store.watch.head()).incarnation, incarnation);
    const [log] = await db.query<{ server: string | null }>("select server from job_log");
    assert.match(log?.server ?? "", /^\d+\/[0-9A-F]{8}\/\d+$/);
  });

  test("the incarnation that an upgrade finds has cursors of the form before", async () => {
    await db.query("update job_log set incarnation = ''");
    await submit("a");
    const { cursor } = await until("BOOKMARK", open());
    assert.equal(Buffer.from(cursor, "base64url").toString(), "p1.1");
    await submit("b");
    assert.deepEqual((await until("ADDED", open(cursor))).seen, ["ADDED b"]);
  });

  test("a planner that follows the log begins anew with another incarnation", async () => {
    await submit("a");
    const reading = { kinds: OWN_KINDS, asks: new Map() };
    const known = { versionOf: () => null, usedOf: () => 0, cursorOf: () => null };
    let read = await readFleet(db, null, known, reading);
    while (read.more) read = await readFleet(db, read.place, known, reading);
    assert.equal((await readFleet(db, read.place, known, reading)).restarts, false);
    await db.query("update job_log set incarnation = 'abcdef'");
    assert.equal((await readFleet(db, read.place, known, reading)).restarts, true);
    assert.equal((await entriesAfter(store, 0, 9)).gap, false);
  });
});
