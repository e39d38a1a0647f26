import assert from "node:assert/strict";
import { after, before, beforeEach, test } from "node:test";
import type { Db } from "../../src/adapters/store/db/db.ts";
import { sequence } from "../../src/adapters/store/jobs/sequence.ts";
import type { JobWatch } from "../../src/api/ports.ts";
import type { Job } from "../../src/core/job/job.ts";
import type { WatchItem } from "../../src/core/job/request/event-log.ts";
import type { JobFilter } from "../../src/core/job/request/filter.ts";
import type { JobPhase } from "../../src/core/job/status.ts";
import { changeJob } from "../../src/core/kinds/change-job.ts";
import { systemClock } from "../../src/runtime/clock.ts";
import type { WatchStore } from "../../src/watch/ports.ts";
import { createWatch, type Watch } from "../../src/watch/watch.ts";
import { freshStore, type TestStore } from "../store/db.ts";
import { NOW, newJob, sentOf } from "../store/jobs.ts";
import { pruneAll } from "../store/prune.ts";
import { onEachDatabase } from "../support/databases.ts";
import { OWN_KINDS } from "../support/kinds.ts";

export const ALL: JobFilter = { namespace: "", names: [], kinds: [], phases: [], queue: "", cluster: null, labels: {} };

onEachDatabase((openDb) => {
  let db: Db;
  let store: TestStore;
  let watch: Watch;
  let stop: AbortController;
  before(async () => {
    db = await openDb();
  });
  after(() => db.close());
  beforeEach(async () => {
    store = (await freshStore(db)).store;
    stop = new AbortController();
    watch = makeWatch();
  });

  const silent = { loopFailed: ({ error }: { error: unknown }) => assert.ifError(error) };

  function makeWatch(options: Parameters<typeof createWatch>[2] = {}): Watch {
    return createWatch({ clock: systemClock(), store: store.watch }, silent, options);
  }

  async function submit(name: string, changes: Partial<Job> = {}): Promise<Job> {
    const job = newJob({ name, ...changes });
    assert.equal((await store.intake.createJob({ job, sent: sentOf(job), requestId: "" })).kind, "created");
    return job;
  }

  /** Moves a job to another phase, as its worker does. */
  async function move(job: Job, phase: JobPhase): Promise<Job> {
    const leases = await store.worker.takeBuckets("w");
    const loaded = await store.worker.loadJob(job.uid);
    assert.ok(loaded);
    const lease = leases.find(({ bucket }) => bucket === loaded.bucket);
    assert.ok(lease);
    const completionTimeMs = phase === "SUCCEEDED" || phase === "FAILED" ? NOW : null;
    const status = { ...loaded.job.status, phase, completionTimeMs };
    const record = { status, admissions: loaded.job.admissions, events: [], deleteTimeMs: loaded.job.deleteTimeMs };
    const decision = { record, forget: false, actions: [], recheckAtMs: null };
    assert.equal(await store.worker.record(loaded.job, decision, lease, NOW), "recorded");
    return { ...loaded.job, status, version: loaded.job.version + 1 };
  }

  async function forget(job: Job): Promise<void> {
    const leases = await store.worker.takeBuckets("w");
    const loaded = await store.worker.loadJob(job.uid);
    assert.ok(loaded);
    const lease = leases.find(({ bucket }) => bucket === loaded.bucket);
    assert.ok(lease);
    const decision = { record: null, forget: true, actions: [], recheckAtMs: null };
    assert.equal(await store.worker.record(loaded.job, decision, lease, NOW), "recorded");
  }

  function open(filter: JobFilter = ALL, cursor = "", full = false, from = watch) {
    const stream = from.watch({ filter, cursor, full }, stop.signal)[Symbol.asyncIterator]();
    return {
      async take(count: number): Promise<readonly WatchItem[]> {
        const items: WatchItem[] = [];
        while (items.length < count) {
          const next = await stream.next();
          assert.ok(!next.done, "the stream ended");
          items.push(next.value);
        }
        return items;
      },
      next: () => stream.next(),
      close: () => stream.return?.(),
    };
  }

  function brief(items: readonly WatchItem[]): readonly string[] {
    return items.map((item) => ("job" in item ? `${item.type} ${item.job.name} ${item.job.status.phase}` : item.type));
  }

  test("positions are given a batch at a time, until no change waits for one", async () => {
    let calls = 0;
    const inTwos = () => {
      calls += 1;
      return sequence(db, null, 2);
    };
    const ports = { clock: systemClock(), store: { ...store.watch, sequence: inTwos } };
    for (const name of ["a", "b", "c", "d", "e"]) await submit(name);
    await createWatch(ports, silent).runOnce();
    assert.deepEqual([(await store.watch.head()).position, calls], [5, 3]);
  });

  test("the log is read only while a stream is open, and a later stream continues from its cursor", async () => {
    let reads = 0;
    const entriesAfter: typeof store.watch.entriesAfter = (...page) => {
      reads += 1;
      return store.watch.entriesAfter(...page);
    };
    const counting = createWatch({ clock: systemClock(), store: { ...store.watch, entriesAfter } }, silent);
    await submit("a");
    await counting.runOnce();
    assert.equal(reads, 0);
    const first = open(ALL, "", false, counting);
    assert.deepEqual(brief(await first.take(2)), ["ADDED a WAITING", "BOOKMARK"]);
    await submit("b");
    await counting.runOnce();
    const [change] = await first.take(1);
    assert.equal(change?.type, "ADDED");
    await first.close();
    const before = reads;
    for (const name of ["c", "d"]) await submit(name);
    await counting.runOnce();
    assert.equal(reads, before);
    const later = open(ALL, change.cursor, false, counting);
    assert.deepEqual(brief(await later.take(2)), ["ADDED c WAITING", "ADDED d WAITING"]);
    await submit("e");
    await counting.runOnce();
    assert.deepEqual(brief(await later.take(1)), ["ADDED e WAITING"]);
    await later.close();
  });

  test("the watch implements the API's port", () => {
    const port: JobWatch = watch;
    assert.equal(port.checkCursor(""), true);
  });

  test("a watch reports the existing jobs, then a bookmark, then each change", async () => {
    const a = await submit("a");
    const reader = open();
    assert.deepEqual(brief(await reader.take(2)), ["ADDED a WAITING", "BOOKMARK"]);
    await submit("b");
    await move(a, "RUNNING");
    await forget(a);
    await watch.runOnce();
    assert.deepEqual(brief(await reader.take(3)), ["ADDED b WAITING", "MODIFIED a RUNNING", "DELETED a RUNNING"]);
    await reader.close();
  });

  test("changed labels move a job from one filter to another, and older entries keep their own numbers", async () => {
    const job = await submit("a", { labels: { team: "a" } });
    const left = open({ ...ALL, labels: { team: "a" } });
    const entered = open({ ...ALL, labels: { team: "b" } }, "", true);
    assert.deepEqual(brief(await left.take(2)), ["ADDED a WAITING", "BOOKMARK"]);
    assert.deepEqual(brief(await entered.take(1)), ["BOOKMARK"]);
    const kind = OWN_KINDS.kindOf(job.spec.kind)!;
    for (const wanted of [{ labels: { team: "b" } }, { replicas: { Worker: 9 } }]) {
      await store.intake.changeJob(job, (found) => changeJob(found, kind, { version: null, ...wanted }, NOW), NOW);
    }
    await watch.runOnce();
    assert.deepEqual(brief(await left.take(1)), ["DELETED a WAITING"]);
    const items = await entered.take(2);
    assert.deepEqual(brief(items), ["ADDED a WAITING", "MODIFIED a WAITING"]);
    assert.deepEqual(
      items.map((item) => ("job" in item ? item.job.spec.replicaSpecs["Worker"] : null)),
      [4, 9].map((replicas) => ({ ...job.spec.replicaSpecs["Worker"], replicas })),
    );
    await left.close();
    await entered.close();
  });

  test("a watch from a cursor continues right after the entry that carried it", async () => {
    const a = await submit("a");
    await submit("b");
    const first = open();
    const items = await first.take(3);
    await first.close();
    await move(a, "RUNNING");
    await move(a, "SUCCEEDED");
    await watch.runOnce();
    const second = open(ALL, items[2]?.cursor);
    const [running] = await second.take(1);
    assert.deepEqual(brief([running!]), ["MODIFIED a RUNNING"]);
    await second.close();
    const third = open(ALL, running!.cursor);
    assert.deepEqual(brief(await third.take(1)), ["MODIFIED a SUCCEEDED"]);
    await third.close();
  });

  test("leaving the filter is DELETED, entering it is ADDED, and other jobs are not reported", async () => {
    const a = await submit("a");
    const b = await submit("b");
    const reader = open({ ...ALL, phases: ["RUNNING"] });
    assert.deepEqual(brief(await reader.take(1)), ["BOOKMARK"]);
    await move(a, "RUNNING");
    await move(b, "STARTING");
    await move(a, "RESTARTING");
    await move(a, "RUNNING");
    await forget(a);
    await watch.runOnce();
    assert.deepEqual(brief(await reader.take(4)), [
      "ADDED a RUNNING",
      "DELETED a RESTARTING",
      "ADDED a RUNNING",
      "DELETED a RUNNING",
    ]);
    await reader.close();
  });

  test("entries that get positions after the snapshot are reported once, and the bookmark waits for them", async () => {
    await watch.runOnce();
    const a = await submit("a");
    const head = { ...(await store.watch.head()), position: 0 };
    const frozen: WatchStore = { ...store.watch, sequence: async () => ({ head, given: 0, more: false }) };
    const late = createWatch({ clock: systemClock(), store: frozen }, silent);
    const reader = open(ALL, "", false, late);
    assert.deepEqual(brief(await reader.take(1)), ["ADDED a WAITING"]);
    await move(a, "RUNNING");
    Object.assign(frozen, { sequence: store.watch.sequence });
    await late.runOnce();
    const [modified, bookmark] = await reader.take(2);
    assert.deepEqual(brief([modified!, bookmark!]), ["MODIFIED a RUNNING", "BOOKMARK"]);
    await reader.close();
  });

  test("a snapshot is read a page at a time, when the reader has taken the page before", async () => {
    for (const name of ["a", "b", "c", "d", "e"]) await submit(name);
    let reads = 0;
    const counted = {
      ...store.watch,
      snapshot: (page: Parameters<typeof store.watch.snapshot>[0]) => {
        reads += 1;
        return store.watch.snapshot(page);
      },
    };
    const reader = open(
      ALL,
      "",
      false,
      createWatch({ clock: systemClock(), store: counted }, silent, { snapshotPage: 2 }),
    );
    for (const expected of [1, 1, 2, 2, 3]) {
      await reader.take(1);
      assert.equal(reads, expected);
    }
    assert.deepEqual(brief(await reader.take(1)), ["BOOKMARK"]);
    assert.equal(reads, 3);
    await reader.close();
  });

  test("changes between the pages of a snapshot come once: before the next page, if their job was sent", async () => {
    watch = makeWatch({ snapshotPage: 1 });
    const [a, b, c] = [await submit("a"), await submit("b"), await submit("c", { createTimeMs: NOW + 1 })];
    const order = [a, b].sort((one, other) => (one.uid < other.uid ? -1 : 1));
    const [first, second] = [order[0]!.name, order[1]!.name];
    const reader = open({ ...ALL, phases: ["WAITING"] });
    assert.deepEqual(brief(await reader.take(1)), [`ADDED ${first} WAITING`]);
    await move(order[0]!, "RUNNING");
    await forget(order[1]!);
    await submit("d", { createTimeMs: NOW - 1 });
    await submit("e", { createTimeMs: NOW + 2 });
    await move(await move(c, "RUNNING"), "WAITING");
    const items = await reader.take(5);
    assert.deepEqual(brief(items), [
      `DELETED ${first} RUNNING`,
      "ADDED d WAITING",
      "ADDED c WAITING",
      "ADDED e WAITING",
      "BOOKMARK",
    ]);
    assert.deepEqual(
      items.map(({ cursor }) => cursor !== ""),
      [false, false, false, false, true],
    );
    assert.ok(!brief(items).some((text) => text.includes(` ${second} `)), "the job had gone before its page");
    await forget(c);
    await watch.runOnce();
    assert.deepEqual(brief(await reader.take(1)), ["DELETED c WAITING"]);
    await reader.close();
  });

  test("a snapshot begins again if the log is pruned before its next page", async () => {
    watch = makeWatch({ snapshotPage: 1 });
    const a = await submit("a");
    await submit("b", { createTimeMs: NOW + 1 });
    const reader = open();
    assert.deepEqual(brief(await reader.take(1)), ["ADDED a WAITING"]);
    await move(a, "RUNNING");
    await watch.runOnce();
    await pruneAll(store, NOW + 2);
    assert.deepEqual(brief(await reader.take(4)), ["GAP", "ADDED a RUNNING", "ADDED b WAITING", "BOOKMARK"]);
    await reader.close();
  });

  test("a full view carries the templates, a basic one does not", async () => {
    const a = await submit("a");
    const full = open(ALL, "", true);
    const basic = open();
    const template = (item: WatchItem) => "job" in item && item.job.spec.replicaSpecs["Worker"]?.template;
    assert.deepEqual(template((await full.take(2))[0]!), a.spec.replicaSpecs["Worker"]?.template);
    assert.deepEqual(template((await basic.take(2))[0]!), {});
    await move(a, "RUNNING");
    await watch.runOnce();
    assert.deepEqual(template((await full.take(1))[0]!), a.spec.replicaSpecs["Worker"]?.template);
    assert.deepEqual(template((await basic.take(1))[0]!), {});
    await full.close();
    await basic.close();
  });

  test("a cursor older than the log gets GAP and a fresh snapshot", async () => {
    const a = await submit("a");
    const first = open();
    const [, bookmark] = await first.take(2);
    await first.close();
    await move(a, "RUNNING");
    await watch.runOnce();
    await pruneAll(store, NOW + 1);
    await submit("b");
    const second = open(ALL, bookmark?.cursor, false, makeWatch());
    assert.deepEqual(brief(await second.take(4)), ["GAP", "ADDED a RUNNING", "ADDED b WAITING", "BOOKMARK"]);
    await second.close();
  });

  test("a cursor that the log has not reached gets GAP", async () => {
    const first = open();
    await submit("a");
    await watch.runOnce();
    const cursor = (await first.take(2)).at(-1)?.cursor;
    await first.close();
    await db.query("truncate job_changes restart identity");
    await db.query("update job_log set head = 0, pruned_to = 0");
    const second = open(ALL, cursor, false, makeWatch());
    assert.deepEqual(brief(await second.take(3)), ["GAP", "ADDED a WAITING", "BOOKMARK"]);
    await second.close();
  });

  test("a reader that is too slow gets an error, and continues from its cursor without loss", async () => {
    watch = makeWatch({ bufferMax: 4 });
    const reader = open();
    const [start] = await reader.take(1);
    const pending = reader.next();
    for (let at = 0; at < 6; at += 1) await submit(`job-${at}`);
    await watch.runOnce();
    const items = [(await pending).value as WatchItem];
    while (items.at(-1)?.type !== "TOO_SLOW") items.push(...(await reader.take(1)));
    assert.equal((await reader.next()).done, true);
    const resumed = open(ALL, items.at(-1)?.cursor ?? start?.cursor);
    const told = items.filter((item) => item.type === "ADDED").length;
    const rest = await resumed.take(6 - told);
    const names = [...items, ...rest].flatMap((item) => (item.type === "ADDED" ? [item.job.name] : []));
    assert.deepEqual(names, ["job-0", "job-1", "job-2", "job-3", "job-4", "job-5"]);
    await resumed.close();
  });

  test("a stream without changes sends bookmarks", async () => {
    watch = makeWatch({ bookmarkMs: 1 });
    const reader = open();
    assert.deepEqual(brief(await reader.take(3)), ["BOOKMARK", "BOOKMARK", "BOOKMARK"]);
    await reader.close();
  });

  test("a stream that skips entries sends bookmarks", async () => {
    watch = makeWatch({ bookmarkEntries: 3 });
    const reader = open({ ...ALL, names: ["z"] });
    const [start] = await reader.take(1);
    const next = reader.take(1);
    for (const name of ["a", "b", "c"]) await submit(name);
    await watch.runOnce();
    const [bookmark] = await next;
    assert.equal(bookmark?.type, "BOOKMARK");
    assert.notEqual(bookmark.cursor, start?.cursor);
    await reader.close();
  });

  test("an aborted stream ends", async () => {
    const reader = open();
    await reader.take(1);
    const next = reader.next();
    stop.abort();
    assert.equal((await next).done, true);
  });

  test("the sequencer runs on hints until it is stopped", async () => {
    const running = watch.run(stop.signal);
    const reader = open();
    await reader.take(1);
    await submit("a");
    watch.hint();
    assert.deepEqual(brief(await reader.take(1)), ["ADDED a WAITING"]);
    await reader.close();
    stop.abort();
    await running;
  });

  const cursors = {
    "the empty cursor": ["", true],
    "text that is no base64url": ["a b", false],
    "base64url of something else": [Buffer.from("p2.5").toString("base64url"), false],
    "a position that is no number": [Buffer.from("p1.x").toString("base64url"), false],
    "a position beyond 2^53": [Buffer.from("p1.9999999999999999").toString("base64url"), false],
    "another spelling of a position": [Buffer.from("p1.05").toString("base64url"), false],
    "a very long text": ["A".repeat(10_000), false],
    "a position": [Buffer.from("p1.5").toString("base64url"), true],
  } as const;
  for (const [name, [cursor, good]] of Object.entries(cursors)) {
    test(`a cursor is checked: ${name}`, () => assert.equal(watch.checkCursor(cursor), good));
  }
});
