/** What a round keeps for reservations, and for whom it gives way. */
import type { PoolAmounts } from "./branch-use.ts";
import type { ClusterState, PlacedPod } from "./cluster-state.ts";
import type { FitClass } from "./fit-classes.ts";
import type { Entry, Lane } from "./gang-lines.ts";
import type { QuotaRise } from "./quota-levels.ts";
import type { Runner } from "./runners.ts";
import type { Parts } from "./state-parts.ts";

type PlacedPods = { readonly slot: number; readonly fit: FitClass; readonly pods: number };

/** The room and the quota that are kept for one gang until it boards. */
export type KeptRoom = {
  readonly entry: Entry;
  readonly wants: PoolAmounts;
  readonly cluster: ClusterState;
  readonly placed: readonly PlacedPods[];
  /**
   * The pods of the gangs that it waits for whose places it gets, by `inheritanceKey`. The nodes count these places
   * once, as those of the pods.
   */
  readonly inherited: ReadonlyMap<string, readonly PlacedPod[]>;
  /** Empty: it keeps no quota. */
  readonly rise: QuotaRise;
  /** When the gangs that it waits for have ended at the latest. Infinite: nobody knows. */
  readonly startMs: number;
  /** False: it waits only for gangs that leave or that it may take back, so that it boards soon. */
  readonly isFar: boolean;
  /** True: it is not charged at the moment. */
  lifted: boolean;
};

/**
 * True if a lane's gangs may be admitted on what is kept: they have a higher priority, agree to be taken back, or will
 * have ended before the reservation starts.
 */
export function mayPass(
  { entries, priority }: Pick<Lane, "entries" | "priority">,
  { entry, isFar, startMs }: KeptRoom,
  nowMs: number,
): boolean {
  if (priority > entry.gang.priority) return true;
  const [first] = entries;
  if (first === undefined || !isFar) return false;
  const { backfill, maxRuntimeMs = Number.POSITIVE_INFINITY } = first.gang;
  return backfill === true || (Number.isFinite(startMs) && nowMs + maxRuntimeMs <= startMs);
}

/** Charges what is kept, or takes that off the nodes and the quotas. Every clean-up of the round undoes both. */
export function setLifted({ quota }: Pick<Parts, "quota">, kept: KeptRoom, lifted: boolean): void {
  if (kept.lifted === lifted) return;
  kept.lifted = lifted;
  const times = lifted ? -1 : 1;
  quota.chargeRise(kept.rise, times);
  for (const { slot, fit, pods } of kept.placed) kept.cluster.room.put(fit, slot, times * pods);
}

/** Charges the tokens that a gang holds, or takes them off the quotas. */
export function chargeHolds(parts: Pick<Parts, "quota" | "holdsOf">, { gang, account }: Entry, times: 1 | -1): void {
  const holds = parts.holdsOf(gang.uid) ?? {};
  for (const [pool, amount] of Object.entries(holds)) parts.quota.charge(account, pool, times * amount);
}

/** Decides as if some of what is kept were not. If the decision charges nothing, the use is afterwards as before. */
export function withLifted<T>(parts: Pick<Parts, "quota">, kept: readonly KeptRoom[], decide: () => T): T {
  const lifted = kept.length === 0 ? kept : kept.filter((one) => !one.lifted);
  if (lifted.length === 0) return decide();
  const { quota } = parts;
  const { mark } = quota;
  const rooms = [...new Set(lifted.map(({ cluster }) => cluster.room))].map((room) => ({ room, mark: room.mark }));
  for (const one of lifted) setLifted(parts, one, true);
  const { mark: after } = quota;
  const marks = rooms.map(({ room }) => room.mark);
  const made = decide();
  if (quota.mark > after || rooms.some(({ room }, at) => room.mark !== marks[at])) {
    for (const one of lifted) setLifted(parts, one, false);
    return made;
  }
  quota.undo(mark);
  for (const one of lifted) one.lifted = false;
  for (const { room, mark } of rooms) room.undo(mark);
  return made;
}

/** Names what is lifted, or `all`. Requests that were made beside other reservations have other answers. */
export function liftedKey(kept: readonly KeptRoom[], { all }: { readonly all: boolean } = { all: false }): string {
  let key = "";
  for (const { lifted, entry } of kept) if (all || lifted) key += `\n${entry.gang.uid}`;
  return key;
}

/** The jobs whose reservations a key names. */
export function liftedIn(key: string): readonly string[] {
  return key.split("\n").slice(1);
}

type OfAdmission = Pick<Runner, "uid" | "admission">;

function inheritanceKey({ uid, admission }: OfAdmission): string {
  return `${uid} ${admission.number}`;
}

/**
 * Lets placed pods inherit the places of equal pods, which count as well until their gangs have ended: takes one of
 * each two off its node. Else a node that is full would seem to lack room for as long as a reservation waits.
 */
export function inheritPlaces(
  { room }: Pick<ClusterState, "room">,
  placed: readonly PlacedPods[],
  from: readonly (OfAdmission & { readonly pods: readonly PlacedPod[] })[],
): Pick<KeptRoom, "placed" | "inherited"> {
  const left = placed.map((one) => ({ ...one }));
  const inherited = new Map<string, PlacedPod[]>();
  for (const gang of from) {
    for (const pod of gang.pods) {
      const equal = left.find(
        ({ slot, fit, pods }) => pods > 0 && fit === pod.fit && room.nodeAt(slot)?.name === pod.node,
      );
      if (equal === undefined) continue;
      equal.pods -= 1;
      room.put(equal.fit, equal.slot, -1);
      const known = inherited.get(inheritanceKey(gang)) ?? [];
      inherited.set(inheritanceKey(gang), [...known, pod]);
    }
  }
  return { placed: left.filter(({ pods }) => pods > 0), inherited };
}

/** The pods of a gang whose room is free once it has ended: no reservation inherits their places. */
export function leftPods(
  kept: readonly KeptRoom[],
  gang: OfAdmission,
  pods: readonly PlacedPod[],
): readonly PlacedPod[] {
  let left = pods;
  for (const { inherited, lifted } of kept) {
    if (!lifted && inherited.size > 0) left = without(left, inherited.get(inheritanceKey(gang)) ?? []);
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
