import { memberCount } from "../core/job/roles.ts";
import { plan } from "../core/plan/plan.ts";
import type { PlannedAdmission, Refusal } from "../core/plan/plan-types.ts";
import type { PlanSnapshot } from "../core/plan/snapshot.ts";
import type { AdmitOutcome, PlannerPorts } from "./ports.ts";
import type { QuotaDomain } from "./quota-domain.ts";

/** What came of one round. */
export type Round = {
  readonly admitted: number;
  readonly grown: number;
  readonly refused: number;
  /** Planned admissions that did not come about: the next round plans them again. */
  readonly missed: number;
  /** When time alone may change the plan. */
  readonly replanAtMs: number | null;
};

type Context = PlannerPorts & {
  readonly domain: QuotaDomain;
  readonly plannerEpoch: number;
  /** Refusals as they were last recorded, by job: the same one is not written again. */
  readonly told: Map<string, string>;
};

/** So many admissions of one round may throw before the store is taken to be away. */
const FAILURES_MAX = 3;

/**
 * One round: releases settled, snapshot, plan, then each admission reserved and recorded, then the refusals. Throws what the store or
 * the counters threw; an admission that throws does so after the others had their turn.
 */
export async function runRound(context: Context, signal: AbortSignal): Promise<Round> {
  await context.domain.settleReleases();
  const snapshot = await context.store.snapshot();
  const quotaEpoch = await context.domain.openFor(snapshot);
  const startedMs = context.clock.monotonicMs();
  const decided = plan(snapshot, context.clock.nowMs());
  context.onPlanned?.({ planMs: context.clock.monotonicMs() - startedMs });
  const round = { snapshot, quotaEpoch, admissions: decided.admissions };
  const { recorded, failures } = await admitAll(context, round, signal);
  if (!signal.aborted && failures.length < FAILURES_MAX) {
    await tellRefusals(context, decided.refusals).catch((error: unknown) => void failures.push(error));
  }
  if (failures.length === 1) throw failures[0];
  if (failures.length > 1) throw new AggregateError(failures, "several steps of a planner's round failed");
  return {
    admitted: recorded.filter((planned) => planned.kind === "admit").length,
    grown: recorded.filter((planned) => planned.kind === "grow").length,
    refused: decided.refusals.length,
    missed: decided.admissions.length - recorded.length,
    replanAtMs: decided.replanAtMs,
  };
}

/**
 * Names a grant so that no two are alike: its job, its admission, how many members it brings that to, and the planner's epoch. The
 * first step is 1; growth always ends at more members than one.
 */
export function tokenOf(planned: PlannedAdmission, plannerEpoch: number): string {
  const step = planned.kind === "admit" ? 1 : memberCount(planned.members);
  return `job/${planned.jobUid}/admission/${planned.admission}/step/${step}/${plannerEpoch}`;
}

/** Admits in the plan's order. One that fails holds up nobody but those behind it in a strict queue; its room stays reserved. */
async function admitAll(
  context: Context,
  round: {
    readonly snapshot: PlanSnapshot;
    readonly quotaEpoch: number;
    readonly admissions: readonly PlannedAdmission[];
  },
  signal: AbortSignal,
): Promise<{ readonly recorded: readonly PlannedAdmission[]; readonly failures: unknown[] }> {
  const missed = new Missed(round.snapshot);
  const recorded: PlannedAdmission[] = [];
  const failures: unknown[] = [];
  for (const planned of round.admissions) {
    if (signal.aborted || failures.length >= FAILURES_MAX) break;
    const outcome = missed.holdsUp(planned)
      ? "heldUp"
      : await admit(context, missed.renumber(planned), round.quotaEpoch).catch(
          (error: unknown) => void failures.push(error),
        );
    if (outcome === "recorded") {
      recorded.push(planned);
      context.wakeJob(planned.jobUid);
    } else missed.add(planned);
  }
  return { recorded, failures };
}

/** The planned admissions of a round that did not come about, and what that means for later ones. */
class Missed {
  readonly #strictQueueOf: (jobUid: string) => string | null;
  readonly #strictQueues = new Set<string>();
  readonly #byCluster = new Map<string, number>();

  constructor(snapshot: PlanSnapshot) {
    this.#strictQueueOf = strictQueues(snapshot);
  }

  add(planned: PlannedAdmission): void {
    this.#byCluster.set(planned.cluster, (this.#byCluster.get(planned.cluster) ?? 0) + 1);
    const queue = this.#strictQueueOf(planned.jobUid);
    if (queue !== null) this.#strictQueues.add(queue);
  }

  /** True if a gang stands behind one of them in a strict queue. */
  holdsUp(planned: PlannedAdmission): boolean {
    return this.#strictQueues.has(this.#strictQueueOf(planned.jobUid) ?? "");
  }

  /** The plan counted on all of them: each would have raised its cluster's counter. */
  renumber(planned: PlannedAdmission): PlannedAdmission {
    const fewer = this.#byCluster.get(planned.cluster) ?? 0;
    return { ...planned, admissionCounter: planned.admissionCounter - fewer };
  }
}

async function admit(
  context: Context,
  planned: PlannedAdmission,
  quotaEpoch: number,
): Promise<AdmitOutcome | "notGranted"> {
  const { clock, domain, plannerEpoch } = context;
  const token = tokenOf(planned, plannerEpoch);
  const lines = planned.lines.map((line) => ({ ...line, token }));
  const holder = { jobUid: planned.jobUid, admission: planned.admission };
  const grant = lines.length === 0 ? null : await domain.grant({ holder, lines, epoch: quotaEpoch });
  if (lines.length > 0 && grant === null) return "notGranted";
  const fence = grant?.fence ?? null;
  const record = { planned, lines, fence, quotaEpoch, plannerEpoch, nowMs: clock.nowMs() };
  const outcome = await context.store.recordAdmission(record).catch((error: unknown) => {
    // It may have been recorded: freeing now could give the same tokens away twice.
    domain.distrust();
    throw error;
  });
  if (outcome === "recorded" || grant === null) return outcome;
  // A grant that was already there may be a recorded one's: only the ledger can tell.
  if (grant.held) domain.distrust();
  else await domain.free(quotaEpoch, grant.fence);
  return outcome;
}

async function tellRefusals(context: Context, refusals: readonly Refusal[]): Promise<void> {
  const texts = new Map(refusals.map((refusal) => [refusal.jobUid, JSON.stringify(refusal)]));
  const news = refusals.filter((refusal) => context.told.get(refusal.jobUid) !== texts.get(refusal.jobUid));
  if (news.length > 0) {
    await context.store.recordRefusals(news, context.plannerEpoch, context.clock.nowMs());
  }
  context.told.clear();
  for (const [jobUid, text] of texts) context.told.set(jobUid, text);
}

function strictQueues(snapshot: PlanSnapshot): (jobUid: string) => string | null {
  const strict = new Set(
    snapshot.queues.filter((queue) => queue.strategy === "STRICT_FIFO").map((queue) => queue.name),
  );
  const queues = new Map(snapshot.waiting.map((job) => [job.uid, job.spec.runPolicy.schedulingPolicy.queue]));
  return (jobUid) => {
    const queue = queues.get(jobUid);
    return queue !== undefined && strict.has(queue) ? queue : null;
  };
}
