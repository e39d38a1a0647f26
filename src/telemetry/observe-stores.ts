/** Serves on-call engineers: measures and traces the calls of the stages to the store. */

import { isDraining, type Job } from "../core/job/job.ts";
import type { LogPlace } from "../core/job/request/event-log.ts";
import type { Registry } from "../core/kinds/registry.ts";
import type { AdmissionRecord } from "../core/plan/model/plan-types.ts";
import type { PreemptionRecord, PreemptOutcome } from "../core/plan/model/preemption.ts";
import type { Decision } from "../core/reconcile/decision.ts";
import type { Clock } from "../runtime/clock.ts";
import { countRecord } from "./count-changes.ts";
import type { Telemetry } from "./events.ts";
import type { Tracing } from "./tracing.ts";

/** Null tracing: no spans. */
export type ObservePorts = {
  readonly clock: Pick<Clock, "nowMs" | "monotonicMs">;
  readonly telemetry: Telemetry;
  readonly kinds: Registry;
  readonly tracing: Tracing | null;
};

// Methods, so that parameters of the real stores may be wider. Every other method passes through unchanged.
type PlannerStoreLike = {
  recordAdmissions(batch: Batch): Promise<readonly string[]>;
  recordPreemptions(
    records: readonly PreemptionRecord[],
    plannerEpoch: number,
    nowMs: number,
  ): Promise<readonly PreemptOutcome[]>;
};

type GangRecord = Pick<AdmissionRecord, "planned" | "gang">;
type Batch = { readonly records: readonly GangRecord[] };

/** Reports admissions with their waiting times, preemptions, and transactions on the ledger. */
export function observePlannerStore<Store>(store: Store & PlannerStoreLike, ports: ObservePorts): Store {
  const { clock, telemetry, tracing } = ports;
  const recordAdmissions = async (batch: Batch) => {
    const { records } = batch;
    const recording = commit(ports, "grant", () => store.recordAdmissions(batch), outcomeOfBatch);
    if (tracing !== null) await Promise.all(records.map((one, at) => admissionSpan(tracing, one, recording, at)));
    const outcomes = await recording;
    for (const [at, { planned, gang }] of records.entries()) {
      if (outcomes[at] !== "recorded" || planned.kind !== "admit") continue;
      telemetry.gangAdmitted({ queue: gang.queue, waitedMs: clock.nowMs() - gang.waitsSinceMs });
    }
    return outcomes;
  };
  const recordPreemptions: PlannerStoreLike["recordPreemptions"] = async (records, plannerEpoch, nowMs) => {
    const outcomes = await store.recordPreemptions(records, plannerEpoch, nowMs);
    for (const [at, { queue }] of records.entries()) {
      const outcome = outcomes[at];
      if (outcome?.kind !== "recorded") continue;
      for (const { reason } of outcome.evicted) telemetry.gangPreempted({ reason, queue });
    }
    return outcomes;
  };
  const observed: PlannerStoreLike = { recordAdmissions, recordPreemptions };
  return { ...store, ...observed };
}

type LedgerLike = {
  commit(epoch: number, grants: readonly unknown[]): Promise<readonly unknown[]>;
  release(requests: readonly unknown[]): Promise<readonly unknown[]>;
  confirmReleases(allocations: readonly unknown[]): Promise<void>;
};

/** Reports the transactions of callers' tokens. The planner's store reports those of the planner. */
export function observeLedger<Ledger>(ledger: Ledger & LedgerLike, ports: ObservePorts): Ledger {
  const recorded = () => "recorded";
  const observed: LedgerLike = {
    commit: (...given) => commit(ports, "grant", () => ledger.commit(...given), recorded),
    release: (requests) => commit(ports, "release", () => ledger.release(requests), recorded),
    confirmReleases: (allocations) => commit(ports, "confirm", () => ledger.confirmReleases(allocations), recorded),
  };
  return { ...ledger, ...observed };
}

type WorkerStoreLike = {
  record(job: Job, decision: Decision, lease: unknown, nowMs: number): Promise<string>;
};

/** Reports what records change, and the records that release tokens. */
export function observeWorkerStore<Store>(store: Store & WorkerStoreLike, ports: ObservePorts): Store {
  const observed: WorkerStoreLike = {
    record: (job, decision, lease, nowMs) => {
      const run = async () => {
        const outcome = await store.record(job, decision, lease, nowMs);
        if (outcome === "recorded") countRecord(ports, job, decision);
        return outcome;
      };
      const counted = releases(job, decision) ? () => commit(ports, "release", run) : run;
      return ports.tracing === null ? counted() : ports.tracing.span({ name: "worker record" }, counted);
    },
  };
  return { ...store, ...observed };
}

type WatchStoreLike = {
  readonly sequence: (
    known: LogPlace | null,
  ) => Promise<{ readonly head: LogPlace; readonly given: number; readonly oldestMs?: number | null }>;
};

/** Reports how long changes waited for their positions in the event log. */
export function observeWatchStore<Store>(store: Store & WatchStoreLike, { clock, telemetry }: ObservePorts): Store {
  const observed: WatchStoreLike = {
    sequence: async (known) => {
      const sequenced = await store.sequence(known);
      const { oldestMs } = sequenced;
      if (typeof oldestMs === "number") telemetry.changesSequenced({ lagMs: clock.nowMs() - oldestMs });
      return sequenced;
    },
  };
  return { ...store, ...observed };
}

async function commit<T>(
  { clock, telemetry }: ObservePorts,
  kind: "grant" | "release" | "confirm",
  run: () => Promise<T>,
  outcomeOf: (result: T) => string = String,
): Promise<T> {
  const startedMs = clock.monotonicMs();
  let outcome = "failed";
  try {
    const result = await run();
    outcome = outcomeOf(result);
    return result;
  } finally {
    telemetry.ledgerCommitted({ kind, outcome, tookMs: clock.monotonicMs() - startedMs });
  }
}

/** A batch counts as recorded if one of its gangs was. */
function outcomeOfBatch(outcomes: readonly string[]): string {
  return outcomes.includes("recorded") ? "recorded" : (outcomes[0] ?? "stale");
}

/** The span of one gang of a batch, which lasts as long as the record of the batch. */
function admissionSpan(
  tracing: Tracing,
  { planned, gang }: GangRecord,
  recording: Promise<readonly string[]>,
  at: number,
): Promise<void> {
  const attributes = {
    "gangway.job.uid": planned.jobUid,
    "gangway.cluster": planned.cluster ?? "",
    "gangway.admission": planned.admission,
  };
  return tracing.span(
    { name: `planner ${planned.kind}`, attributes, parent: { traceParent: gang.traceParent } },
    async (span) => {
      const outcomes = await recording;
      span.setAttribute("gangway.outcome", outcomes[at] ?? "");
    },
  );
}

function releases(job: Job, { record, forget }: Decision): boolean {
  if (forget) return isDraining(job);
  const held = new Set(job.admissions.filter((one) => one.tokensReleasedMs === null).map(({ number }) => number));
  return record?.admissions.some((one) => one.tokensReleasedMs !== null && held.has(one.number)) ?? false;
}
