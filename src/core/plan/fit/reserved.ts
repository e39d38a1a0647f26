/** What a round keeps for reservations and for nominees, and which gangs may take it. */

import type { ClusterState } from "../capacity/cluster-state.ts";
import type { PlacedPod } from "../capacity/unseen-pods.ts";
import { compareAged, headOf } from "../queues/order.ts";
import type { GangClass, GangRecord, PlacedPods, ReservedCapacity, RunningAdmission } from "../queues/records.ts";
import type { QuotaState } from "../usage/quota-state.ts";
import type { Fleet } from "./fleet.ts";

/**
 * True if a class's gangs may be admitted on what is kept: they have a higher priority, agree to be taken back, or will
 * have ended before the reservation starts.
 */
export function mayOvertake(
  { gangs, priority }: Pick<GangClass, "gangs" | "priority">,
  { gang, isFar, startMs }: ReservedCapacity,
  nowMs: number,
): boolean {
  if (priority > gang.facts.priority) return true;
  const [first] = gangs;
  if (first === undefined || !isFar) return false;
  const { backfill, maxRuntimeMs = Number.POSITIVE_INFINITY } = first.facts;
  return backfill === true || (Number.isFinite(startMs) && nowMs + maxRuntimeMs <= startMs);
}

/**
 * True if a class's gangs may take the place of a nominee, of which nothing runs: they are of its queue, and stand
 * before it. Its victims do not.
 */
export function mayTakePlace(gangClass: GangClass, { gang }: Pick<ReservedCapacity, "gang">, nowMs: number): boolean {
  const first = headOf(gangClass);
  if (first === undefined || gangClass.gangQueue !== gang.gangQueue || compareAged(first, gang, nowMs) >= 0)
    return false;
  return !(gang.facts.nomination?.victims ?? []).some(({ jobUid }) => jobUid === first.facts.uid);
}

/**
 * What one round keeps for reservations and for nominees. It is charged, except while decisions are made as if some of
 * it were not kept.
 */
export class Reserved {
  readonly #quota: QuotaState;
  /** What is kept for reservations, the first one first. */
  readonly #kept: ReservedCapacity[] = [];
  /**
   * What is kept for nominees before which other gangs of their queues stand. These may take their places. It counts as
   * pending like what is kept for other nominees: beside what their victims use.
   */
  #contested: readonly ReservedCapacity[] = [];

  constructor(quota: QuotaState) {
    this.#quota = quota;
  }

  get kept(): readonly ReservedCapacity[] {
    return this.#kept;
  }

  get contested(): readonly ReservedCapacity[] {
    return this.#contested;
  }

  /** Keeps something for a reservation. It is charged already. */
  keep(kept: ReservedCapacity): void {
    this.#kept.push(kept);
  }

  /** Keeps something for a nominee whose place others may take. It is charged already. */
  contest(kept: ReservedCapacity): void {
    this.#contested = [...this.#contested, kept];
  }

  /** Ends the contest for what is kept for a nominee. */
  endContest(kept: ReservedCapacity): void {
    this.#contested = this.#contested.filter((one) => one !== kept);
  }

  /** Takes what is kept off the nodes and the quotas. Every clean-up of the round undoes it. */
  exclude(kept: ReservedCapacity): void {
    if (kept.excluded) return;
    kept.excluded = true;
    this.#charge(kept, -1);
  }

  /** Charges what is kept again. */
  include(kept: ReservedCapacity): void {
    if (!kept.excluded) return;
    kept.excluded = false;
    this.#charge(kept, 1);
  }

