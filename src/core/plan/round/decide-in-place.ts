import type { DecideClass } from "../assign/assign-class.ts";
import type { Assignment, OvertakenNominees } from "../assign/assignment.ts";
import type { DecideBackfill } from "../assign/backfill.ts";
import type { ClusterState } from "../capacity/cluster-state.ts";
import { choicesOf } from "../fit/flavor-choices.ts";
import { type Flavors, flavorsKey } from "../fit/flavors.ts";
import type { Fleet } from "../fit/fleet.ts";
import { largestPart } from "../fit/part-of-gang.ts";
import { mayTakePlace, type Reserved } from "../fit/reserved.ts";
import type { PlannedAdmission } from "../model/plan-types.ts";
import { asOvertaken, type OvertakenGang, type PlannedPreemption } from "../model/preemption.ts";
import type { FindVictims, Search } from "../preempt/find-victims.ts";
import type { Round } from "../preempt/round.ts";
import type { SizedAsk } from "../queues/ask-shape.ts";
import { requeue } from "../queues/class-state.ts";
import { ownClass } from "../queues/gang-class.ts";
import type { GangClass, GangRecord, ReservedCapacity } from "../queues/records.ts";
import { namedTry } from "../reservations/decide-reservation.ts";
import type { PoolAmounts } from "../usage/branch-use.ts";
import { victimsLeft } from "./nominees.ts";

type By = { readonly backfill: DecideBackfill; readonly decide: DecideClass };

/**
 * Decides about gang classes whose gangs may stand before nominees of their queue. While nothing of a nominee runs,
 * what it holds passes to a gang that comes before it and needs it.
 */
export class DecideInPlace {
  readonly #round: Round;
  readonly #fleet: Fleet;
  readonly #reserved: Reserved;
  readonly #backfill: DecideBackfill;
  readonly #decide: DecideClass;
  readonly #victims: FindVictims;
  readonly #nowMs: number;

  constructor(round: Round, { backfill, decide }: By) {
    this.#round = round;
    this.#fleet = round.fleet;
    this.#reserved = round.reserved;
    this.#backfill = backfill;
    this.#decide = decide;
    this.#victims = round.victims;
    this.#nowMs = round.nowMs;
  }

  /** Finds what the first gang of a class would get now, also in the places of nominees. Null: it is refused. */
  assign(gangClass: GangClass, gang: GangRecord, search: Search): Assignment | null {
    const found = this.#backfill.assign(gangClass, gang, search);
    const inPlace = found?.kind === "fits" ? null : this.#inPlace({ gangClass, gang, search }, found);
    if (inPlace !== null) requeue(gangClass, "mayFit");
    return inPlace ?? found;
  }

