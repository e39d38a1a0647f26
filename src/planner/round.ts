/**
 * One round of the planner, which turns a plan into recorded admissions. Gangs start as soon as tokens and nodes are
 * free, and a gang that fails to be recorded delays no gang but those behind it in a strict queue.
 */
import { plan } from "../core/plan/plan.ts";
import type { Refusal } from "../core/plan/plan-types.ts";
import { carryOut, FAILURES_MAX, type RoundContext } from "./carry-out.ts";

/** The results of one round. */
export type Round = {
  readonly admitted: number;
  readonly grown: number;
  readonly refused: number;
  /** Planned admissions that were not recorded, except those that wait for tokens. The next round plans them again. */
  readonly missed: number;
  /** When time alone may change the plan. */
  readonly replanAtMs: number | null;
};

/**
 * One round: take a snapshot, settle releases, plan, reserve and record the admissions in batches, record the refusals.
 * Throws the errors of the store or the counters; an admission that throws does so after the others had their turn.
 */
export async function runRound(context: RoundContext, signal: AbortSignal): Promise<Round> {
  const { quota } = context;
  const opened = await quota.open();
  const snapshot = await context.store.snapshot();
  if (snapshot.quotaEpoch > opened) quota.lost(opened, "the ledger's epoch has moved on");
  // After the snapshot, so that the counters know every release and limit that the plan knows.
  await quota.catchUp(await quota.open());
  const quotaEpoch = await quota.open();
  const startedMs = context.clock.monotonicMs();
  const decided = plan(snapshot, { nowMs: context.clock.nowMs() });
  context.onPlanned?.({ planMs: context.clock.monotonicMs() - startedMs });
  const results = await carryOut(context, { snapshot, quotaEpoch, decided }, signal);
  const { recorded, refusals, exhausted, failures } = results;
  if (!signal.aborted && failures.length < FAILURES_MAX) {
    await recordRefusals(context, [...decided.refusals, ...refusals]).catch(
      (error: unknown) => void failures.push(error),
    );
  }
  if (failures.length === 1) throw failures[0];
  if (failures.length > 1) throw new AggregateError(failures, "several steps of a planner's round failed");
  return {
    admitted: recorded.filter((planned) => planned.kind === "admit").length,
    grown: recorded.filter((planned) => planned.kind === "grow").length,
    refused: decided.refusals.length + refusals.length,
    missed: decided.admissions.length - recorded.length - exhausted,
    replanAtMs: decided.replanAtMs,
  };
}

async function recordRefusals(context: RoundContext, refusals: readonly Refusal[]): Promise<void> {
  const { recordedRefusals } = context;
  const texts = new Map(refusals.map((refusal) => [refusal.jobUid, JSON.stringify(refusal)]));
  const changed = refusals.filter(({ jobUid }) => recordedRefusals.get(jobUid) !== texts.get(jobUid));
  if (changed.length > 0) {
    await context.store.recordRefusals(changed, context.plannerEpoch, context.clock.nowMs());
  }
  recordedRefusals.clear();
  for (const [jobUid, text] of texts) recordedRefusals.set(jobUid, text);
}
