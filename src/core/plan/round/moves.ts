import { liveAdmission } from "../../job/job.ts";
import type { DecideClass } from "../assign/assign-class.ts";
import type { PlannedAdmission } from "../model/plan-types.ts";
import type { Round } from "../preempt/round.ts";
import { classKey, leaves, ownClass } from "../queues/gang-class.ts";
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
  // What one of them was refused, those like it are, too: this only takes what is free.
  const refused = new Set<string>();
  for (const gang of [...fleet.queues.moving].filter(mayMove).sort(compareGangs)) {
    if (isFull(moved.length)) break;
    const key = keyOf(gang);
    const planned = refused.has(key) ? null : planMove(fleet, decide, gang);
    if (planned === null) refused.add(key);
    else moved.push(planned);
  }
  return moved;
}

/** False for a gang that ends or is undone anyway, and for one that nobody may admit now. */
function mayMove({ facts, gangQueue }: GangRecord): boolean {
  return !leaves(facts) && facts.setAside === undefined && gangQueue.stop === null;
}

/** Equal for gangs that a plan cannot tell apart: in what they ask for, and in what they have. */
function keyOf({ facts, gangQueue }: GangRecord): string {
  const live = liveAdmission(facts);
  const has = [live?.cluster, live?.members, live?.flavors, live?.returned];
  return `${facts.queue}\n${classKey(facts, gangQueue)}\n${JSON.stringify(has)}`;
}

function planMove(fleet: Round["fleet"], decide: DecideClass, gang: GangRecord): PlannedAdmission | null {
  const { facts, account } = gang;
  const live = liveAdmission(facts);
  if (live === null) return null;
  const { quota } = fleet;
  const { mark } = quota;
  for (const [pool, amount] of fleet.usesOf(gang, live)) quota.discharge(account, pool, amount);
  const planned = decide.takeElsewhere(ownClass(gang), gang, live.members);
  if (planned === null) quota.undo(mark);
  return planned === null ? null : { ...planned, movesFrom: live.number };
}
