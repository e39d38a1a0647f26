import { markCapacities } from "../capacity/cluster-state.ts";
import type { Fleet } from "../fit/fleet.ts";
import type { PlaceInLine, PlannedAdmission, PlannedEviction } from "../model/plan-types.ts";
import type { PlannedPreemption } from "../model/preemption.ts";
import type { Round } from "../preempt/round.ts";
import { requeue } from "../queues/class-state.ts";
import { noteSteps } from "../queues/order.ts";
import type { RefusedGang } from "../queues/refusals.ts";
import { Cycles, type RoundResult } from "./cycles.ts";
import { evictionsOf } from "./evictions.ts";
import { chargeRest, riseOfPending } from "./pending-use.ts";
import { NOTHING_SAID, newReasons, reasonOf } from "./reasons.ts";

/** The decisions of a round. */
export type FleetPlan = {
  readonly admissions: readonly PlannedAdmission[];
  /** The first gang in the plan's order that has a cluster and waits for tokens of pools alone. Null: none does. */
  readonly inLine: PlaceInLine | null;
  /** The running gangs whose queue no longer wants them. */
  readonly evictions: readonly PlannedEviction[];
  /** The waiting gangs for which others are to be preempted. */
  readonly preemptions: readonly PlannedPreemption[];
  /** The jobs whose nomination ends without an admission. None of them is nominated again. */
  readonly withdrawn: readonly string[];
  /** The gangs whose reason is another one than a round has reported before. */
  readonly refused: readonly RefusedGang[];
  /** When to plan again without a change. Null: only after a change. */
  readonly replanAtMs: number | null;
  /** True if the bound ended the round: the next one has more to plan at once. */
  readonly more: boolean;
};

export type ReadRound = (plan: FleetPlan, round: Round) => void;

/**
 * Runs one round, and gives back the capacity and the quota that it took. `isPreview`: it reports no reason, and leaves
 * every gang that it refuses to the next one.
 */
export function runRound(round: Round, read: ReadRound, { isPreview }: { readonly isPreview: boolean }): FleetPlan {
  const { fleet } = round;
  const { quota, queues } = fleet;
  const { lastRound } = round.requeue;
  quota.reserve(null);
  dischargeHolds(fleet);
  const undoPlacements = markCapacities(fleet.clusters.values());
  const cycles = new Cycles(round);
  const result = cycles.run();
  const { admissions, inLine, preemptions, withdrawn, refused: classes, more, recheckAtMs, reserveAtMs } = result;
  round.requeue.recheckAt(recheckAtMs);
  lastRound.gave = admissions.length + preemptions.length + withdrawn.length > 0;
  if (!isPreview) queues.noteInLine(inLine?.planned.jobUid ?? null);
  const reported = isPreview ? NOTHING_SAID : newReasons(round, classes);
  const evictions = evictionsOf(fleet);
  // A gang that takes over tokens is admitted in the next round.
  const admitsNext = preemptions.some(({ takesOver }) => takesOver !== undefined);
  const left = { replanAtMs: replanAt(round, reserveAtMs), more: more || reported.more || admitsNext };
  const plan = { admissions, inLine, evictions, preemptions, withdrawn, refused: reported.refused, ...left };
  // Messages tell what is in use, not what is kept.
  for (const kept of round.reserved.kept) round.reserved.exclude(kept);
  countInUse(round, result);
  read(plan, round);
  cycles.end();
  if (isPreview) for (const gangClass of classes) requeue(gangClass, "changed");
  undoPlacements();
  quota.undo(0);
  return plan;
}

/**
 * Takes the holds of nominees off the use for the rest of the round, since they are part of what the nominees need. A
 * round must charge all that a nominee needs, or has been admitted with, before it decides about other gangs: what is
 * held for it is not theirs. Wakes the nominees' gang classes: what they wait for comes sooner than others see it.
 */
function dischargeHolds(fleet: Fleet): void {
  for (const { gang, amounts } of fleet.allHolds()) {
    for (const [pool, amount] of Object.entries(amounts)) fleet.quota.discharge(gang.account, pool, amount);
    if (gang.gangClass !== null) requeue(gang.gangClass, "mayFit");
  }
}

/**
 * Lets the quotas count what the ledger does, with the round's admissions: what nominees hold, not what they still
 * lack. Their victims use that until they have left.
 */
function countInUse(round: Round, { admissions, pending }: Pick<RoundResult, "admissions" | "pending">): void {
  const { fleet } = round;
  const { quota, queues } = fleet;
  quota.undo(0);
  for (const { jobUid, allocations } of admissions) {
    const gang = queues.gangs.get(jobUid);
    for (const { pool, amount } of allocations) if (gang !== undefined) chargeRest(fleet, gang, pool, amount);
  }
  round.pendingUse = riseOfPending(fleet, pending);
}

/**
 * The first time at which a gang that backs off may be admitted, one that is protected may be preempted, or one that
 * ages may overtake another, or one that waits may get a reservation.
 */
function replanAt({ fleet, requeue: due, nowMs }: Round, reserveAtMs: number): number | null {
  const { queues } = fleet;
  const atMs = Math.min(due.lastRound.recheckAtMs, reserveAtMs, noteSteps(queues.all.values(), nowMs));
  let least = Number.isFinite(atMs) ? atMs : null;
  for (const gang of queues.timed) {
    const cause = reasonOf(fleet, gang, nowMs);
    if (cause?.kind === "backoff") least = Math.min(least ?? cause.untilMs, cause.untilMs);
  }
  return least;
}
