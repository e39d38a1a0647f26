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
  fence: "68719476737",
  members: { Worker: 4 },
  partial: "RESTART",
  told: { Worker: 3 },
  flavors: { "nvidia.com/gpu": FLAVOR },
  flavorLabels: { "nvidia.com/gpu": { "gangway.dev/gpu": "h100" } },
  state: "live",
  ended: { "Worker/0": "SUCCEEDED", "Worker/3": "FAILED" },
  begunMs: { Worker: NOW + 1 },
  lastEndMs: NOW + 2,
  returned: { Worker: [0, 3] },
  abandonedMs: NOW + 3,
  repair: { version: 1, times: 2, members: ["Worker/1"] },
  tokensReleasedMs: null,
  goneMs: null,
  belowMinSinceMs: NOW + 1,
};
const { number, cluster, admitTimeMs, members, flavors, flavorLabels, state } = WHOLE;
const { tokensReleasedMs, goneMs, belowMinSinceMs } = WHOLE;
const times = { admitTimeMs, tokensReleasedMs, goneMs, belowMinSinceMs };
const BARE: Admission = { number, cluster, members, flavors, flavorLabels, state, ...times };
const BY_TYPE = {
  flavors: { "Master:nvidia.com/gpu": FLAVOR, "Worker:nvidia.com/gpu": "gpu/a100" },
  flavorLabels: { "Master:nvidia.com/gpu": { gpu: "h100" }, "Worker:nvidia.com/gpu": { gpu: "a100" } },
};

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
    "flavors of each replica type": [{ ...BARE, ...BY_TYPE }],
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
