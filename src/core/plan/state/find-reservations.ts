import { firstWhere } from "../../../runtime/first-where.ts";
import { maxOf } from "../../../runtime/lists.ts";
import type { Nomination } from "../../job/preemption.ts";
import type { PlanQueue } from "../snapshot.ts";
import { AfterEnds } from "./after-ends.ts";
import { choicesOf } from "./choices.ts";
import type { AskingGang, FindVictims } from "./find-victims.ts";
import type { Entry, Lane } from "./gang-lines.ts";
import { inheritPlaces, type KeptRoom, setLifted } from "./kept-room.ts";
import { fitsEmpty, type RoomTry, wantsOf } from "./requests.ts";
import type { Runner } from "./runners.ts";
import type { Parts } from "./state-parts.ts";
import { isFrozen } from "./who-gives-way.ts";

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
 * `borrowsNow`: quotas allow the gang now what it asks for, also if its queue borrows it. `last`: a gang that must have
 * ended; null if none is known. `best`: only a better forecast than this one is of use; null: any is.
 */
type Where = {
  readonly room: RoomTry;
  readonly borrowsNow: boolean;
  readonly last: Runner | null;
  readonly best: Forecast | null;
};

/** The gangs that stay, in the order of their ends: all, those of each queue, and the first ones that use a pool. */
type Ends = {
  readonly inOrder: readonly Runner[];
  readonly inQueue: ReadonlyMap<string, readonly Runner[]>;
  readonly firstIn: (pool: string) => ReadonlySet<Runner>;
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
  /** The order of the ends of some gangs. Null: not known yet. */
  #known: { readonly of: readonly Runner[]; readonly ends: Ends } | null = null;

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
      const asking = { lane, entry, request, wants: wantsOf(request, resources) };
      if (isOpen(asking)) best = this.#soonest(asking, best);
    }
    return best;
  }

  /** The best forecast for a request, if it is sooner than one that is known; else that one. */
  #soonest(asking: AskingGang, known: Forecast | null): Forecast | null {
    const borrowsNow = this.#victims.isAllowedWithout(asking, []);
    const last = borrowsNow ? null : this.#lastForQuota(asking);
    if (last === "never") return known;
    let best = known;
    for (const room of this.#victims.roomsOf(asking)) {
      // None is sooner than one that waits only for gangs that leave.
      if (best?.awaits.length === 0) return best;
      if (!fitsEmpty(room)) continue;
      const found = this.#forecast(asking, { room, borrowsNow, last, best }, this.#soonEnough(best));
      best = soonerOf(best, found);
    }
    return best;
  }

  /**
   * The last gang of its queue that must have ended, so that the queue has the quota for a request. Null: it has the
   * quota. `never`: it will not have it, or only after too many others have ended.
   */
  #lastForQuota(asking: AskingGang): Runner | null | "never" {
    const { quota } = this.#parts;
    const { inQueue, firstIn } = this.#ends();
    const own = inQueue.get(asking.lane.line.name) ?? [];
    const { mark } = quota;
    this.#victims.dischargeAll([]);
    const beyond = beyondQuota(quota, asking);
    quota.undo(mark);
    let last = -1;
    for (const [pool, amount] of beyond) {
      const at = lastToFree(own, pool, amount);
      const gang = own[at];
      if (at >= 0 && (gang === undefined || !firstIn(pool).has(gang))) return "never";
      last = Math.max(last, at);
    }
    return own[last] ?? null;
  }

  /**
   * The forecast of a reservation that exists: it waits for no others than it waited for, but for gangs that have
   * passed it, whose end is known. Null: these do not make room for it any more.
   */
  keep(asking: AskingGang, room: RoomTry, { victims }: Nomination): Forecast | null {
    const { staying } = this.#victims;
    const gangs = new Set(staying.ending());
    for (const { jobUid, admission } of victims) {
      const gang = staying.of(jobUid);
      if (gang?.admission.number === admission) gangs.add(gang);
    }
    const known = [...gangs].sort((a, b) => this.#compareEnds(a, b));
    const borrowsNow = this.#victims.isAllowedWithout(asking, []);
    return this.#forecast(asking, { room, borrowsNow, last: null, best: null }, known);
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
    const { cluster } = room;
    const from = awaits.map((gang) => {
      return { uid: gang.uid, admission: gang.admission, pods: this.#victims.podsOf(cluster, gang) };
    });
    const places = inheritPlaces(cluster, this.#victims.occupy(room, awaits), from);
    const isFar = awaits.some((gang) => !this.mayBeTakenBack(gang));
    const kept = { entry, wants, cluster, ...places, rise, startMs, isFar, lifted: false };
    this.#parts.kept.push(kept);
    return kept;
  }

  /** Keeps what a round has kept that began with the same state. */
  holdAgain(before: KeptRoom): void {
    const kept = { ...before, startMs: Math.max(this.#nowMs, before.startMs), lifted: true };
    this.#parts.kept.push(kept);
    setLifted(this.#parts, kept, false);
  }

  /** True if time alone does not change in which order gangs end. */
  lasts(): boolean {
    return !this.#victims.staying.ending().some(({ entry }) => entry.gang.backfill === true);
  }

  /** The gangs are in the order of their ends. */
  #forecast(asking: AskingGang, of: Where, gangs: readonly Runner[]): Forecast | null {
    const useful = firstUseful(gangs, asking, of.room);
    const afterLast = of.last === null ? 0 : useful.indexOf(of.last) + 1;
    if (of.last !== null && afterLast === 0) return null;
    const most = this.#mostOfUse(useful, of.best);
    const state = new AfterEnds({ parts: this.#parts, victims: this.#victims }, asking, of.room);
    const least = Math.max(afterLast, state.leastEnds(useful, most));
    const found = least > most ? null : this.#firstEnds(state, of, { useful, least, most });
    state.close();
    if (found === null) return null;
    const startMs = maxOf(
      found.awaits.map((gang) => this.#endOf(gang)),
      this.#nowMs,
    );
    return { asking, room: of.room, startMs, ...found };
  }

  /** The gangs that must have ended, of those whose ends come first. Null: it does not fit without them either. */
  #firstEnds(
    state: AfterEnds,
    { borrowsNow }: Where,
    { useful, least, most }: { readonly useful: readonly Runner[]; readonly least: number; readonly most: number },
  ): Pick<Forecast, "awaits" | "keepsQuota"> | null {
    // What others lend is not kept for it: it waits until its queue has the quota, unless quota is there already.
    const fits = () => (borrowsNow || state.isWithinQuota()) && state.fits();
    let ended = 0;
    const first = leastPrefix({ least, most }, (count) => {
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

  /**
   * For so many first gangs at most a better forecast waits: it starts sooner, or it starts at the same time and waits
   * for fewer. Of more than `TRIED_MAX` it waits for all.
   */
  #mostOfUse(useful: readonly Runner[], best: Forecast | null): number {
    if (best === null) return useful.length;
    const late = useful.findIndex((gang) => this.#endOf(gang) >= best.startMs);
    const sooner = late < 0 ? useful.length : late;
    return Math.min(useful.length, Math.max(sooner, TRIED_MAX, best.awaits.length - 1));
  }

  /** The gangs, in the order of their ends, for which a better forecast than this one may wait. */
  #soonEnough(best: Forecast | null): readonly Runner[] {
    const { inOrder } = this.#ends();
    // No forecast waits for fewer, so that a better one waits only for gangs that end sooner.
    if (best?.awaits.length !== 1) return inOrder;
    const end = inOrder.findIndex((gang) => this.#endOf(gang) >= best.startMs);
    return end < 0 ? inOrder : inOrder.slice(0, end);
  }

  /** The gangs that stay, in the order of their ends. */
  #ends(): Ends {
    const all = this.#victims.staying.all();
    if (this.#known?.of !== all) {
      const others = new Set(all);
      const known = this.#parts.lastEnds.filter((gang) => others.delete(gang));
      // A list that is almost in order is sorted quickly.
      this.#parts.lastEnds = [...known, ...others].sort((a, b) => this.#compareEnds(a, b));
      this.#known = { of: all, ends: endsOf(this.#parts.lastEnds) };
    }
    return this.#known.ends;
  }

  #compareEnds(a: Runner, b: Runner): number {
    return compare(this.#endOf(a), this.#endOf(b)) || compareRunners(a, b);
  }

  /** True for a gang that a reservation may take back at once. */
  mayBeTakenBack({ entry, admission }: Pick<Runner, "entry" | "admission">): boolean {
    const mayGo = entry.gang.backfill === true && !this.#victims.staying.isBoarding(entry);
    return mayGo && !isFrozen(this.#parts, entry, admission);
  }

  #endOf({ entry, admission }: Pick<Runner, "entry" | "admission">): number {
    if (this.mayBeTakenBack({ entry, admission })) return this.#nowMs;
    return admission.admitTimeMs + (entry.gang.maxRuntimeMs ?? Number.POSITIVE_INFINITY);
  }
}

export function admissionOf({ uid: jobUid, admission }: Runner): Nomination["victims"][number] {
  return { jobUid, admission: admission.number };
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

function endsOf(inOrder: readonly Runner[]): Ends {
  const first = new Map<string, ReadonlySet<Runner>>();
  const firstIn = (pool: string) => {
    const known = first.get(pool) ?? new Set(firstOf(inOrder, ({ uses }) => uses.has(pool)));
    first.set(pool, known);
    return known;
  };
  return { inOrder, inQueue: Map.groupBy(inOrder, ({ account }) => account.queue), firstIn };
}

/** The gangs whose end makes room for a request in a cluster, or frees quota for it: as many as a record can name. */
function firstUseful(gangs: readonly Runner[], { wants }: AskingGang, { cluster }: RoomTry): readonly Runner[] {
  const pools = [...wants.keys()];
  return firstOf(gangs, ({ admission, uses }) => {
    return admission.cluster === cluster.name || pools.some((pool) => uses.has(pool));
  });
}

/** The first gangs that pass a test: as many as a record can name. */
function firstOf(gangs: readonly Runner[], test: (gang: Runner) => boolean): readonly Runner[] {
  const found: Runner[] = [];
  for (const gang of gangs) {
    if (found.length === AWAITS_MAX) break;
    if (test(gang)) found.push(gang);
  }
  return found;
}

/** By how much a queue would be beyond its own quota of each pool with a request. Omits pools that are not limited. */
function beyondQuota(quota: Parts["quota"], { lane, wants }: AskingGang): readonly (readonly [string, number])[] {
  const leaf = quota.branches.leaf(lane.line.name);
  return [...wants].flatMap(([name, amount]) => {
    const pool = leaf?.pools.get(name);
    const isLimited = pool !== undefined && pool.above !== null;
    return isLimited ? [[name, quota.usedIn(pool) + amount - pool.nominal] as const] : [];
  });
}

/** The place of the last of some gangs that must end to free an amount. -1: none. Their number: all are too few. */
function lastToFree(gangs: readonly Runner[], pool: string, amount: number): number {
  let left = amount;
  if (left <= 0) return -1;
  const at = gangs.findIndex(({ uses }) => {
    left -= uses.get(pool) ?? 0;
    return left <= 0;
  });
  return at < 0 ? gangs.length : at;
}

/**
 * The first count from the least on for which something holds that then holds for every larger one. Null: it holds for
 * none. Tries small counts first.
 */
function leastPrefix(
  { least, most }: { readonly least: number; readonly most: number },
  holds: (count: number) => boolean,
): number | null {
  let [low, high] = [least, least];
  for (let step = 1; !holds(high); step *= 2) {
    if (high === most) return null;
    low = high + 1;
    high = Math.min(most, low + step - 1);
  }
  return firstWhere(low, high, holds);
}
