import assert from "node:assert/strict";
import { after, before, beforeEach, test } from "node:test";
import fc from "fast-check";
import type { Db } from "../../../src/adapters/store/db/db.ts";
import type { Job } from "../../../src/core/job/job.ts";
import type { PlanGang } from "../../../src/core/plan/model/plan-gang.ts";
import { FleetFollower } from "../../../src/planner/fleet-follower.ts";
import type { FleetStore } from "../../../src/planner/ports.ts";
import { onEachDatabase } from "../../support/databases.ts";
import { snapshotOf } from "../../support/snapshot.ts";
import { NOW, newJob, plannedFor, sentOf } from "../jobs.ts";
import { freshPlanner, type TestPlanner } from "../planner-fixture.ts";
import { pruneAll } from "../prune.ts";

/** The gangs that a planner's state knows, in the order of their uids. */
function gangsOf({ planner }: FleetFollower): readonly PlanGang[] {
  const gangs = [...planner.gangs()];
  return gangs.sort((a, b) => (a.uid < b.uid ? -1 : 1));
}

/** A store whose reads come with other work between them. */
function disturbed(store: FleetStore, between: () => Promise<void>): FleetStore {
  return {
    ...store,
    readFleet: async (...given) => {
      const read = await store.readFleet(...given);
      await between();
      return read;
    },
  };
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
    const { waiting, admitted } = await snapshotOf(db);
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
          let disturbances = [meanwhile, []];
          const store = disturbed(planner.store.planner, async () => {
            for (const step of disturbances.shift() ?? []) await run(step);
          });
          const follower = new FleetFollower(store);
          for (const step of earlier) await run(step);
          await follower.catchUp();
          disturbances = [];
          for (const steps of [[], ...later]) {
            for (const step of steps) await run(step);
            await follower.catchUp();
            assert.deepEqual(gangsOf(follower), await gangsNow());
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
    let pages = 0;
    const store = disturbed(planner.store.planner, async () => {
      pages += 1;
    });
    const loaded = new FleetFollower(store);
    await loaded.catchUp();
    assert.deepEqual([pages, gangsOf(loaded).length], [4, 1_000], "three pages of gangs, and what came since");
    await submit(many.slice(1_000));
    await planner.store.watch.sequence();
    await loaded.catchUp();
    assert.deepEqual(gangsOf(loaded), await gangsNow());
  });

  test("a planner that has missed pruned entries of the log loads everything anew", async () => {
    const follower = new FleetFollower(planner.store.planner);
    assert.equal(await follower.catchUp(), true);
    await planner.submit();
    await planner.store.watch.sequence();
    assert.equal(await follower.catchUp(), false);
    await planner.submit();
    await planner.store.watch.sequence();
    await pruneAll(planner.store, NOW + 1);
    assert.equal(await follower.catchUp(), true);
    assert.deepEqual(gangsOf(follower), await gangsNow());
    assert.equal(await follower.catchUp(), false);
  });

  test("an update has the gang, none if the job ends, and the highest version if its record is gone", async () => {
    const [job, gone] = [await planner.submit(), await planner.submit()];
    await forget(gone);
    await planner.store.intake.requestCancel(job, "", NOW);
    const waits = await planner.submit();
    const updates = await planner.store.planner.gangsOf([job.uid, gone.uid, waits.uid]);
    const [gang] = await planner.gangs([waits.uid]);
    assert.deepEqual(updates, [
      { uid: job.uid, version: 4, gang: null },
      { uid: gone.uid, version: Number.MAX_SAFE_INTEGER, gang: null },
      { uid: waits.uid, version: 2, gang },
    ]);
  });
});
