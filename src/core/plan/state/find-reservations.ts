import type { Nomination } from "../../job/preemption.ts";
import type { PlanQueue } from "../snapshot.ts";
import { AfterEnds } from "./after-ends.ts";
import { unitsOf } from "./ask-shape.ts";
import { choicesOf } from "./choices.ts";
import { type AskingGang, type FindVictims, isFrozen, type Runner } from "./find-victims.ts";
import type { Entry, Lane } from "./gang-lines.ts";
import { amountsByPool } from "./grow.ts";
import type { KeptRoom } from "./kept-room.ts";
import { fitsEmpty, type RoomTry } from "./requests.ts";
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

/** `borrowsNow`: quotas allow the gang now what it asks for, also if its queue borrows it. */
type Where = { readonly room: RoomTry; readonly borrowsNow: boolean };

/**
 * Finds out when clusters will have room for gangs. The gangs that run end in this order: those that may be taken back
 * at once, those whose maximum run time is known, by their latest end, then the others, the one that was admitted first
 * before the others. It works with the state of use and of room as the round has left them.
 */
export class FindReservations {
  readonly #parts: Parts;
  readonly #nowMs: number;
  readonly #victims: FindVictims;
  /** The gangs that stay in the order of their ends. Null: not known yet. */
  #ordered: { readonly of: readonly Runner[]; readonly gangs: readonly Runner[] } | null = null;

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
      if (isOpen(asking)) best = soonerOf(best, this.#soonest(asking));
    }
    return best;
  }

  /** The cluster in which a request boards soonest. Null: it boards in none. */
  #soonest(asking: AskingGang): Forecast | null {
    const borrowsNow = this.#victims.isAllowedWithout(asking, []);
    if (!borrowsNow && !this.#mayHaveQuota(asking)) return null;
    let best: Forecast | null = null;
    for (const room of this.#victims.roomsOf(asking)) {
      if (fitsEmpty(room)) best = soonerOf(best, this.#forecast(asking, { room, borrowsNow }, this.#inOrder()));
    }
    return best;
  }

  /** False: a gang wants more than the quota of its queue, so that it borrows whoever ends. */
  #mayHaveQuota({ lane, wants }: AskingGang): boolean {
    const leaf = this.#parts.quota.branches.leaf(lane.line.name);
    for (const [name, amount] of wants) {
      const pool = leaf?.pools.get(name);
      if (pool !== undefined && pool.above !== null && amount > pool.nominal) return false;
    }
    return true;
  }

  /**
   * The forecast of a reservation that exists: it waits for no others than it waited for, but for gangs that have
   * passed it, whose end is known. Null: these do not make room for it any more.
   */
  keep(asking: AskingGang, room: RoomTry, { victims }: Nomination): Forecast | null {
    const [jobs, named] = [new Set(victims.map(({ jobUid }) => jobUid)), new Set(victims.map(keyOf))];
    const known = this.#victims
      .staying()
      .filter((gang) => hasEnd(gang) || (jobs.has(gang.uid) && named.has(keyOf(admissionOf(gang)))))
      .sort((a, b) => this.#compareEnds(a, b));
    return this.#forecast(asking, { room, borrowsNow: this.#victims.isAllowedWithout(asking, []) }, known);
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

  /** The gangs are in the order of their ends. */
  #forecast(asking: AskingGang, of: Where, gangs: readonly Runner[]): Forecast | null {
    const { name } = of.room.cluster;
    const pools = [...asking.wants.keys()];
    const useful = gangs.filter(({ admission, uses }) => {
      return admission.cluster === name || pools.some((pool) => uses.has(pool));
    });
    const state = new AfterEnds({ parts: this.#parts, victims: this.#victims }, asking, of.room);
    const found = this.#firstEnds(state, of, useful);
    state.close();
    if (found === null) return null;
    const startMs = Math.max(this.#nowMs, ...found.awaits.map((gang) => this.#endOf(gang)));
    return { asking, room: of.room, startMs, ...found };
  }

  /** The gangs that must have ended, of those whose ends come first. Null: the gang does not fit without them either. */
  #firstEnds(
    state: AfterEnds,
    { borrowsNow }: Where,
    useful: readonly Runner[],
  ): Pick<Forecast, "awaits" | "keepsQuota"> | null {
    // What others lend is not kept for it: it waits until its queue has the quota, unless quota is there already.
    const fits = () => (borrowsNow || state.isWithinQuota()) && state.fits();
    let ended = 0;
    const first = leastPrefix(Math.min(useful.length, AWAITS_MAX), (count) => {
      for (; ended < count; ended++) state.end(useful[ended] as Runner);
      for (; ended > count; ended--) state.resume(useful[ended - 1] as Runner);
      return fits();
    });
    // Without any, it waits for those that leave.
    if (first === null || (first === 0 && !this.#victims.hasLeaving)) return null;
    for (; ended < first; ended++) state.end(useful[ended] as Runner);
    const awaits = new Set(useful.slice(0, first));
    if (first <= TRIED_MAX) {
      // The last one is needed, since without it the others are too few.
      for (const gang of useful.slice(0, Math.max(0, first - 1)).reverse()) {
        state.resume(gang);
        if (fits()) awaits.delete(gang);
        else state.end(gang);
      }
    }
    return { awaits: [...awaits], keepsQuota: state.isWithinQuota() };
  }

  /** All gangs that stay, in the order of their ends. */
  #inOrder(): readonly Runner[] {
    const all = this.#victims.staying();
    if (this.#ordered?.of !== all) {
      this.#ordered = { of: all, gangs: [...all].sort((a, b) => this.#compareEnds(a, b)) };
    }
    return this.#ordered.gangs;
  }

  #compareEnds(a: Runner, b: Runner): number {
    return compare(this.#endOf(a), this.#endOf(b)) || compareRunners(a, b);
  }

  /** True for a gang that a reservation may take back at once. */
  mayBeTakenBack({ entry, admission }: Pick<Runner, "entry" | "admission">): boolean {
    const mayGo = entry.gang.backfill === true && !this.#victims.isBoarding(entry);
    return mayGo && !isFrozen(this.#parts, entry, admission);
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

/** The forecast with the earlier start; of equal ones that with fewer gangs that must have ended, else the first. */
function soonerOf(one: Forecast | null, other: Forecast | null): Forecast | null {
  if (one === null || other === null) return one ?? other;
  const isSooner =
    one.startMs === other.startMs ? other.awaits.length < one.awaits.length : other.startMs < one.startMs;
  return isSooner ? other : one;
}

/**
 * The least count for which something holds that then holds for every larger one. Null: it holds for none. Tries small
 * counts first.
 */
function leastPrefix(most: number, holds: (count: number) => boolean): number | null {
  let [low, high] = [0, 0];
  while (!holds(high)) {
    if (high === most) return null;
    low = high + 1;
    high = Math.min(most, high === 0 ? 1 : 2 * high);
  }
  while (low < high) {
    const middle = (low + high) >> 1;
    if (holds(middle)) high = middle;
    else low = middle + 1;
  }
  return low;
}
