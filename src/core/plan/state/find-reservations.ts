import type { Nomination } from "../../job/preemption.ts";
import type { PlanQueue } from "../snapshot.ts";
import { unitsOf } from "./ask-shape.ts";
import { borrowingLevel } from "./branch-use.ts";
import { choicesOf } from "./choices.ts";
import { type AskingGang, type FindVictims, isFrozen, type Runner } from "./find-victims.ts";
import type { Entry, Lane } from "./gang-lines.ts";
import { amountsByPool } from "./grow.ts";
import type { KeptRoom } from "./kept-room.ts";
import type { RoomTry } from "./requests.ts";
import type { Parts } from "./state-parts.ts";

/** A reservation waits for this many gangs at most, since its record names all of them. */
const AWAITS_MAX = 512;
/** So many gangs at most are each tried whether they are needed. */
const TRIED_MAX = 64;

/** Where a gang boards soonest, and the gangs that must have ended before. */
export type Forecast = {
  readonly asking: AskingGang;
  readonly room: RoomTry;
  /** Those that end first come first. None of them leaves already. */
  readonly awaits: readonly Runner[];
  /** When they have ended at the latest. Infinite: nobody knows. */
  readonly startMs: number;
  /** True: what they use of quotas is kept for the gang. */
  readonly keepsQuota: boolean;
};

/**
 * Finds out when clusters will have room for gangs. The gangs that run end in this order: those that may be taken back
 * at once, those whose maximum run time is known, by their latest end, then the others, the one that was admitted first
 * before the others. It works with the state of use and of room as the round has left them.
 */
export class FindReservations {
  readonly #parts: Parts;
  readonly #nowMs: number;
  readonly #victims: FindVictims;

  constructor(parts: Parts, nowMs: number, victims: FindVictims) {
    this.#parts = parts;
    this.#nowMs = nowMs;
    this.#victims = victims;
  }

  /**
   * Where the first gang of a lane boards soonest: with all its members, or else with the fewest that it accepts. Null:
   * it would not board even if all other gangs had ended, or only with what others lend.
   */
  find(lane: Lane, entry: Entry, isOpen: (asking: AskingGang) => boolean = () => true): Forecast | null {
    const queue = this.#parts.quota.queues.get(lane.line.name);
    if (queue === undefined || lane.shape.ask.service) return null;
    for (const sized of [lane.shape.all, lane.shape.fewest]) {
      const found = sized === null ? null : this.#findSized({ lane, entry, queue, isOpen }, sized);
      if (found !== null) return found;
    }
    return null;
  }

