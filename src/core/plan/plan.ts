import { admitGang } from "./admit-gang.ts";
import { flavoredResources } from "./flavors.ts";
import { growGang } from "./grow-gang.ts";
import { type QueuedGangs, queuedGangs } from "./order.ts";
import type { PlanGang } from "./plan-gang.ts";
import type { PlanState } from "./plan-state.ts";
import type { PlaceInLine, Plan, PlannedAdmission, Refusal } from "./plan-types.ts";
import { QuotaBook } from "./quota-book.ts";
import { refuse } from "./refuse.ts";
import { openRooms } from "./rooms.ts";
import type { PlanSnapshot } from "./snapshot.ts";

/**
 * Decides from the snapshot and the time alone which gangs are admitted now and where, which grow, and why
 * each of the others waits. Every waiting job is admitted or refused exactly once; the same inputs give the same plan.
 */
export function plan(snapshot: PlanSnapshot, { nowMs }: { readonly nowMs: number }): Plan {
  // 1. The room there is: quotas with their use, clusters with their free nodes.
  const book = new QuotaBook(snapshot);
  const rooms = new Map(openRooms(snapshot));
  const state: PlanState = { book, rooms, resources: flavoredResources(snapshot), nowMs };

  // 2. The order: one list for each queue; the queue that uses the smallest share of its quota has the next turn.
  const queues = queuedGangs(snapshot);
  const admissions: PlannedAdmission[] = [];
  const refusals: Refusal[] = [];
  let inLine: PlaceInLine | null = null;
  for (let queue = nextQueue(queues, book); queue !== null; queue = nextQueue(queues, book)) {
    // 3. A gang that runs with fewer members than its job has grows before its queue admits another.
    const growing = queue.growing.shift();
    if (growing !== undefined) {
      const grown = growGang(growing, state);
      if (grown !== null) admissions.push(grown);
      continue;
    }
    // 4. The queue's first gang is admitted if a quota, a flavor and a cluster have room for it, else refused.
    const gang = queue.waiting.shift();
    if (gang === undefined) continue;
    const decided = admitGang(gang, state);
    if ("kind" in decided) {
      admissions.push(decided);
      continue;
    }
    // 5. The first gang that waits for tokens alone takes the place in the waiting line; later gangs leave room for it.
    if (decided.inLine !== null) {
      inLine = placeOf(gang, decided.inLine, admissions.length);
      book.reserve(gang, decided.inLine.allocations);
    }
    // 6. No gang passes the head of a strict queue, unless the head waits only for itself.
    refusals.push(decided.refusal, ...refuseBehind(gang, decided.refusal, queue));
  }
  // 7. Elastic gangs grow into the room that is left, except those of a strict queue whose head was refused.
  const stretched = queues.flatMap(({ stretching }) => stretching.flatMap((gang) => growGang(gang, state) ?? []));
  admissions.push(...stretched);
  return { admissions, inLine, refusals, replanAtMs: earliest(refusals) };
}

function placeOf(gang: PlanGang, planned: PlannedAdmission, after: number): PlaceInLine {
  return { planned, priority: gang.priority, sinceMs: gang.createTimeMs, after };
}

/** The queue that uses the smallest share of its quota, then the first by name; null once all are empty. */
function nextQueue(queues: readonly QueuedGangs[], book: QuotaBook): QueuedGangs | null {
  let next: { queue: QueuedGangs; share: number } | null = null;
  for (const queue of queues) {
    if (queue.growing.length + queue.waiting.length === 0) continue;
    const share = book.share(queue.name);
    if (next === null || share < next.share) next = { queue, share };
  }
  return next?.queue ?? null;
}

/** Others may pass a head that waits only for itself. */
const OWN_REASONS = ["Suspended", "Backoff", "Draining", "WaitingForCache"];

/** Refuses the other gangs of a strict queue whose head cannot be admitted; leaves all other queues alone. */
function refuseBehind(head: PlanGang, refused: Refusal, queue: QueuedGangs): readonly Refusal[] {
  if (!queue.strict || OWN_REASONS.includes(refused.reason)) return [];
  const message = `waits behind ${head.namespace}/${head.name}, the head of the strict queue ${queue.name}`;
  queue.stretching.splice(0);
  return queue.waiting
    .splice(0)
    .map((gang) => ({ ...refuse(gang, { reason: "BehindHead", message }), head: head.uid }));
}

function earliest(refusals: readonly Refusal[]): number | null {
  const times = refusals.flatMap((refusal) => refusal.retryAtMs ?? []);
  return times.reduce<number | null>((least, atMs) => (least === null ? atMs : Math.min(least, atMs)), null);
}
