/** Says why a job waits: the cause that the planner has recorded, with the numbers of this moment. */
import { setImmediate } from "node:timers/promises";
import type { KeptRefusal } from "../core/plan/kept-refusal.ts";
import type { PlanGang } from "../core/plan/plan-gang.ts";
import type { Refusal } from "../core/plan/plan-types.ts";
import { changed, withHead } from "../core/plan/refuse.ts";
import { besideNominees, nomineesOf } from "../core/plan/state/booked.ts";
import type { Reservation } from "../core/plan/state/quota-state.ts";
import { RefusalWords } from "../core/plan/state/refusal-words.ts";
import type { AmountInLine } from "../core/plan/state/refused.ts";
import type { FleetNow, FollowedFleet } from "./followed-fleet.ts";
import type { ExplainStore } from "./ports.ts";

/** Why a job waits, and the time of the numbers. */
export type Explanation = { readonly refusal: Refusal; readonly atMs: number };

/** Null: the planner has not looked at the job yet, the job does not wait any more, or the caller has left. */
export type Explainer = (jobUid: string, signal: AbortSignal) => Promise<Explanation | null>;

/** Everything that an answer needs beside the fleet, which is read after it: no cause is newer than the numbers. */
type Asked = {
  readonly refusal: KeptRefusal;
  readonly head: KeptRefusal | null;
  readonly gangs: ReadonlyMap<string, PlanGang>;
  readonly reserved: Reservation | null;
};

export function createExplainer({ store, fleet }: { store: ExplainStore; fleet: FollowedFleet }): Explainer {
  return async (jobUid, signal) => {
    const kept = await store.refusalOf(jobUid);
    if (kept === null) return null;
    const { refusal, head, atMs } = kept;
    // A program of the version before has kept it with the numbers of its moment.
    if (refusal.cause === undefined) return { refusal: head === null ? refusal : withHead(refusal, head), atMs };
    const asked = await readAsked(store, { refusal, head });
    if (asked.gangs.get(jobUid)?.waits !== true) return null;
    return fleet.read(async (now) => {
      await syncRooms(now, asked);
      return { refusal: say(asked, now), atMs: now.nowMs };
    }, signal);
  };
}

/**
 * Brings the room of the clusters that are named, or that nominees wait for, up to date. Others have their turn between
 * two clusters.
 */
async function syncRooms({ state }: FleetNow, { refusal, head }: Asked): Promise<void> {
  const named = [refusal.cause, head?.cause].flatMap((cause) => {
    return cause?.kind === "lacks" ? cause.refusal.clusters.all.map(({ cluster }) => cluster) : [];
  });
  const kept = nomineesOf(state.parts).flatMap(({ gang }) => gang.nomination?.cluster ?? []);
  for (const name of new Set([...named, ...kept])) {
    state.parts.syncRoom(name);
    await setImmediate();
  }
}

async function readAsked(store: ExplainStore, { refusal, head }: Pick<Asked, "refusal" | "head">): Promise<Asked> {
  const line = isReserved(refusal) || isReserved(head) ? await store.gangInLine() : null;
  const uids = [refusal.jobUid, refusal.head, head?.jobUid, line?.jobUid].filter((uid) => uid !== undefined);
  const gangs = new Map((await store.gangsNow([...new Set(uids)])).map((gang) => [gang.uid, gang]));
  const first = gangs.get(line?.jobUid ?? "");
  return { refusal, head, gangs, reserved: line === null || !first?.waits ? null : reservationOf(first, line.inLine) };
}

/** True if a pool keeps room for another gang. */
function isReserved(refusal: KeptRefusal | null): boolean {
  const cause = refusal?.cause;
  return cause?.kind === "lacks" && cause.refusal.quotas.some(({ reason }) => reason === "Reserved");
}

function reservationOf({ uid, namespace, name, priority }: PlanGang, inLine: readonly AmountInLine[]): Reservation {
  const amounts = new Map(inLine.map(({ pool, amount }) => [pool, amount]));
  return { jobUid: uid, holder: `${namespace}/${name}`, priority, amounts };
}

function say({ refusal, head, gangs, reserved }: Asked, { state, callers, nowMs }: FleetNow): Refusal {
  const { parts } = state;
  parts.quota.reserved = reserved;
  const words = new RefusalWords(parts, { callers, admissions: [] });
  const sayOf = (kept: KeptRefusal): Refusal => {
    const gang = gangs.get(kept.jobUid);
    return gang === undefined || kept.cause === undefined ? kept : words.refusalOf(gang, kept.cause);
  };
  // The planner says its words beside what it keeps for nominees, too.
  return besideNominees(parts, nowMs, () => {
    const own = sayOf(refusal);
    parts.quota.reserved = null;
    if (refusal.cause?.kind !== "behindHead") return own;
    if (gangs.get(refusal.cause.head.uid)?.waits !== true) return changed(own);
    return head === null ? own : withHead(own, sayOf(head));
  });
}
