import { liveAdmission } from "../../job/job.ts";
import type { DecideClass } from "../assign/assign-class.ts";
import type { PlannedAdmission } from "../model/plan-types.ts";
import type { Round } from "../preempt/round.ts";
import { leaves, ownClass } from "../queues/gang-class.ts";
import { compareGangs } from "../queues/order.ts";
import type { GangRecord } from "../queues/records.ts";

/**
 * Plans gangs elsewhere whose clusters are lost. Each keeps its admission and its tokens until another one is recorded,
 * which takes these tokens over. So they come before gangs that wait, and nobody is preempted for them.
 */
export function planMoves(
  { fleet }: Round,
  decide: DecideClass,
  isFull: (planned: number) => boolean,
): readonly PlannedAdmission[] {
  const moved: PlannedAdmission[] = [];
  for (const gang of [...fleet.queues.moving].sort(compareGangs)) {
    if (isFull(moved.length)) break;
    const planned = planMove(fleet, decide, gang);
    if (planned !== null) moved.push(planned);
  }
  return moved;
}

function planMove(fleet: Round["fleet"], decide: DecideClass, gang: GangRecord): PlannedAdmission | null {
  const { facts, account, gangQueue } = gang;
  const live = liveAdmission(facts);
  if (live === null || leaves(facts) || facts.setAside !== undefined || gangQueue.stop !== null) return null;
  const { quota } = fleet;
  const { mark } = quota;
  for (const [pool, amount] of fleet.usesOf(gang, live)) quota.discharge(account, pool, amount);
  const planned = decide.takeElsewhere(ownClass(gang), gang, live.members);
  if (planned === null) quota.undo(mark);
  return planned === null ? null : { ...planned, movesFrom: live.number };
}
