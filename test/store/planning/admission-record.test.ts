/** Everything that the record of an admission says is there when the job is read again. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { Db } from "../../../src/adapters/store/db/db.ts";
import type { Job } from "../../../src/core/job/job.ts";
import type { Admission } from "../../../src/core/job/status.ts";
import { gangOf } from "../../../src/core/plan/model/plan-gang.ts";
import { onEachDatabase } from "../../support/databases.ts";
import { OWN_KINDS } from "../../support/kinds.ts";
import { snapshotOf } from "../../support/snapshot.ts";
import { freshStore, recordStep, type TestStore } from "../db.ts";
import { FLAVOR, NOW, newJob, sentOf } from "../jobs.ts";

/** A new member of the record must be named here: the type checker asks for each. */
const WHOLE: Required<Admission> = {
  number: 1,
  cluster: "east",
  simulated: true,
  admitTimeMs: NOW,
  members: { Worker: 4 },
  partial: "RESTART",
  told: { Worker: 3 },
  flavors: { "nvidia.com/gpu": FLAVOR },
  flavorLabels: { "nvidia.com/gpu": { "gangway.dev/gpu": "h100" } },
  state: "live",
  ended: { "Worker/0": "SUCCEEDED", "Worker/3": "FAILED" },
  lastEndMs: NOW + 2,
  returned: { Worker: [0, 3] },
  tokensReleasedMs: null,
  goneMs: null,
  belowMinSinceMs: NOW + 1,
};
const { simulated: _1, partial: _2, told: _3, ended: _4, lastEndMs: _5, returned: _6, ...bare } = WHOLE;
const BARE: Admission = bare;

onEachDatabase((openDb) => {
  let db: Db;
  let store: TestStore;
  before(async () => {
    db = await openDb();
    store = (await freshStore(db)).store;
  });
  after(() => db.close());

  const records: Readonly<Record<string, readonly Admission[]>> = {
    "everything that an admission may say": [WHOLE],
    "no more than it must say": [BARE],
    "everything, and then no more than it must say": [WHOLE, { ...BARE, simulated: true }],
    "one member after the other": [BARE, { ...BARE, partial: "KEEP" }, { ...BARE, ended: { "Worker/1": "SUCCEEDED" } }],
  };
  for (const [what, admissions] of Object.entries(records)) {
    test(`${what} is read as it was recorded`, async () => {
      const job = newJob();
      await store.intake.createJob({ job, sent: sentOf(job), requestId: "" });
      for (const admission of admissions) {
        const now = await load(job.uid);
        const status = { ...now.status, phase: "RUNNING" as const };
        await recordStep(store, now, { status, admissions: [admission], events: [], deleteTimeMs: null });
        const read = await load(job.uid);
        assert.deepEqual(read.admissions, [admission]);
        const gang = (await snapshotOf(db)).admitted.find(({ uid }) => uid === job.uid);
        assert.ok(gang !== undefined);
        assert.deepEqual(gang, gangOf(read, OWN_KINDS, gang), "the planner reads the same");
      }
    });
  }

  async function load(uid: string): Promise<Job> {
    const loaded = await store.worker.loadJob(uid);
    assert.ok(loaded);
    return loaded.job;
  }
});
