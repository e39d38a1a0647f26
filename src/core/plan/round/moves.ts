import { maxOf } from "../../../runtime/lists.ts";
import { liveAdmission } from "../../job/job.ts";
import type { DecideClass } from "../assign/assign-class.ts";
import type { Fleet } from "../fit/fleet.ts";
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
  { isFull, checkStopped }: { readonly isFull: (planned: number) => boolean; readonly checkStopped: () => void },
): readonly PlannedAdmission[] {
  const moved: PlannedAdmission[] = [];
  // What one of them was refused, those like it are, too: this only takes what is free.
  const refused = new Set<string>();
  for (const gang of [...fleet.queues.moving].filter((one) => mayMove(fleet, one)).sort(compareGangs)) {
    checkStopped();
    if (isFull(moved.length)) break;
    const key = keyOf(gang);
    const planned = refused.has(key) ? null : planMove(fleet, decide, gang);
    if (planned === null) refused.add(key);
    else moved.push(planned);
  }
  return moved;
}

/**
 * False for a gang that ends or is undone anyway, for one that nobody may admit now, and for one whose cluster has
 * answered: its worker is about to take the request back.
 */
function mayMove({ clusters }: Fleet, { facts, gangQueue }: GangRecord): boolean {
  const from = clusters.get(liveAdmission(facts)?.cluster ?? "")?.facts;
  const hasAnswered = from?.reachable === true || from?.returning === true;
  return !hasAnswered && !leaves(facts) && facts.setAside === undefined && gangQueue.stop === null;
}

/** Equal for gangs that a plan cannot tell apart: in what they ask for, and in what they have. */
function keyOf({ facts, gangQueue }: GangRecord): string {
  const live = liveAdmission(facts);
  const has = [live?.cluster, live?.members, live?.flavors, live?.returned];
  return `${facts.queue}\n${classKey(facts, gangQueue)}\n${JSON.stringify(has)}`;
}

function planMove(fleet: Fleet, decide: DecideClass, gang: GangRecord): PlannedAdmission | null {
  const { facts, account } = gang;
  const live = liveAdmission(facts);
  if (live === null) return null;
  const { quota } = fleet;
  const { mark } = quota;
  const uses = fleet.usesOf(gang, live);
  for (const [pool, amount] of uses) quota.discharge(account, pool, amount);
  const excess = [...uses].map(([pool, amount]) => [pool, dischargeExcess(fleet, gang, { pool, amount })] as const);
  const planned = decide.takeElsewhere(ownClass(gang), gang, live.members);
  if (planned === null) quota.undo(mark);
  else for (const [pool, amount] of excess) quota.charge(account, pool, amount);
  return planned === null ? null : { ...planned, movesFrom: live.number };
}

/**
 * Lets quotas have room for what a gang holds, although they may have been lowered below what is used: it keeps its
 * tokens where it goes. Nothing moves that is frozen. Returns how much was taken off the use for that.
 */
function dischargeExcess(
  { quota }: Pick<Fleet, "quota">,
  { account, facts: { priority } }: GangRecord,
  { pool, amount: need }: { readonly pool: string; readonly amount: number },
): number {
  if (quota.frozen.has(pool)) return 0;
  const lacking = quota
    .blocks(account, pool, { resource: "", need, priority })
    .map(({ need, used, limit, reserved }) => need + used + reserved - limit);
  const excess = maxOf(lacking, 0);
  if (excess > 0) quota.discharge(account, pool, excess);
  return excess;
}
