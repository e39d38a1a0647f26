import assert from "node:assert/strict";
import type { Db } from "../../src/adapters/store/db/db.ts";
import { createStore } from "../../src/adapters/store/store.ts";
import { bucketOf } from "../../src/core/job/bucket.ts";
import type { Job } from "../../src/core/job/job.ts";
import type {
  AdmissionBatch,
  AdmissionRecord,
  AdmitOutcome,
  PlannedAdmission,
} from "../../src/core/plan/model/plan-types.ts";
import type { Allocation } from "../../src/core/quota/counters.ts";
import type { Decision } from "../../src/core/reconcile/decision.ts";
import { emptyDatabase } from "../support/database.ts";
import { OWN_KINDS } from "../support/kinds.ts";
import { ledgerAt } from "../support/ledger-at.ts";
import { gangOfPlanned } from "../support/planned-gang.ts";
import { FLAVOR, NOW } from "./jobs.ts";

/** An empty database with queue `research` (8 GPUs), clusters, and namespaces that are created on first use. */
export async function freshStore(db: Db, bounds: { readonly namespacesMax?: number } = {}) {
  await emptyDatabase(db);
  let appended = 0;
  const store = createStore(db, {
    clock: { nowMs: () => NOW },
    kinds: OWN_KINDS,
    openNamespaces: true,
    defaultQueue: "research",
    ...bounds,
    onAppended: () => {
      appended += 1;
    },
  });
  const flavor = { name: FLAVOR, resource: "nvidia.com/gpu", nodeLabels: { "gangway.dev/gpu": "h100" } };
  for (const name of ["east", "west"]) {
    await store.clusters.simulate({ name, labels: { region: name }, flavors: [flavor] });
  }
  await store.admin.ensureQueue({
    name: "research",
    strategy: "BEST_EFFORT_FIFO",
    quotas: [{ flavor: FLAVOR, resource: "nvidia.com/gpu", nominal: 8 }],
  });
  return { store, appended: () => appended };
}

export type TestStore = Awaited<ReturnType<typeof freshStore>>["store"];

/** Takes the planner's lease for a holder that is no member, so that any other can take it over. */
export async function takePlannerLease(store: TestStore, holder: string): Promise<number> {
  const epoch = await store.members.takeLease("planner", holder);
  if (epoch === null) throw new Error("somebody who lives holds the planner's lease");
  return epoch;
}

type OneRecord = Omit<AdmissionRecord, "chain" | "gang"> &
  Pick<AdmissionBatch, "quotaEpoch" | "plannerEpoch" | "nowMs">;

/** Records an admission that needs these allocations as a batch of its own. */
export async function recordOne(
  store: TestStore,
  { planned: asked, allocations, fence, ...of }: OneRecord,
): Promise<AdmitOutcome> {
  const planned = { ...asked, allocations: neededOf(allocations) };
  const counters = new Map(planned.cluster === null ? [] : [[planned.cluster, planned.admissionCounter]]);
  const records = [{ planned, gang: gangOfPlanned(planned), allocations, fence, chain: null }];
  const [outcome = "stale"] = await store.planner.recordAdmissions({ ...of, records, counters });
  return outcome;
}

/** Records a worker's decision about a job as it was read, with the lease of its bucket. */
export async function recordStep(store: TestStore, job: Job, record: NonNullable<Decision["record"]>): Promise<void> {
  const leases = await store.worker.takeBuckets("w1");
  const lease = leases.find(({ bucket }) => bucket === bucketOf(job.uid));
  assert.ok(lease);
  const decision: Decision = { record, forget: false, actions: [], recheckAtMs: null };
  assert.equal(await store.worker.record(job, decision, lease, NOW), "recorded");
}

/** A plan's allocations for these, which the counters have granted. */
export function neededOf(allocations: readonly Allocation[]): PlannedAdmission["allocations"] {
  return allocations.map(({ pool, amount, project, namespace, queue }) => {
    return { pool, amount, project, namespace, queue: queue ?? "" };
  });
}

/** Raises the epoch of the queues' domain from any value. */
export async function raiseQuotaEpoch(store: TestStore) {
  const raised = await ledgerAt(store).raiseEpoch(null);
  if (raised.kind !== "raised") throw new Error("an epoch that may be any was not raised");
  return raised;
}
