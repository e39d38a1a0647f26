import { firstWhere } from "../../../runtime/first-where.ts";
import { maxOf } from "../../../runtime/lists.ts";
import type { Nomination } from "../../job/preemption.ts";
import { choicesOf } from "../fit/flavor-choices.ts";
import type { Fleet } from "../fit/fleet.ts";
import { fitsEmpty, requestsOf } from "../fit/requests.ts";
import { inheritPlaces } from "../fit/reserved.ts";
import type { PlanQueue } from "../model/snapshot.ts";
import type { AskingGang, FindVictims } from "../preempt/find-victims.ts";
import { isFrozen } from "../preempt/preemptable-gangs.ts";
import type { Round } from "../preempt/round.ts";
import type { CapacityTry, GangClass, GangRecord, ReservedCapacity, RunningAdmission } from "../queues/records.ts";
import { AfterEnds } from "./after-ends.ts";

/** A reservation waits for this many gangs at most, since its record names all of them. */
const AWAITS_MAX = 512;
/** So many gangs at most are each tried whether they are needed. */
const TRIED_MAX = 64;

/** Where a gang is admitted soonest, and the gangs that must have ended before. */
export type Forecast = {
  readonly asking: AskingGang;
  readonly tried: CapacityTry;
  /** Those that end first come first. None of them leaves already. */
  readonly awaits: readonly RunningAdmission[];
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
  readonly tried: CapacityTry;
  readonly borrowsNow: boolean;
  readonly last: RunningAdmission | null;
  readonly best: Forecast | null;
};

/** The gangs that stay, in the order of their ends: all, those of each queue, and the first ones that use a pool. */
type Ends = {
  readonly inOrder: readonly RunningAdmission[];
  readonly inQueue: ReadonlyMap<string, readonly RunningAdmission[]>;
  readonly firstIn: (pool: string) => ReadonlySet<RunningAdmission>;
};

/**
 * Finds out when clusters will have capacity for gangs. The gangs that run end in this order: those that may be taken
 * back at once, those whose maximum run time is known, by their latest end, then the others, the one that was admitted
 * first before the others. It works with the state of use and of capacity as the round has left them.
 */
export class FindReservations {
  readonly #round: Round;
  readonly #fleet: Fleet;
  readonly #nowMs: number;
  readonly #victims: FindVictims;
  /** The order of the ends of some gangs. Null: not known yet. */
  #known: { readonly of: readonly RunningAdmission[]; readonly ends: Ends } | null = null;

  constructor(round: Round) {
    this.#round = round;
    this.#fleet = round.fleet;
    this.#nowMs = round.nowMs;
    this.#victims = round.victims;
  }

  /**
   * Where the first gang of a class is admitted soonest: with all its members, or else with the fewest that it accepts.
   * Null: it would not be admitted even if all other gangs had ended, or only with what others lend.
   */
  find(gangClass: GangClass, gang: GangRecord, isOpen: (asking: AskingGang) => boolean = () => true): Forecast | null {
    const queue = this.#fleet.quota.queues.get(gangClass.gangQueue.name);
    if (queue === undefined || gangClass.shape.ask.service) return null;
    for (const sized of [gangClass.shape.all, gangClass.shape.fewest]) {
      const found = sized === null ? null : this.#findSized({ gangClass, gang, queue, isOpen }, sized);
      if (found !== null) return found;
    }
    return null;
  }