  #findSized(
    of: {
      readonly lane: Lane;
      readonly entry: Entry;
      readonly queue: PlanQueue;
      readonly isOpen: (asking: AskingGang) => boolean;
    },
    sized: Lane["shape"]["all"],
  ): Forecast | null {
    const { lane, entry, queue, isOpen } = of;
    const { resources, excludes } = this.#parts;
    let best: Forecast | null = null;
    for (const flavors of choicesOf(lane, queue, { resources, excludes })) {
      const request = this.#parts.requestOf(lane, sized, flavors);
      const asking = { lane, entry, request, wants: amountsByPool(unitsOf(sized, resources), request.choice) };
      if (!isOpen(asking)) continue;
      for (const room of this.#victims.roomsOf(asking)) {
        const found = this.#forecast(asking, room, this.#victims.staying());
        if (found !== null && (best === null || isSooner(found, best))) best = found;
      }
    }
    return best;
  }

  /**
   * The forecast of a reservation that exists: it waits for no others than it waited for, but for gangs that have
   * passed it, whose end is known. Null: these do not make room for it any more.
   */
  keep(asking: AskingGang, room: RoomTry, { victims }: Nomination): Forecast | null {
    const named = new Set(victims.map(keyOf));
    const known = this.#victims.staying().filter((gang) => named.has(keyOf(admissionOf(gang))) || hasEnd(gang));
    return this.#forecast(asking, room, known);
  }

  /** Keeps what a forecast names for its gang, for the rest of the round. */
  hold({ asking, room, awaits, startMs, keepsQuota }: Forecast): KeptRoom {
    const { quota } = this.#parts;
    const { entry, wants } = asking;
    const rise = keepsQuota
      ? quota.riseOf(() => {
          this.#victims.dischargeAll(awaits);
          for (const [pool, amount] of wants) quota.charge(entry.account, pool, amount);
        })
      : [];
    quota.chargeRise(rise, 1);
    const placed = this.#victims.occupy(room, awaits);
    const isFar = awaits.some((gang) => !this.mayBeTakenBack(gang));
    const kept = { entry, wants, cluster: room.cluster, placed, rise, startMs, isFar, lifted: false };
    this.#parts.kept.push(kept);
    return kept;
  }

  #forecast(asking: AskingGang, room: RoomTry, gangs: readonly Runner[]): Forecast | null {
    const { name } = room.cluster;
    const useful = gangs.filter(({ admission, uses }) => {
      return admission.cluster === name || [...asking.wants.keys()].some((pool) => uses.has(pool));
    });
    const inOrder = useful.sort((a, b) => compare(this.#endOf(a), this.#endOf(b)) || compareRunners(a, b));
    const borrowsNow = this.#victims.isAllowedWithout(asking, []);
    // What others lend is not kept for it: it waits until its queue has the quota, unless quota is there already.
    const fits = (gone: readonly Runner[]) => {
      return this.#fits(asking, room, gone) && (borrowsNow || this.#levelOf(asking, gone) === 0);
    };
    const first = leastPrefix(inOrder.length, (count) => fits(inOrder.slice(0, count)));
    if (first === null || first > AWAITS_MAX) return null;
    // Without any, it waits for those that leave.
    if (first === 0 && !this.#victims.hasLeaving) return null;
    let awaits: readonly Runner[] = inOrder.slice(0, first);
    if (first <= TRIED_MAX) {
      // The last one is needed, since without it the others are too few.
      for (const gang of awaits.slice(0, -1).reverse()) {
        const others = awaits.filter((one) => one !== gang);
        if (fits(others)) awaits = others;
      }
    }
    const startMs = Math.max(this.#nowMs, ...awaits.map((gang) => this.#endOf(gang)));
    return { asking, room, awaits, startMs, keepsQuota: this.#levelOf(asking, awaits) === 0 };
  }

  /** True for a gang that a reservation may take back at once. */
  mayBeTakenBack({ entry, admission }: Pick<Runner, "entry" | "admission">): boolean {
    const mayGo = entry.gang.backfill === true && !this.#victims.isBoarding(entry);
    return mayGo && !isFrozen(this.#parts, entry, admission);
  }

  #fits(asking: AskingGang, room: RoomTry, gone: readonly Runner[]): boolean {
    return this.#victims.isAllowedWithout(asking, gone) && this.#victims.fitsIn(room, gone);
  }

  /** How far a gang borrows once others are gone. 0: its queue has the room. */
  #levelOf({ lane, wants }: AskingGang, gone: readonly Runner[]): number {
    const { quota } = this.#parts;
    const leaf = quota.branches.leaf(lane.line.name);
    if (leaf === null) return 0;
    const { mark } = quota;
    this.#victims.dischargeAll(gone);
    const level = borrowingLevel(quota, leaf, wants);
    quota.undo(mark);
    return level;
  }

  #endOf({ entry, admission }: Pick<Runner, "entry" | "admission">): number {
    if (this.mayBeTakenBack({ entry, admission })) return this.#nowMs;
    return admission.admitTimeMs + (entry.gang.maxRuntimeMs ?? Number.POSITIVE_INFINITY);
  }
}

function hasEnd({ entry: { gang } }: Runner): boolean {
  return gang.backfill === true || gang.maxRuntimeMs !== undefined;
}

export function admissionOf({ uid: jobUid, admission }: Runner): Nomination["victims"][number] {
  return { jobUid, admission: admission.number };
}

export function keyOf({ jobUid, admission }: Nomination["victims"][number]): string {
  return `${jobUid} ${admission}`;
}

/** The difference of two infinite times is none. */
function compare(a: number, b: number): number {
  return a === b ? 0 : a - b;
}

function compareRunners(a: Runner, b: Runner): number {
  return a.admission.admitTimeMs - b.admission.admitTimeMs || (a.uid < b.uid ? -1 : 1);
}

/** Compares by the start, then by the number of gangs that must have ended. */
function isSooner(one: Forecast, other: Forecast): boolean {
  if (one.startMs !== other.startMs) return one.startMs < other.startMs;
  return one.awaits.length < other.awaits.length;
}

/** The least count for which something holds that then holds for every larger one. Null: it holds for none. */
function leastPrefix(most: number, holds: (count: number) => boolean): number | null {
  if (!holds(most)) return null;
  let [low, high] = [0, most];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (holds(middle)) high = middle;
    else low = middle + 1;
  }
  return low;
}
