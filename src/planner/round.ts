/**
 * One round of the planner, which turns a plan into recorded admissions. Gangs start as soon as tokens and nodes are
 * free, and a gang that fails to be recorded delays no gang but those behind it in a strict queue.
 */
import type { ReportedRefusal } from "../core/plan/explain/kept-reason.ts";
import type { PlannedEviction } from "../core/plan/model/plan-types.ts";
import { carryOut, FAILURES_MAX, type RoundContext } from "./carry-out.ts";
import type { FleetDecision } from "./ports.ts";
import { type RecordedPreemptions, recordPreemptions } from "./preempt.ts";

/** The results of one round. */
export type RoundOutcome = {
  readonly admitted: number;
  readonly grown: number;
  /** Refusals with a new cause. */
  readonly refused: number;
  /** Gangs for which others give way from now on. */
  readonly nominated: number;
  /**
   * Planned admissions that were not recorded, except those that wait for tokens, and such preemptions. The next round
   * plans them again.
   */
  readonly missed: number;
  /** When time alone may change the plan. */
  readonly replanAtMs: number | null;
  /** True: the next round has more to do at once. */
  readonly more: boolean;
};

/**
 * One round: decide on the present state, settle releases, reserve and record the admissions in batches, record the
 * evictions, preemptions and refusals. Throws the errors of the store or the counters; an admission that throws does so
 * after the others had their turn.
 */
export async function runRound(context: RoundContext, signal: AbortSignal): Promise<RoundOutcome> {
  const { quota, fleet, clock, plannerEpoch } = context;
  const opened = await quota.open();
  const decision = await fleet.decide({ nowMs: clock.nowMs(), plannerEpoch });
  context.onPlanned?.(decision);
  if (decision.quotaEpoch > opened) quota.lost(opened, "the ledger's epoch has moved on");
  // After the state was read, so that the counters know every release and limit that the plan knows.
  await quota.catchUp(await quota.open());
  const quotaEpoch = await quota.open();
  const { recorded, missed, refusals, failures } = await carryOut(context, { quotaEpoch, decision }, signal);
  const said = [...decision.refusals, ...refusals];
  const attempt = <T>(step: Promise<T>) => {
    return step.catch((error: unknown) => {
      failures.push(error);
      return null;
    });
  };
  let preempted: RecordedPreemptions | null = null;
  if (!signal.aborted && failures.length < FAILURES_MAX) {
    await attempt(recordEvictions(context, decision.evictions));
    const preemptions = recordable(decision, recorded);
    preempted = await attempt(recordPreemptions(context, { ...decision, preemptions }));
  }
  await attempt(fleet.reread([...recorded, ...missed].map(({ jobUid }) => jobUid)));
  if (signal.aborted || failures.length >= FAILURES_MAX) await fleet.sayAgain(uidsOf(said));
  else await attempt(recordRefusals(context, said));
  // The state does not know these: once it refuses their gangs itself, it tells why.
  await fleet.sayAgain(uidsOf(refusals));
  if (failures.length === 1) throw failures[0];
  if (failures.length > 1) throw new AggregateError(failures, "several steps of a planner's round failed");
  return {
    admitted: recorded.filter((planned) => planned.kind === "admit").length,
    grown: recorded.filter((planned) => planned.kind === "grow").length,
    refused: said.length,
    nominated: preempted?.nominated ?? 0,
    missed: missed.length + (preempted?.stale ?? 0),
    replanAtMs: decision.replanAtMs,
    more: decision.more,
  };
}

/**
 * Leaves out the reservations that wait for an admission of this round which was not recorded: the next round decides
 * about its gang first.
 */
function recordable(
  { plan, preemptions }: Pick<FleetDecision, "plan" | "preemptions">,
  recorded: readonly { readonly jobUid: string }[],
): FleetDecision["preemptions"] {
  const open = new Set(plan.admissions.map(({ jobUid }) => jobUid));
  for (const { jobUid } of recorded) open.delete(jobUid);
  return preemptions.filter(({ reservation }) => !reservation?.awaits.some(({ jobUid }) => open.has(jobUid)));
}

/** Requests evictions, and wakes the workers that carry them out. A job that has moved on is planned again. */
async function recordEvictions(context: RoundContext, evictions: readonly PlannedEviction[]): Promise<void> {
  if (evictions.length === 0) return;
  const { store, fleet, clock, plannerEpoch, wakeJob } = context;
  const requested = await store.recordEvictions(evictions, plannerEpoch, clock.nowMs());
  for (const jobUid of requested) wakeJob(jobUid);
  await fleet.reread(evictions.map(({ jobUid }) => jobUid));
}

/** Records refusals, and lets those be told again that were not recorded. */
async function recordRefusals(context: RoundContext, said: readonly ReportedRefusal[]): Promise<void> {
  if (said.length === 0) return;
  const { store, fleet, clock, plannerEpoch } = context;
  let left = uidsOf(said);
  try {
    left = await store.recordRefusals(said, plannerEpoch, clock.nowMs());
    if (left.length > 0) await fleet.reread(left);
  } finally {
    if (left.length > 0) await fleet.sayAgain(left);
  }
}

function uidsOf(said: readonly ReportedRefusal[]): readonly string[] {
  return said.map(({ refusal }) => refusal.jobUid);
}
