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

/** One round: releases settled, snapshot, plan, then each admission reserved and recorded, then the refusals. */
export async function runRound(context: Context, signal: AbortSignal): Promise<Round> {
  await context.domain.settleReleases();
  const snapshot = await context.store.snapshot();
  const quotaEpoch = await context.domain.openFor(snapshot);
  const decided = plan(snapshot, context.clock.nowMs());
  const recorded = await admitAll(context, { snapshot, quotaEpoch, admissions: decided.admissions }, signal);
  if (!signal.aborted) await tellRefusals(context, decided.refusals);
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
): Promise<readonly PlannedAdmission[]> {
  const strictQueueOf = strictQueues(round.snapshot);
  const heldUp = new Set<string>();
  const missed = new Map<string, number>();
  const recorded: PlannedAdmission[] = [];
  for (const planned of round.admissions) {
    if (signal.aborted) break;
    const queue = strictQueueOf(planned.jobUid);
    const before = missed.get(planned.cluster) ?? 0;
    // The plan counted on the ones that failed: each would have raised the cluster's counter.
    const next = { ...planned, admissionCounter: planned.admissionCounter - before };
    const skipped = queue !== null && heldUp.has(queue);
    if (!skipped && (await admit(context, next, round.quotaEpoch)) === "recorded") {
      recorded.push(planned);
      context.wakeJob(planned.jobUid);
    } else {
      missed.set(planned.cluster, before + 1);
      if (queue !== null) heldUp.add(queue);
    }
  }
  return recorded;
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
