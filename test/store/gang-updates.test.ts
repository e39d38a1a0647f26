import assert from "node:assert/strict";
import { after, before, beforeEach, test } from "node:test";
import fc from "fast-check";
import type { Db } from "../../src/adapters/store/db/db.ts";
import type { Job } from "../../src/core/job/job.ts";
import type { Ask } from "../../src/core/plan/ask.ts";
import type { GangUpdate, PlanGang } from "../../src/core/plan/plan-gang.ts";
import { onEachDatabase } from "../support/databases.ts";
import { NOW, newJob, plannedFor, sentOf } from "./jobs.ts";
import { freshPlanner, type TestPlanner } from "./planner-fixture.ts";

type Store = TestPlanner["store"]["planner"];
type GangPage = Awaited<ReturnType<Store["gangPage"]>>;

/** Gangs as a planner keeps them: loaded once, and then moved by updates. */
class Mirror {
  readonly #store: Store;
  readonly #asks = new Map<string, Ask>();
  #position = 0;
  readonly #known = new Map<string, GangUpdate>();

  constructor(store: Store) {
    this.#store = store;
  }

  get gangs(): readonly PlanGang[] {
    const gangs = [...this.#known.values()].flatMap(({ gang }) => gang ?? []);
    return gangs.sort((a, b) => (a.uid < b.uid ? -1 : 1));
  }

  /** Loads all gangs, with other work between the pages. */
  async load(between: () => Promise<void>): Promise<void> {
    this.#known.clear();
    this.#position = await this.#store.logHead();
    let next: string | null = null;
    do {
      const page: GangPage = await this.#store.gangPage(next, this.#asks);
      for (const gang of page.gangs) this.#apply({ uid: gang.uid, version: gang.version, gang });
      next = page.next;
      await between();
    } while (next !== null);
  }

  /** False: the log has a gap. */
  async follow(): Promise<boolean> {
    for (;;) {
      const since = await this.#store.gangsSince(this.#position, this.#asks);
      if (since.gap) return false;
      for (const update of since.updates) this.#apply(update);
      this.#position = since.position;
      if (!since.more) return true;
    }
  }

  #apply(update: GangUpdate): void {
    if ((this.#known.get(update.uid)?.version ?? 0) < update.version) this.#known.set(update.uid, update);
  }
}

onEachDatabase((openDb) => {
  let db: Db;
  let planner: TestPlanner;
  before(async () => {
    db = await openDb();
  });
  after(() => db.close());
  beforeEach(async () => {
    planner = await freshPlanner(db);
  });

  const gangsNow = async () => {
    const { waiting, admitted } = await planner.store.planner.snapshot();
    return [...waiting, ...admitted].sort((a, b) => (a.uid < b.uid ? -1 : 1));
  };

  async function admit(job: Job): Promise<void> {
    const [gang] = await planner.gangs([job.uid]);
    const [east] = await db.query<{ n: number }>("select admission_counter as n from clusters where name = 'east'");
    await planner.admit(
      plannedFor(job, {
        generation: gang!.generation,
        admissionCounter: east!.n,
        members: { Worker: 1 },
        allocations: [],
      }),
    );
  }

  async function forget(job: Job): Promise<void> {
    const leases = await planner.store.worker.takeBuckets("w1");
    const loaded = await planner.store.worker.loadJob(job.uid);
    const lease = leases.find(({ bucket }) => bucket === loaded?.bucket);
    assert.ok(loaded && lease);
    const decision = { record: null, forget: true, actions: [], recheckAtMs: null };
    await planner.store.worker.record(loaded.job, decision, lease, NOW);
  }

  const jobs = () => db.query<{ uid: string }>("select uid from jobs order by uid");
  const changes: Record<string, (job: Job) => Promise<unknown>> = {
    submit: () => planner.submit(),
    cancel: (job) => planner.store.intake.requestCancel(job, "", NOW),
    remove: (job) => planner.store.intake.requestDelete(job, NOW),
    admit,
    forget,
    sequence: () => planner.store.watch.sequence(),
  };
  const someStep = fc.tuple(fc.constantFrom(...Object.keys(changes), "submit", "submit"), fc.nat());
  /** Runs a step on the job that a number picks. */
  async function run([name, pick]: readonly [string, number]): Promise<void> {
    const all = await jobs();
    const uid = all[pick % Math.max(1, all.length)]?.uid;
    if (uid === undefined) await planner.submit();
    else await changes[name]?.(await planner.load(uid));
  }

  test("gangs that were loaded in pages and follow the log are those of a snapshot, whatever happens", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(someStep, { maxLength: 8 }),
        fc.array(someStep, { maxLength: 4 }),
        fc.array(fc.array(someStep, { maxLength: 5 }), { maxLength: 3 }),
        async (earlier, meanwhile, later) => {
          const mirror = new Mirror(planner.store.planner);
          for (const step of earlier) await run(step);
          await mirror.load(async () => {
            for (const step of meanwhile) await run(step);
          });
          for (const steps of [[], ...later]) {
            for (const step of steps) await run(step);
            assert.equal(await mirror.follow(), true);
            assert.deepEqual(mirror.gangs, await gangsNow());
          }
        },
      ),
      { numRuns: 15 },
    );
  });

  test("more gangs than a page holds are loaded page by page, and changes too", async () => {
    const many = Array.from({ length: 1_100 }, () => newJob());
    const submit = (some: readonly Job[]) =>
      planner.store.intake.createJobs(some.map((job) => ({ job, sent: sentOf(job), requestId: "" })));
    await submit(many.slice(0, 1_000));
    await planner.store.watch.sequence();
    const mirror = new Mirror(planner.store.planner);
    let pages = 0;
    await mirror.load(async () => {
      pages += 1;
    });
    assert.deepEqual([pages, mirror.gangs.length], [3, 1_000]);
    const follower = new Mirror(planner.store.planner);
    assert.equal(await follower.follow(), true);
    await submit(many.slice(1_000));
    assert.deepEqual([await mirror.follow(), await follower.follow()], [true, true]);
    assert.deepEqual(mirror.gangs, await gangsNow());
    assert.deepEqual(follower.gangs, mirror.gangs);
  });

  test("a position whose entries were pruned is a gap", async () => {
    await planner.submit();
    await planner.store.watch.sequence();
    const { planner: store, watch } = planner.store;
    assert.deepEqual((await store.gangsSince(0, new Map())).gap, false);
    assert.deepEqual((await store.gangsSince(9, new Map())).gap, true, "no entry has this position yet");
    await watch.prune(NOW + 1);
    assert.deepEqual((await store.gangsSince(0, new Map())).gap, true);
    assert.deepEqual(await store.gangsSince(1, new Map()), { gap: false, position: 1, updates: [], more: false });
  });

  test("an update has the gang, none if the job ends, and the highest version if its record is gone", async () => {
    const [job, gone] = [await planner.submit(), await planner.submit()];
    await forget(gone);
    await planner.store.intake.requestCancel(job, "", NOW);
    const waits = await planner.submit();
    const updates = await planner.store.planner.gangUpdates([job.uid, gone.uid, waits.uid], new Map());
    const [gang] = await planner.gangs([waits.uid]);
    assert.deepEqual(updates, [
      { uid: job.uid, version: 2, gang: null },
      { uid: gone.uid, version: Number.MAX_SAFE_INTEGER, gang: null },
      { uid: waits.uid, version: 1, gang },
    ]);
  });
});
