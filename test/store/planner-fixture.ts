import assert from "node:assert/strict";
import type { Db } from "../../src/adapters/store/db/db.ts";
import { readGangs } from "../../src/adapters/store/planning/read-gangs.ts";
import { refreshGangs } from "../../src/adapters/store/planning/refresh-gangs.ts";
import type { Job } from "../../src/core/job/job.ts";
import type { PlannedAdmission } from "../../src/core/plan/model/plan-types.ts";
import { OWN_KINDS } from "../support/kinds.ts";
import { freshStore, raiseQuotaEpoch, recordOne, takePlannerLease } from "./db.ts";
import { NO_LIMIT, NOW, newJob, sentOf } from "./jobs.ts";

/** A store whose planner's lease is taken and whose quota epoch is raised, and what is done there with jobs. */
export async function freshPlanner(db: Db) {
  const { store } = await freshStore(db);
  const plannerEpoch = await takePlannerLease(store, "p1");
  const { epoch: quotaEpoch } = await raiseQuotaEpoch(store);
  let fences = BigInt(quotaEpoch) << 32n;
  return {
    store,
    plannerEpoch,
    quotaEpoch,
    async submit(changes: Parameters<typeof newJob>[0] = {}): Promise<Job> {
      const job = newJob(changes);
      assert.equal((await store.intake.createJob({ job, sent: sentOf(job), requestId: "" })).kind, "created");
      return job;
    },
    /**
     * Records an admission under these epochs, each time with a fence and tokens of its own; `amount` instead of what
     * is planned.
     */
    admit(planned: PlannedAdmission, of: { readonly amount?: number } = {}) {
      fences += 1n;
      const token = `job/${planned.jobUid}/admission/${planned.admission}/${fences}`;
      const allocations = planned.allocations.map((allocation) => ({ ...allocation, ...NO_LIMIT, token, ...of }));
      const record = { planned, allocations, fence: fences, quotaEpoch, plannerEpoch, nowMs: NOW + 1 };
      return recordOne(store, record);
    },
    gangs: (uids: readonly string[]) => {
      const select = { condition: "j.uid = any($1::uuid[])", params: [uids] };
      return readGangs(db, select, { kinds: OWN_KINDS, asks: new Map() });
    },
    /** Computes the gangs of jobs that a program of the version before has written; returns how many there were. */
    refresh: () => refreshGangs(db, OWN_KINDS),
    async load(uid: string): Promise<Job> {
      const loaded = await store.worker.loadJob(uid);
      assert.ok(loaded);
      return loaded.job;
    },
  };
}

export type TestPlanner = Awaited<ReturnType<typeof freshPlanner>>;
