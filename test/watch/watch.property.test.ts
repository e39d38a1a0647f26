import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import fc from "fast-check";
import type { Db } from "../../src/adapters/store/db/db.ts";
import type { Job } from "../../src/core/job/job.ts";
import type { WatchItem } from "../../src/core/job/request/event-log.ts";
import { type JobFilter, matchesFilter } from "../../src/core/job/request/filter.ts";
import type { JobPhase } from "../../src/core/job/status.ts";
import { systemClock } from "../../src/runtime/clock.ts";
import { parseCursor } from "../../src/watch/cursor.ts";
import { createWatch } from "../../src/watch/watch.ts";
import { freshStore, type TestStore } from "../store/db.ts";
import { NOW, newJob, sentOf } from "../store/jobs.ts";
import { entriesAfter } from "../store/log.ts";
import { pruneAll, prunePass } from "../store/prune.ts";
import { waitUntil } from "../support/bounded.ts";
import { onEachDatabase } from "../support/databases.ts";

const ALL: JobFilter = { namespace: "", names: [], kinds: [], phases: [], queue: "", cluster: null, labels: {} };
const NAMES = ["a", "b", "c", "d"];

onEachDatabase((openDb) => {
  let db: Db;
  before(async () => {
    db = await openDb();
  });
  after(() => db.close());

  type Step =
    | { readonly kind: "move"; readonly name: string; readonly phase: JobPhase }
    | { readonly kind: "forget" | "sequence" | "freeze" | "thaw" | "open"; readonly name: string };

  const step: fc.Arbitrary<Step> = fc.oneof(
    {
      weight: 6,
      arbitrary: fc.record({
        kind: fc.constant("move" as const),
        name: fc.constantFrom(...NAMES),
        phase: fc.constantFrom<JobPhase>("WAITING", "RUNNING", "RESTARTING"),
      }),
    },
    {
      weight: 2,
      arbitrary: fc.record({
        kind: fc.constantFrom("forget" as const, "sequence", "freeze", "thaw", "open"),
        name: fc.constantFrom(...NAMES),
      }),
    },
  );

  const filter: fc.Arbitrary<JobFilter> = fc
    .record({ names: fc.subarray(NAMES), phases: fc.subarray(["WAITING", "RUNNING", "RESTARTING"]) })
    .map((parts) => ({ ...ALL, ...parts }));

  /** Most snapshots have several pages, and changes between them. */
  const snapshotPage = fc.constantFrom(1, 1, 2, 200);

  /** Creates the job of a name; if it exists, changes its phase or forgets it, as intake and a worker do. */
  async function change(store: TestStore, leases: readonly { bucket: number; epoch: number }[], step: Step) {
    const shown = await store.reads.getJob({ namespace: "team", name: step.name });
    if (shown === null) {
      const job = newJob({ name: step.name });
      return store.intake.createJob({ job, sent: sentOf(job), requestId: "" });
    }
    const loaded = await store.worker.loadJob(shown.job.uid);
    const lease = leases.find(({ bucket }) => bucket === loaded?.bucket);
    assert.ok(loaded && lease);
    const { job } = loaded;
    const phase = step.kind === "move" ? step.phase : job.status.phase;
    const record = { status: { ...job.status, phase }, admissions: [], events: [], deleteTimeMs: null };
    const decision = { record, forget: step.kind === "forget", actions: [], recheckAtMs: null };
    return store.worker.record(job, decision, lease, NOW);
  }

  /** The versions by uid that a reader knows after some items. Throws if an item contradicts an earlier one. */
  function known(items: readonly WatchItem[]): ReadonlyMap<string, Job> {
    const jobs = new Map<string, Job>();
    for (const item of items) {
      if (item.type === "GAP") jobs.clear();
      if (!("job" in item)) continue;
      const before = jobs.get(item.job.uid);
      assert.equal(item.type === "ADDED", before === undefined, `${item.type} ${item.job.name}`);
      if (before !== undefined) assert.ok(before.version < item.job.version, "a version came twice or went back");
      if (item.type === "DELETED") jobs.delete(item.job.uid);
      else jobs.set(item.job.uid, item.job);
    }
    return jobs;
  }

  test("from every cursor a reader ends up with what a list shows", async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 25 }), filter, snapshotPage, async (steps, filter, snapshotPage) => {
        const { store } = await freshStore(db);
        const leases = await store.worker.takeBuckets("w");
        let frozen = false;
        const start = { ...(await store.watch.head()), position: 0 };
        const sequence = async () =>
          frozen ? { head: start, given: 0, oldestMs: null, more: false } : store.watch.sequence();
        const lagging = { ...store.watch, sequence };
        const options = { bookmarkMs: 1, snapshotPage };
        const watch = createWatch(
          { clock: systemClock(), store: lagging },
          { loopFailed: ({ error }) => assert.ifError(error) },
          options,
        );
        const stop = new AbortController();
        const readers: { items: WatchItem[]; done: Promise<void> }[] = [];
        const read = (cursor: string) => {
          const items: WatchItem[] = [];
          const done = (async () => {
            for await (const item of watch.watch({ filter, cursor, full: false }, stop.signal)) items.push(item);
          })();
          readers.push({ items, done });
          return items;
        };
        const caughtUp = async (items: readonly WatchItem[], head: number) => {
          const at = () => parseCursor(items.findLast(({ cursor }) => cursor !== "")?.cursor ?? "")?.position ?? -1;
          await waitUntil(`the reader is at ${head}`, () => at() >= head, { pollMs: 0 });
        };
        try {
          await watch.runOnce();
          for (const step of steps) {
            if (step.kind === "sequence") await watch.runOnce();
            else if (step.kind === "open") read("");
            else if (step.kind === "freeze") frozen = true;
            else if (step.kind === "thaw") frozen = false;
            else await change(store, leases, step);
          }
          frozen = false;
          read("");
          await watch.runOnce();
          const head = (await store.watch.sequence()).head.position;
          const page = await store.reads.listJobs({ filter: ALL, order: "name", pageSize: 10, after: null });
          assert.ok(page !== "badCursor");
          const listed = page.jobs.map(({ job }) => job).filter((job) => matchesFilter(filter, job));
          const expected = new Map(listed.map((job) => [job.uid, job.version]));
          const versions = (items: readonly WatchItem[]) =>
            new Map([...known(items)].map(([uid, job]) => [uid, job.version]));
          for (const { items } of [...readers]) {
            await caughtUp(items, head);
            const seen = [...items];
            assert.deepEqual(versions(seen), expected);
            for (const at of new Set([0, Math.floor(seen.length / 2), seen.length - 1])) {
              const from = seen[at]?.cursor;
              if (from === undefined || from === "") continue;
              const more = read(from);
              await caughtUp(more, head);
              const places = new Map(known(seen.slice(0, at + 1)));
              const rest = more.filter((item) => "job" in item);
              for (const item of rest)
                if (item.type === "DELETED") places.delete(item.job.uid);
                else places.set(item.job.uid, item.job);
              assert.deepEqual(new Map([...places].map(([uid, job]) => [uid, job.version])), expected);
            }
          }
        } finally {
          stop.abort();
        }
        await Promise.all(readers.map(({ done }) => done));
      }),
      { numRuns: 40 },
    );
  });

  test("positions are dense and follow versions, for any interleaving of commits and sequencing", async () => {
    const { store } = await freshStore(db);
    const jobs = Array.from({ length: 12 }, () => newJob());
    const work = jobs.flatMap((job) => [
      store.intake
        .createJob({ job, sent: sentOf(job), requestId: "" })
        .then(() => store.intake.requestCancel(job, "", NOW)),
      store.watch.sequence(),
      store.watch.sequence(),
    ]);
    await Promise.all(work);
    while ((await store.watch.sequence()).given > 0);
    const { entries } = await entriesAfter(store, 0, 1000);
    assert.deepEqual(
      entries.map(({ position }) => position),
      Array.from({ length: 24 }, (_, at) => at + 1),
    );
    for (const job of jobs) {
      const versions = entries.filter((entry) => entry.job.uid === job.uid).map((entry) => entry.job.version);
      assert.deepEqual(versions, [1, 2]);
    }
  });

  test("entries are pruned from the front only, and a position before them is a gap", async () => {
    const { store } = await freshStore(db);
    for (const [name, at] of [
      ["a", 1],
      ["b", 3],
      ["c", 2],
    ] as const) {
      const job = newJob({ name, createTimeMs: NOW + at });
      await store.intake.createJob({ job, sent: sentOf(job), requestId: "" });
    }
    await store.watch.sequence();
    await pruneAll(store, NOW + 3);
    assert.equal((await entriesAfter(store, 0, 10)).gap, true);
    assert.equal(await prunePass(store, { kind: "changes", beforeMs: NOW + 3, limit: 1 }), 0);
    const kept = await entriesAfter(store, 1, 10);
    assert.deepEqual(
      kept.entries.map(({ job }) => job.name),
      ["b", "c"],
    );
    const page = { beforeMs: NOW + 4, nowMs: NOW, after: 0, limit: 1 };
    assert.deepEqual(await store.watch.prune("changes", page), { deleted: 1, next: 2 });
    assert.deepEqual(
      (await entriesAfter(store, 2, 10)).entries.map(({ job }) => job.name),
      ["c"],
    );
    await pruneAll(store, NOW + 4, 1);
    assert.deepEqual(await db.query("select from job_events"), []);
    assert.deepEqual(await entriesAfter(store, 3, 10), { entries: [], gap: false });
    assert.equal((await entriesAfter(store, 2, 10)).gap, true);
    assert.equal((await entriesAfter(store, 4, 10)).gap, true);
  });
});