  /**
   * What a gang gets in the places of as few nominees as possible, the last ones of its queue. No running gang is
   * preempted for it if a nominee can. If there is capacity for all once those are gone that leave, it takes what is
   * free now. Null: it gets no more than `found`.
   */
  #inPlace(asking: SearchingGang, found: Assignment | null): Assignment | null {
    const { gangClass } = asking;
    const contested = this.#reserved.contested.filter((kept) => mayTakePlace(gangClass, kept, this.#nowMs));
    if (contested.length === 0) return null;
    const end = !this.#backfill.withoutOvertaken(gangClass, () => this.#fitsOnceGone(gangClass));
    for (let from = contested.length - 1; from >= 0; from--) {
      const nominees = contested.slice(from);
      const tried = this.#backfill.withoutOvertaken(gangClass, () => this.#tryWithout(asking, nominees), nominees);
      if (tried === null || (tried.kind !== "fits" && !end)) continue;
      if (tried.kind !== "preempts" || found === null) return { ...tried, overtakes: { nominees, end } };
    }
    return null;
  }

  /** The assignment of a class's first gang while these nominees keep nothing: now, or in the place of one of them. */
  #tryWithout({ gangClass, gang, search }: SearchingGang, nominees: readonly ReservedCapacity[]): Assignment | null {
    const tried = this.#decide.tryNow(gangClass, gang, search);
    if (tried?.kind === "fits") return tried;
    const offered = this.#offered(gangClass);
    for (const { cluster, gang } of nominees) {
      const named = this.#decide.flavorsIn(gangClass, gang.facts.nomination?.flavors ?? {});
      const flavors = offered.find((choice) => flavorsKey(choice) === flavorsKey(named));
      const awaits = flavors === undefined ? null : this.#awaits(gangClass, flavors, cluster);
      if (awaits !== null) return awaits;
    }
    return tried;
  }

  /** True if the first gang of a class fits once all are gone that leave. */
  #fitsOnceGone(gangClass: GangClass): boolean {
    return this.#offered(gangClass).some((flavors) => this.#awaits(gangClass, flavors) !== null);
  }

  #offered(gangClass: GangClass): readonly Flavors[] {
    const queue = this.#fleet.quota.queues.get(gangClass.gangQueue.name);
    return queue === undefined ? [] : choicesOf(gangClass, queue, this.#fleet);
  }

  /** What a gang gets with these flavors once all are gone that leave, in one cluster or in any. */
  #awaits(gangClass: GangClass, flavors: Flavors, only?: ClusterState): Assignment | null {
    const { all, fewest } = gangClass.shape;
    const tryMembers = (sized: SizedAsk): Assignment | null => {
      const request = this.#round.requestOf(gangClass, sized, flavors);
      const requested = this.#decide.requestsOf(request);
      if (!this.#victims.isAllowedWithout({ gangClass, requested }, [])) return null;
      const tries = this.#victims.triesOf({ gangClass, request });
      const tried = tries.find((one) => (only ?? one.cluster) === one.cluster && this.#victims.fitsIn(one, []));
      return tried === undefined ? null : { kind: "awaits", request, requested, victims: null, tried };
    };
    const whole = tryMembers(all);
    const least = whole === null && fewest !== null ? tryMembers(fewest) : null;
    return least === null ? whole : largestPart(gangClass.shape, least, tryMembers);
  }

  /** Admits or nominates the first gang of a class with what it was assigned. Null: it no longer fits. */
  take(gangClass: GangClass, gang: GangRecord, assignment: Assignment): PlannedAdmission | PlannedPreemption | null {
    const { overtakes } = assignment;
    return overtakes === undefined
      ? this.#backfill.take(gangClass, gang, assignment)
      : this.#takePlace({ gangClass, gang, assignment }, overtakes);
  }

  /**
   * What the nominees hold that a gang overtakes is for it. If their nominations end, so is what their victims leave.
   */
  #takePlace(asking: Asking, { nominees, end }: OvertakenNominees): PlannedPreemption | null {
    const { gangClass, assignment } = asking;
    const { contested } = this.#reserved;
    if (!nominees.every((kept) => contested.includes(kept))) return null;
    for (const kept of nominees) this.#reserved.exclude(kept);
    const holders = this.#backfill.holdersInTheWay(gangClass, assignment.requested);
    const found = this.#backfill.withoutOvertaken(gangClass, () => this.#place(asking));
    const isBeside = found === null || (!end && this.#fitBeside(nominees));
    for (const kept of nominees) if (isBeside) this.#reserved.include(kept);
    if (found === null) return null;
    if (isBeside) return { ...found, takesOver: [...holders, ...nominees.map((kept) => kept.gang)].map(asOvertaken) };
    for (const kept of nominees) {
      this.#reserved.endContest(kept);
      this.#chargeLeft(kept, assignment.requested);
    }
    const ended = nominees.map((kept) => this.#victims.inTree(this.#asEnded(kept, assignment.kind === "fits")));
    return { ...found, takesOver: [...holders.map(asOvertaken), ...ended] };
  }

  /** True if nominees that keep nothing have capacity where they were nominated once all are gone that leave. */
  #fitBeside(nominees: readonly ReservedCapacity[]): boolean {
    const fits = nominees.filter((kept) => {
      const gangClass = ownClass(kept.gang);
      const tried = namedTry(this.#round, gangClass, kept.gang.facts);
      const isFitting = tried !== null && this.#victims.stillFits({ ...kept, gangClass }, { tried, victims: [] });
      if (isFitting) this.#reserved.include(kept);
      return isFitting;
    });
    for (const kept of fits) this.#reserved.exclude(kept);
    return fits.length === nominees.length;
  }

  #place({ gangClass, gang, assignment }: Asking): PlannedPreemption | null {
    if (assignment.kind === "preempts") {
      const outcome = this.#decide.preempt(gangClass, gang, assignment);
      return typeof outcome === "string" ? null : outcome;
    }
    const isAwaiting = assignment.kind === "awaits";
    const planned = isAwaiting
      ? this.#await(gangClass, gang, assignment)
      : this.#decide.take(gangClass, gang, assignment);
    return planned === null ? null : { planned, victims: [] };
  }

  /** Lets a gang wait in the capacity that it was assigned for those that leave it. Null: it no longer fits. */
  #await(gangClass: GangClass, gang: GangRecord, assignment: Assignment): PlannedAdmission | null {
    const { request, requested, tried } = assignment;
    if (request === null || tried === undefined) return null;
    if (!this.#victims.stillFits({ gangClass, requested }, { tried, victims: [] })) return null;
    this.#victims.charge(gang, requested);
    this.#victims.occupy(tried);
    return this.#decide.plannedIn(gang, request, tried);
  }

  /** What a nominee holds and nobody takes over stays in use until it is released. */
  #chargeLeft({ gang }: ReservedCapacity, taken: PoolAmounts): void {
    for (const [pool, held] of Object.entries(this.#fleet.holdsOf(gang.facts.uid) ?? {})) {
      this.#fleet.quota.charge(gang.account, pool, Math.max(0, held - (taken.get(pool) ?? 0)));
    }
  }

  /**
   * A nominee that is none any more, and its victims, for which the gang waits that overtakes it unless it fits now.
   */
  #asEnded({ gang, cluster }: ReservedCapacity, fits: boolean): OvertakenGang {
    return { ...asOvertaken(gang), victims: fits ? [] : victimsLeft(this.#fleet, gang.facts, cluster) };
  }
}

type SearchingGang = { readonly gangClass: GangClass; readonly gang: GangRecord; readonly search: Search };

type Asking = { readonly gangClass: GangClass; readonly gang: GangRecord; readonly assignment: Assignment };