  #findSized(
    of: {
      readonly gangClass: GangClass;
      readonly gang: GangRecord;
      readonly queue: PlanQueue;
      readonly isOpen: (asking: AskingGang) => boolean;
    },
    sized: GangClass["shape"]["all"],
  ): Forecast | null {
    const { gangClass, gang, queue, isOpen } = of;
    const { resources } = this.#fleet;
    let best: Forecast | null = null;
    for (const flavors of choicesOf(gangClass, queue, this.#fleet)) {
      const request = this.#round.requestOf(gangClass, sized, flavors);
      const asking = { gangClass, gang, request, requested: requestsOf(request, resources) };
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
    for (const tried of this.#victims.triesOf(asking)) {
      // None is sooner than one that waits only for gangs that leave.
      if (best?.awaits.length === 0) return best;
      if (!fitsEmpty(tried)) continue;
      const found = this.#forecast(asking, { tried, borrowsNow, last, best }, this.#soonEnough(best));
      best = soonerOf(best, found);
    }
    return best;
  }

  /**
   * The last gang of its queue that must have ended, so that the queue has the quota for a request. Null: it has the
   * quota. `never`: it will not have it, or only after too many others have ended.
   */
  #lastForQuota(asking: AskingGang): RunningAdmission | null | "never" {
    const { quota } = this.#fleet;
    const { inQueue, firstIn } = this.#ends();
    const own = inQueue.get(asking.gangClass.gangQueue.name) ?? [];
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
   * overtaken it, whose end is known. Null: these do not free capacity for it any more.
   */
  keep(asking: AskingGang, tried: CapacityTry, { victims }: Nomination): Forecast | null {
    const { staying } = this.#victims;
    const gangs = new Set(staying.ending());
    for (const { jobUid, admission } of victims) {
      const gang = staying.of(jobUid);
      if (gang?.admission.number === admission) gangs.add(gang);
    }
    const known = [...gangs].sort((a, b) => this.#compareEnds(a, b));
    const borrowsNow = this.#victims.isAllowedWithout(asking, []);
    return this.#forecast(asking, { tried, borrowsNow, last: null, best: null }, known);
  }

  /** Keeps what a forecast names for its gang, for the rest of the round. */
  hold({ asking, tried, awaits, startMs, keepsQuota }: Forecast): ReservedCapacity {
    const { quota } = this.#fleet;
    const { gang: queued, requested } = asking;
    const rise = keepsQuota
      ? quota.riseOf(() => {
          this.#victims.dischargeAll(awaits);
          for (const [pool, amount] of requested) quota.charge(queued.account, pool, amount);
        })
      : [];
    quota.chargeRise(rise, 1);
    const { cluster } = tried;
    const from = awaits.map((gang) => {
      return { uid: gang.uid, admission: gang.admission, pods: this.#victims.podsOf(cluster, gang) };
    });
    const places = inheritPlaces(cluster, this.#victims.occupy(tried, awaits), from);
    const isFar = awaits.some((gang) => !this.mayBeTakenBack(gang));
    const kept = { gang: queued, requested, cluster, ...places, rise, startMs, isFar, excluded: false };
    this.#round.reserved.keep(kept);
    return kept;
  }

  /** Keeps what a round has kept that began with the same state. */
  holdAgain(before: ReservedCapacity): void {
    const kept = { ...before, startMs: Math.max(this.#nowMs, before.startMs), excluded: true };
    this.#round.reserved.keep(kept);
    this.#round.reserved.include(kept);
  }

  /** True if time alone does not change in which order gangs end. */
  lasts(): boolean {
    return !this.#victims.staying.ending().some(({ gang }) => gang.facts.backfill === true);
  }

  /** The gangs are in the order of their ends. */
  #forecast(asking: AskingGang, of: Where, gangs: readonly RunningAdmission[]): Forecast | null {
    const useful = firstUseful(gangs, asking, of.tried);
    const afterLast = of.last === null ? 0 : useful.indexOf(of.last) + 1;
    if (of.last !== null && afterLast === 0) return null;
    const most = this.#mostOfUse(useful, of.best);
    const state = new AfterEnds(this.#round, asking, of.tried);
    const least = Math.max(afterLast, state.leastEnds(useful, most));
    const found = least > most ? null : this.#firstEnds(state, of, { useful, least, most });
    state.close();
    if (found === null) return null;
    const startMs = maxOf(
      found.awaits.map((gang) => this.#endOf(gang)),
      this.#nowMs,
    );
    return { asking, tried: of.tried, startMs, ...found };
  }

  /** The gangs that must have ended, of those whose ends come first. Null: it does not fit without them either. */
  #firstEnds(
    state: AfterEnds,
    { borrowsNow }: Where,
    {
      useful,
      least,
      most,
    }: { readonly useful: readonly RunningAdmission[]; readonly least: number; readonly most: number },
  ): Pick<Forecast, "awaits" | "keepsQuota"> | null {
    // What others lend is not kept for it: it waits until its queue has the quota, unless quota is there already.
    const fits = () => (borrowsNow || state.isWithinQuota()) && state.fits();
    let ended = 0;
    const first = leastPrefix({ least, most }, (count) => {
      for (; ended < count; ended++) state.end(useful[ended] as RunningAdmission);
      for (; ended > count; ended--) state.resume(useful[ended - 1] as RunningAdmission);
      return fits();
    });
    // Without any, it waits for those that leave.
    if (first === null || (first === 0 && !this.#victims.hasLeaving)) return null;
    for (; ended < first; ended++) state.end(useful[ended] as RunningAdmission);
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
  #mostOfUse(useful: readonly RunningAdmission[], best: Forecast | null): number {
    if (best === null) return useful.length;
    const late = useful.findIndex((gang) => this.#endOf(gang) >= best.startMs);
    const sooner = late < 0 ? useful.length : late;
    return Math.min(useful.length, Math.max(sooner, TRIED_MAX, best.awaits.length - 1));
  }

  /** The gangs, in the order of their ends, for which a better forecast than this one may wait. */
  #soonEnough(best: Forecast | null): readonly RunningAdmission[] {
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
      const { lastRound } = this.#round.requeue;
      const known = lastRound.ends.filter((gang) => others.delete(gang));
      // A list that is almost in order is sorted quickly.
      lastRound.ends = [...known, ...others].sort((a, b) => this.#compareEnds(a, b));
      this.#known = { of: all, ends: endsOf(lastRound.ends) };
    }
    return this.#known.ends;
  }

  #compareEnds(a: RunningAdmission, b: RunningAdmission): number {
    return compare(this.#endOf(a), this.#endOf(b)) || compareAdmissions(a, b);
  }

  /** True for a gang that a reservation may take back at once. */
  mayBeTakenBack({ gang, admission }: Pick<RunningAdmission, "gang" | "admission">): boolean {
    const mayGo = gang.facts.backfill === true && !this.#victims.staying.wasAdmitted(gang);
    return mayGo && !isFrozen(this.#fleet, gang, admission);
  }

  #endOf({ gang, admission }: Pick<RunningAdmission, "gang" | "admission">): number {
    if (this.mayBeTakenBack({ gang, admission })) return this.#nowMs;
    return admission.admitTimeMs + (gang.facts.maxRuntimeMs ?? Number.POSITIVE_INFINITY);
  }
}

export function admissionOf({ uid: jobUid, admission }: RunningAdmission): Nomination["victims"][number] {
  return { jobUid, admission: admission.number };
}

/** The difference of two infinite times is none. */
function compare(a: number, b: number): number {
  return a === b ? 0 : a - b;
}

function compareAdmissions(a: RunningAdmission, b: RunningAdmission): number {
  return a.admission.admitTimeMs - b.admission.admitTimeMs || (a.uid < b.uid ? -1 : 1);
}

/** The forecast with the earlier start; of equal ones that with fewer gangs that must have ended, else the first. */
function soonerOf(one: Forecast | null, other: Forecast | null): Forecast | null {
  if (one === null || other === null) return one ?? other;
  const isSooner =
    one.startMs === other.startMs ? other.awaits.length < one.awaits.length : other.startMs < one.startMs;
  return isSooner ? other : one;
}

function endsOf(inOrder: readonly RunningAdmission[]): Ends {
  const first = new Map<string, ReadonlySet<RunningAdmission>>();
  const firstIn = (pool: string) => {
    const known = first.get(pool) ?? new Set(firstOf(inOrder, ({ uses }) => uses.has(pool)));
    first.set(pool, known);
    return known;
  };
  return { inOrder, inQueue: Map.groupBy(inOrder, ({ account }) => account.queue), firstIn };
}

/**
 * The gangs whose end frees capacity for a request in a cluster, or frees quota for it: as many as a record can name.
 */
function firstUseful(
  gangs: readonly RunningAdmission[],
  { requested }: AskingGang,
  { cluster }: CapacityTry,
): readonly RunningAdmission[] {
  const pools = [...requested.keys()];
  return firstOf(gangs, ({ admission, uses }) => {
    return admission.cluster === cluster.name || pools.some((pool) => uses.has(pool));
  });
}

/** The first gangs that pass a test: as many as a record can name. */
function firstOf(
  gangs: readonly RunningAdmission[],
  test: (gang: RunningAdmission) => boolean,
): readonly RunningAdmission[] {
  const found: RunningAdmission[] = [];
  for (const gang of gangs) {
    if (found.length === AWAITS_MAX) break;
    if (test(gang)) found.push(gang);
  }
  return found;
}

/** By how much a queue would be beyond its own quota of each pool with a request. Omits pools that are not limited. */
function beyondQuota(
  quota: Fleet["quota"],
  { gangClass, requested }: AskingGang,
): readonly (readonly [string, number])[] {
  const leaf = quota.branches.leaf(gangClass.gangQueue.name);
  return [...requested].flatMap(([name, amount]) => {
    const pool = leaf?.pools.get(name);
    const isLimited = pool !== undefined && pool.above !== null;
    return isLimited ? [[name, quota.usedIn(pool) + amount - pool.nominal] as const] : [];
  });
}

/** The place of the last of some gangs that must end to free an amount. -1: none. Their number: all are too few. */
function lastToFree(gangs: readonly RunningAdmission[], pool: string, amount: number): number {
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