  #charge({ rise, requested, gang, placed, cluster }: ReservedCapacity, times: 1 | -1): void {
    if (rise !== null) this.#quota.chargeRise(rise, times);
    else for (const [pool, amount] of requested) this.#quota.charge(gang.account, pool, times * amount);
    for (const { slot, fit, pods } of placed) cluster.free.put(fit, slot, times * pods);
  }

  /** Decides as if some of what is kept were not. If the decision charges nothing, the use is afterwards as before. */
  without<T>(kept: readonly ReservedCapacity[], decide: () => T): T {
    const excluded = kept.length === 0 ? kept : kept.filter((one) => !one.excluded);
    if (excluded.length === 0) return decide();
    const { mark } = this.#quota;
    const marked = [...new Set(excluded.map(({ cluster }) => cluster.free))].map((free) => ({ free, mark: free.mark }));
    for (const one of excluded) this.exclude(one);
    const { mark: after } = this.#quota;
    const marks = marked.map(({ free }) => free.mark);
    const made = decide();
    if (this.#quota.mark > after || marked.some(({ free }, at) => free.mark !== marks[at])) {
      for (const one of excluded) this.include(one);
      return made;
    }
    this.#quota.undo(mark);
    for (const one of excluded) one.excluded = false;
    for (const { free, mark } of marked) free.undo(mark);
    return made;
  }

  /** Names what of all that the round keeps is excluded. Requests beside other reservations have other answers. */
  get excluded(): string {
    return excludedKey(this.#kept) + excludedKey(this.#contested);
  }
}

/** Names those of some reservations that are excluded. */
function excludedKey(kept: readonly ReservedCapacity[]): string {
  let key = "";
  for (const { excluded, gang } of kept) if (excluded) key += keyFor(gang);
  return key;
}

/** The value of `Reserved.excluded` while these are excluded, and no others. */
export function keyWithout(kept: readonly ReservedCapacity[]): string {
  let key = "";
  for (const { gang } of kept) key += keyFor(gang);
  return key;
}

function keyFor({ facts }: GangRecord): string {
  return `\n${facts.uid}`;
}

/** The jobs whose reservations a key names. */
export function excludedIn(key: string): readonly string[] {
  return key.split("\n").slice(1);
}

/** Charges the tokens that a gang holds, or takes them off the quotas. */
export function chargeHolds(
  fleet: Pick<Fleet, "quota" | "holdsOf">,
  { facts, account }: GangRecord,
  times: 1 | -1,
): void {
  const holds = fleet.holdsOf(facts.uid) ?? {};
  for (const [pool, amount] of Object.entries(holds)) fleet.quota.charge(account, pool, times * amount);
}

type OfAdmission = Pick<RunningAdmission, "uid" | "admission">;

function inheritanceKey({ uid, admission }: OfAdmission): string {
  return `${uid} ${admission.number}`;
}

/**
 * Lets placed pods inherit the places of equal pods, which count as well until their gangs have ended: takes one of
 * each two off its node. Else a node that is full would seem to lack capacity for as long as a reservation waits.
 */
export function inheritPlaces(
  { free }: Pick<ClusterState, "free">,
  placed: readonly PlacedPods[],
  from: readonly (OfAdmission & { readonly pods: readonly PlacedPod[] })[],
): Pick<ReservedCapacity, "placed" | "inherited"> {
  const left = placed.map((one) => ({ ...one }));
  const inherited = new Map<string, PlacedPod[]>();
  for (const gang of from) {
    for (const pod of gang.pods) {
      const equal = left.find(
        ({ slot, fit, pods }) => pods > 0 && fit === pod.fit && free.nodeAt(slot)?.name === pod.node,
      );
      if (equal === undefined) continue;
      equal.pods -= 1;
      free.put(equal.fit, equal.slot, -1);
      const known = inherited.get(inheritanceKey(gang)) ?? [];
      inherited.set(inheritanceKey(gang), [...known, pod]);
    }
  }
  return { placed: left.filter(({ pods }) => pods > 0), inherited };
}

/** The pods of a gang whose capacity is free once it has ended: no reservation inherits their places. */
export function leftPods(
  kept: readonly ReservedCapacity[],
  gang: OfAdmission,
  pods: readonly PlacedPod[],
): readonly PlacedPod[] {
  let left = pods;
  for (const { inherited, excluded } of kept) {
    if (!excluded && inherited.size > 0) left = without(left, inherited.get(inheritanceKey(gang)) ?? []);
  }
  return left;
}

/** Some pods less as many equal ones. */
function without(pods: readonly PlacedPod[], others: readonly PlacedPod[]): readonly PlacedPod[] {
  if (others.length === 0) return pods;
  const left = [...others];
  return pods.filter(({ node, fit }) => {
    const at = left.findIndex((one) => one.node === node && one.fit === fit);
    if (at >= 0) left.splice(at, 1);
    return at < 0;
  });
}
