/**
 * Decides about the first gang of a class: finds what it could get, with all its members or else with as many as
 * possible, and admits it with that. Or lets the gang class wait for everything that can end its refusal.
 */

import { FindCapacity, type Placed } from "../fit/find-capacity.ts";
import { type FlavorChoices, flavorChoices } from "../fit/flavor-choices.ts";
import { type Flavors, flavorsIn } from "../fit/flavors.ts";
import type { Fleet } from "../fit/fleet.ts";
import { largestPart, partWith } from "../fit/part-of-gang.ts";
import { requestsOf } from "../fit/requests.ts";
import { keyWithout } from "../fit/reserved.ts";
import type { FlavorChoice } from "../model/flavors.ts";
import type { MemberCounts } from "../model/gang.ts";
import type { PlaceInLine, PlannedAdmission } from "../model/plan-types.ts";
import type { PlannedPreemption } from "../model/preemption.ts";
import type { PlanQueue } from "../model/snapshot.ts";
import type { FindVictims, Search, VictimsAnswer } from "../preempt/find-victims.ts";
import type { Round } from "../preempt/round.ts";
import type { SizedAsk } from "../queues/ask-shape.ts";
import { leaveLists, noteClosedBy, refuse } from "../queues/class-state.ts";
import type { CapacityTry, GangClass, GangRecord, Request, ReservedCapacity } from "../queues/records.ts";
import type { ClassRefusal } from "../queues/refusals.ts";
import { onlyDrains } from "../requeue/candidates.ts";
import type { PoolAmounts } from "../usage/branch-use.ts";
import { type Assignment, type Preempted, SERVICE } from "./assignment.ts";
import { allocationsOf, newAdmission, placeIn, runsOf, serviceAdmission } from "./planned-admission.ts";
import { isRanked, mayPreempt, rankedChoices } from "./ranked-choices.ts";
import { fitsNow } from "./ranked-order.ts";
import { ClassOptions } from "./refusal-check.ts";

export class DecideClass {
  readonly #round: Round;
  readonly #fleet: Fleet;
  readonly #capacity: FindCapacity;
  readonly #victims: FindVictims;
  readonly options: ClassOptions;

  constructor(round: Round) {
    this.#round = round;
    this.#fleet = round.fleet;
    this.#capacity = new FindCapacity(round);
    this.#victims = round.victims;
    this.options = new ClassOptions(round, this.#capacity);
  }

  /** True if others may be preempted for a class's gang by the policy of its queue. */
  mayPreempt(gangClass: GangClass, gang: GangRecord): boolean {
    return mayPreempt(this.#queueOf(gangClass), gang);
  }

  /**
   * Finds what the first gang of a class would get. Null: it is refused, and the gang class is inactive until that may
   * end.
   */
  assign(gangClass: GangClass, gang: GangRecord, search: Search): Assignment | null {
    if (gangClass.shape.ask.service && this.#queueOf(gangClass) !== undefined) return SERVICE;
    const found = this.#tryAll(gangClass, gang, search);
    if (found !== null && "kind" in found) return found;
    const request = found === null ? null : this.#requestInLine(gangClass, found);
    if (request !== null) return this.#assignment("inLine", request);
    this.#refuse(gangClass, gang, { tried: found, search });
    return null;
  }

  /** Admits the first gang of a class with what it was assigned. Null: that no longer fits. */
  take(gangClass: GangClass, gang: GangRecord, { request }: Assignment): PlannedAdmission | null {
    if (request === null) return serviceAdmission(gang.facts);
    if (!this.#isAllowed(gangClass, request)) return null;
    const placed = this.#capacity.place(gangClass, gang.facts, request);
    return placed === null ? null : this.#take(gang, request, placed);
  }

  /** Admits a nominee in the cluster that it was nominated for. Null: it does not fit there now. */
  takeIn(gangClass: GangClass, gang: GangRecord, { request, cluster }: CapacityTry): PlannedAdmission | null {
    if (!this.#isAllowed(gangClass, request)) return null;
    const placed = this.#capacity.place(gangClass, gang.facts, request, cluster);
    return placed === null ? null : this.#take(gang, request, placed);
  }

  /**
   * Admits a nominee with all its members, or those that it is nominated with, wherever they fit now. It gets the
   * flavors that it was nominated for: with others, its victims would have ended in vain. Null: it does not fit.
   */
  takeAny(
    gangClass: GangClass,
    gang: GangRecord,
    { request: { sized: named, choice } }: CapacityTry,
  ): PlannedAdmission | null {
    const flavors = this.flavorsIn(gangClass, choice);
    for (const sized of new Set([gangClass.shape.all, named])) {
      const found = this.#fitting(gangClass, this.#round.requestOf(gangClass, sized, flavors));
      const planned = found === null ? null : this.take(gangClass, gang, found);
      if (planned !== null) return planned;
    }
    return null;
  }

  /** Admits a gang that runs where all its members fit now, or else those that it has. Null: they fit nowhere. */
  takeElsewhere(gangClass: GangClass, gang: GangRecord, members: MemberCounts): PlannedAdmission | null {
    const queue = this.#queueOf(gangClass);
    if (queue === undefined) return null;
    const { shape } = gangClass;
    for (const sized of new Set([shape.all, partWith(shape, members) ?? shape.all])) {
      const found = this.#tryMembers(gangClass, gang, { sized, queue, search: "none" });
      const planned = "kind" in found && found.kind === "fits" ? this.take(gangClass, gang, found) : null;
      if (planned !== null) return planned;
    }
    return null;
  }

  /** True if the first gang of a class fits now, without preempting others. */
  fits(gangClass: GangClass, gang: GangRecord): boolean {
    return this.tryNow(gangClass, gang, "none")?.kind === "fits";
  }

  /** Finds what the first gang of a class would get now, also by preempting others. Null: it is refused. */
  tryNow(gangClass: GangClass, gang: GangRecord, search: Search): Assignment | null {
    const found = this.#tryAll(gangClass, gang, search);
    return found !== null && "kind" in found ? found : null;
  }

  /** False: no choice of flavors has the quota and the capacity for the fewest members, nor would it have with less. */
  mayFit(gangClass: GangClass): boolean {
    const queue = this.#queueOf(gangClass);
    if (queue === undefined || gangClass.shape.ask.service) return queue !== undefined;
    const { requests, cut } = this.#fewestRequests(gangClass, queue);
    // A request stays closed over rounds, so that most gang classes are not asked again.
    const mayFit = (request: Request) => {
      this.#capacity.closeIfFull(request);
      return this.#capacity.probeCapacity(gangClass, request);
    };
    return cut || requests.some(mayFit);
  }

  /** True if no flavor has the capacity for the fewest members, also without what is kept for these reservations. */
  isClosedWithout(gangClass: GangClass, kept: readonly ReservedCapacity[]): boolean {
    const excluded = keyWithout(kept);
    const sized = gangClass.shape.fewest ?? gangClass.shape.all;
    const options = this.options.of(gangClass);
    if (options === null) return false;
    return options.every(({ flavor }) =>
      this.#capacity.isClosed(this.#fleet.requestOf(gangClass, sized, [flavor], excluded)),
    );
  }

  /**
   * True if the nearest thing in the way of a class's gangs is an older admission of their own. It does not depend on
   * what an earlier round has said of them.
   */
  waitsForItself(gangClass: GangClass): boolean {
    const queue = this.#queueOf(gangClass);
    if (queue === undefined || gangClass.excludedClusters.length === 0) return false;
    const { requests } = this.#fewestRequests(gangClass, queue);
    return requests.length > 0 && onlyDrains(this.#capacity.blocks(gangClass, requests));
  }

  /** Admits a gang with a reservation wherever it fits now, or has others preempted. Null: neither is possible. */
  admitAny(gangClass: GangClass, gang: GangRecord, search: Search): PlannedAdmission | PlannedPreemption | null {
    const found = this.tryNow(gangClass, gang, search);
    if (found === null) return null;
    if (found.kind === "fits") return this.take(gangClass, gang, found);
    const outcome = found.kind === "preempts" ? this.preempt(gangClass, gang, found) : "skipped";
    return typeof outcome === "string" ? null : outcome;
  }

  /** Lets the victims of a class's first gang be preempted, if it still needs them and no other gang has them. */
  preempt(gangClass: GangClass, gang: GangRecord, { request, requested, victims }: Assignment): Preempted {
    if (request === null || victims === null) return "skipped";
    const asking = { gangClass, gang, request, requested };
    let found: VictimsAnswer = victims;
    if (this.#victims.overlaps(victims)) found = this.#victims.find(asking, "victims");
    if (found === "waits") {
      this.#victims.charge(gang, requested);
      return "reserved";
    }
    if (found === null || !this.#victims.stillServes(asking, found, "victims")) return "skipped";
    this.#victims.reserveFor(asking, found);
    return { planned: this.plannedIn(gang, request, found.tried), victims: this.#victims.planned(found) };
  }

  /** Refuses the first gang of a class. Returns the place that it gets in the waiting line; null if it gets none. */
  refuse(gangClass: GangClass, gang: GangRecord): Omit<PlaceInLine, "after"> | null {
    const search = "victims";
    const tried = this.#tryAll(gangClass, gang, search);
    if (tried === null || !("kind" in tried)) return this.#refuse(gangClass, gang, { tried, search });
    // It lacks nothing once gangs have left that others wait for, too. Whatever happens to these, it looks again.
    refuse(gangClass, { refusal: null, reevaluated: "victims" }, this.#fleet.queues);
    return null;
  }

  /**
   * Drops the candidates for capacity and quota of which the round has left too little: gang classes need not be looked
   * at for it.
   */
  closeCandidates(): void {
    const { quota, clustersVersion } = this.#fleet;
    this.#capacity.closeCandidates();
    this.#round.requeue.quotaWaits.closeCandidates(quota, clustersVersion);
  }

  #queueOf({ gangQueue }: GangClass): PlanQueue | undefined {
    return this.#fleet.quota.queues.get(gangQueue.name);
  }

  /** The requests that quotas allow for the fewest members of a class's gangs. `cut`: these are not all. */
  #fewestRequests(
    gangClass: GangClass,
    queue: PlanQueue,
  ): { readonly requests: readonly Request[]; readonly cut: boolean } {
    const sized = gangClass.shape.fewest ?? gangClass.shape.all;
    const options = this.#choicesOf(gangClass, queue, sized);
    return { requests: this.#requestsOf(gangClass, sized, options), cut: options.cut };
  }

  #choicesOf(gangClass: GangClass, queue: PlanQueue, sized: SizedAsk): FlavorChoices {
    const { resources, quota, excludes, cannotHave, inOneCluster } = this.#fleet;
    return flavorChoices(gangClass, queue, { sized, resources, quota, excludes, cannotHave, inOneCluster });
  }

  #assignment(kind: Assignment["kind"], request: Request): Assignment {
    return { kind, request, requested: this.requestsOf(request), victims: null };
  }

  /** The flavors of a choice in the order of a class's resources. */
  flavorsIn(gangClass: GangClass, choice: FlavorChoice): Flavors {
    return flavorsIn(gangClass, choice, this.#fleet.resources);
  }

  requestsOf(request: Request): PoolAmounts {
    return requestsOf(request, this.#fleet.resources);
  }

  /** True if quotas allow a class's gang what it was assigned. */
  #isAllowed(gangClass: GangClass, request: Request): boolean {
    for (const [pool, need] of this.requestsOf(request)) {
      if (!this.#victims.allows({ gangClass }, pool, need)) return false;
    }
    return true;
  }

  /** Tries all members of a class's gang, then the fewest, then the most. Null: its queue does not exist. */
  #tryAll(gangClass: GangClass, gang: GangRecord, search: Search): Assignment | FailedTry | null {
    const queue = this.#queueOf(gangClass);
    if (queue === undefined) return null;
    const { all, fewest } = gangClass.shape;
    const first = this.#tryMembers(gangClass, gang, { sized: all, queue, search });
    if ("kind" in first || fewest === null) return first;
    const least = this.#tryMembers(gangClass, gang, { sized: fewest, queue, search });
    return "kind" in least ? this.#tryParts(gangClass, gang, { least, queue, search }) : least;
  }

  /** What a gang would get with as many members as possible. With the fewest it gets `least`. */
  #tryParts(
    gangClass: GangClass,
    gang: GangRecord,
    of: Omit<TryOf, "sized"> & { readonly least: Assignment },
  ): Assignment {
    const { least, queue, search } = of;
    return largestPart(gangClass.shape, least, (sized) => {
      const found = this.#tryMembers(gangClass, gang, { sized, queue, search });
      return "kind" in found ? found : null;
    });
  }

  #tryMembers(gangClass: GangClass, gang: GangRecord, of: TryOf): Assignment | FailedTry {
    const { sized, queue } = of;
    const preempts = mayPreempt(queue, gang);
    const found = preempts ? this.#tryRanked(gangClass, gang, of) : null;
    if (found !== null) return found;
    const options = this.#choicesOf(gangClass, queue, sized);
    if (!preempts) {
      if (!isRanked(queue, options)) return this.#tryInOrder(gangClass, sized, options);
      const ranked = this.#tryRanked(gangClass, gang, of);
      if (ranked !== null) return ranked;
    }
    return { sized, options, requests: this.#requestsOf(gangClass, sized, options) };
  }

  #requestsOf(gangClass: GangClass, sized: SizedAsk, { choices }: Pick<FlavorChoices, "choices">): readonly Request[] {
    return choices.map((flavors) => this.#round.requestOf(gangClass, sized, flavors));
  }

  #tryInOrder(gangClass: GangClass, sized: SizedAsk, options: FlavorChoices): Assignment | FailedTry {
    const requests: Request[] = [];
    for (const flavors of options.choices) {
      const request = this.#round.requestOf(gangClass, sized, flavors);
      requests.push(request);
      const found = this.#fitting(gangClass, request);
      if (found !== null) return found;
    }
    return { sized, options, requests };
  }

  /** The first flavors that a gang gets, also if others must be preempted. Nodes are looked at after all quotas. */
  #tryRanked(gangClass: GangClass, gang: GangRecord, of: TryOf): Assignment | null {
    const { sized, search } = of;
    const withoutCapacity: Request[] = [];
    const choices = rankedChoices(gangClass, gang, { ...of, round: this.#round });
    for (const choice of choices) {
      const request = this.#round.requestOf(gangClass, sized, choice.flavors);
      const fits = fitsNow(choice);
      const found = fits ? this.#fitting(gangClass, request) : this.#preempting({ gangClass, gang }, request, search);
      if (found !== null) return found;
      if (fits) withoutCapacity.push(request);
    }
    for (const request of withoutCapacity) {
      const found = this.#preempting({ gangClass, gang }, request, search);
      if (found !== null) return found;
    }
    return null;
  }

  #fitting(gangClass: GangClass, request: Request): Assignment | null {
    return this.#capacity.probeCapacity(gangClass, request) ? this.#assignment("fits", request) : null;
  }

  #preempting(
    { gangClass, gang }: { readonly gangClass: GangClass; readonly gang: GangRecord },
    request: Request,
    search: Search,
  ): Assignment | null {
    if (search === "none") return null;
    const requested = this.requestsOf(request);
    const victims = this.#victims.find({ gangClass, gang, request, requested }, search);
    return victims === null || victims === "waits" ? null : { kind: "preempts", request, requested, victims };
  }

  /** The request for which a gang may wait in the pools' lines, if it lacks only tokens and has a cluster. */
  #requestInLine(gangClass: GangClass, { sized, options }: FailedTry): Request | null {
    if (this.#fleet.quota.reserved !== null || options.choices.length > 0) return null;
    for (const flavors of options.inLine) {
      const request = this.#round.requestOf(gangClass, sized, flavors);
      if (this.#capacity.probeCapacity(gangClass, request)) return request;
    }
    return null;
  }

  #refuse(
    gangClass: GangClass,
    gang: GangRecord,
    { tried, search }: { readonly tried: FailedTry | null; readonly search: Search },
  ): Omit<PlaceInLine, "after"> | null {
    const { queues } = this.#fleet;
    if (tried === null) {
      refuse(gangClass, { refusal: null, reevaluated: null }, queues);
      return null;
    }
    const { sized, options, requests } = tried;
    const request = this.#requestInLine(gangClass, tried);
    const inLine = request === null ? null : this.#standInLine(gangClass, gang, request);
    const refusal: ClassRefusal = {
      tried: sized === gangClass.shape.all ? "all" : "fewest",
      quotas: options.blocks,
      clusters: this.#capacity.blocks(gangClass, requests),
      stoppedByQuota: options.choices.length === 0,
      ...this.#victims.budgets.refusalOf(gang),
      ...(search === "none" ? {} : this.#protectionOf(gangClass, gang, sized)),
    };
    this.#wait(gangClass, tried);
    // Else something that nothing watches can end the refusal, too.
    const isExact = requests.every((one) => this.#capacity.isExact(gangClass, one));
    // Whether such a gang holds up a strict queue depends on more than a gang class waits for.
    const isExcluded = gangClass.excludedClusters.length > 0 && this.#fleet.isStrict(gangClass.gangQueue.name);
    const preempts = mayPreempt(this.#queueOf(gangClass), gang);
    const { lacksTokens } = options;
    const isReevaluated = options.cut || !isExact || isExcluded || (preempts && lacksTokens);
    const alone = preempts ? "victims" : lacksTokens ? "tokens" : null;
    refuse(gangClass, { refusal, reevaluated: isReevaluated ? "always" : alone }, queues);
    return inLine;
  }

  /** What keeps others from giving way for a gang although its queue's policy allows that. */
  #protectionOf(gangClass: GangClass, gang: GangRecord, sized: SizedAsk): Partial<ClassRefusal> {
    const queue = this.#queueOf(gangClass);
    const search = "unprotected";
    const find = () =>
      queue === undefined ? null : (this.#tryRanked(gangClass, gang, { sized, queue, search })?.victims ?? null);
    const protection = this.#victims.protectedFrom({ gangClass, gang }, find);
    const byShare = this.mayPreempt(gangClass, gang) ? this.#victims.strategyOf(gang) : {};
    return { ...(protection === null ? {} : { spared: protection }), ...byShare };
  }

  /** Lets a gang class wait for all that can end its refusal. */
  #wait(gangClass: GangClass, { requests, options: { closedBy, choices } }: FailedTry): void {
    const { quota } = this.#fleet;
    leaveLists(gangClass);
    noteClosedBy(gangClass, closedBy);
    for (const request of requests) this.#capacity.wait(gangClass, request);
    const options = choices.length === 0 ? null : this.options.of(gangClass);
    for (const block of closedBy) {
      const request = options?.find(({ flavor }) => flavor === block.pool)?.request ?? null;
      this.#round.requeue.quotaWaits.add(gangClass, { block, quota, request });
    }
  }

  #take(gang: GangRecord, request: Request, { tried, mark }: Placed): PlannedAdmission {
    const { cluster } = tried;
    const runs = runsOf(cluster, mark, tried);
    const planned = { ...this.plannedIn(gang, request, tried), runs };
    for (const { pool, amount } of planned.allocations) this.#fleet.quota.charge(gang.account, pool, amount);
    cluster.planned += 1;
    this.#victims.staying.noteAdmitted(gang, planned, cluster, mark);
    return planned;
  }

  /** The admission that a gang gets in a cluster, without its nodes. */
  plannedIn({ facts }: GangRecord, request: Request, { cluster, flavorLabels }: CapacityTry): PlannedAdmission {
    return {
      ...newAdmission(facts, allocationsOf(facts, this.requestsOf(request))),
      ...placeIn(cluster),
      members: request.sized.members,
      flavors: request.choice,
      flavorLabels,
    };
  }

  /** The first gang that waits for tokens of pools alone gets the place in their lines. */
  #standInLine(gangClass: GangClass, gang: GangRecord, request: Request): Omit<PlaceInLine, "after"> | null {
    const { facts } = gang;
    const placed = this.#capacity.place(gangClass, facts, request);
    if (placed === null) return null;
    const planned = this.plannedIn(gang, request, placed.tried);
    placed.tried.cluster.free.undo(placed.mark);
    const amounts = new Map(planned.allocations.map(({ pool, amount }) => [pool, amount]));
    const holder = `${facts.namespace}/${facts.name}`;
    this.#fleet.quota.reserve({ jobUid: facts.uid, holder, priority: facts.priority, amounts });
    return { planned, priority: facts.priority, sinceMs: facts.createTimeMs };
  }
}

type TryOf = { readonly sized: SizedAsk; readonly queue: PlanQueue; readonly search: Search };

type FailedTry = {
  readonly sized: SizedAsk;
  readonly options: FlavorChoices;
  /** Of the flavors that quotas allow. */
  readonly requests: readonly Request[];
};
