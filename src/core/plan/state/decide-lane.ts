/**
 * Decides about the first gang of a lane: finds what it could get, with all its members or else with as many as
 * possible, and admits it with that. Or lets the lane wait for everything that can end its refusal.
 */
import type { PlaceInLine, PlannedAdmission } from "../plan-types.ts";
import type { PlannedPreemption } from "../preemption.ts";
import type { PlanQueue } from "../snapshot.ts";
import { type SizedAsk, unitsOf } from "./ask-shape.ts";
import { type Assignment, type Preempted, SERVICE } from "./assignment.ts";
import type { PoolAmounts } from "./branch-use.ts";
import { concernsTokens, type FlavorChoices, flavorChoices } from "./choices.ts";
import { FindRoom, type Placed } from "./find-room.ts";
import type { FindVictims, VictimsAnswer } from "./find-victims.ts";
import type { Entry, Lane } from "./gang-lines.ts";
import { allocationsOf, placeIn } from "./grow.ts";
import { type KeptRoom, liftedKey } from "./kept-room.ts";
import { LaneOptions } from "./lane-options.ts";
import { leaveLists, onlyDrains, setRestless } from "./lane-turns.ts";
import { newAdmission, serviceAdmission } from "./new-admission.ts";
import { largestPart } from "./part-of-gang.ts";
import { fitsNow, isRanked, mayPreempt, rankedChoices } from "./ranked-choices.ts";
import type { LaneRefusal } from "./refused.ts";
import { type Request, type RoomTry, wantsOf } from "./requests.ts";
import type { Parts } from "./state-parts.ts";

export class DecideLane {
  readonly #parts: Parts;
  readonly #rooms: FindRoom;
  readonly #victims: FindVictims;
  readonly options: LaneOptions;

  constructor(parts: Parts, round: number, victims: FindVictims) {
    this.#parts = parts;
    this.#rooms = new FindRoom(parts, round);
    this.#victims = victims;
    this.options = new LaneOptions(parts, this.#rooms, victims);
  }

  /** True while no search finds victims. */
  get isPaused(): boolean {
    return this.#victims.isPaused;
  }

  /** True if others may be preempted for a lane's gang by the policy of its queue. */
  mayPreempt(lane: Lane, entry: Entry): boolean {
    return mayPreempt(this.#queueOf(lane), entry);
  }

  /** Finds what the first gang of a lane would get. Null: it is refused, and the lane sleeps until that may end. */
  assign(lane: Lane, entry: Entry): Assignment | null {
    if (lane.shape.ask.service && this.#queueOf(lane) !== undefined) return SERVICE;
    const found = this.#tryAll(lane, entry);
    if (found !== null && "kind" in found) return found;
    const request = found === null ? null : this.#requestInLine(lane, found);
    if (request !== null) return this.#assignment("inLine", request);
    this.#refuse(lane, entry, found);
    return null;
  }

  /** Admits the first gang of a lane with what it was assigned. Null: that no longer fits. */
  take(lane: Lane, entry: Entry, { request }: Assignment): PlannedAdmission | null {
    if (request === null) return serviceAdmission(entry.gang);
    if (!this.#isAllowed(lane, request)) return null;
    const placed = this.#rooms.place(lane, entry.gang, request);
    return placed === null ? null : this.#take(entry, request, placed);
  }

  /** Admits a nominee in the cluster that it was nominated for. Null: it does not fit there now. */
  takeIn(lane: Lane, entry: Entry, { request, cluster }: RoomTry): PlannedAdmission | null {
    if (!this.#isAllowed(lane, request)) return null;
    const placed = this.#rooms.place(lane, entry.gang, request, cluster);
    return placed === null ? null : this.#take(entry, request, placed);
  }

  /**
   * Admits a nominee with all its members, or those that it is nominated with, wherever they fit now. It gets the
   * flavors that it was nominated for: with others, its victims would have ended in vain. Null: it does not fit.
   */
  takeAny(lane: Lane, entry: Entry, { request: { sized: named, choice } }: RoomTry): PlannedAdmission | null {
    const flavors = Object.keys(unitsOf(lane.shape.all, this.#parts.resources)).map((name) => choice[name] ?? "");
    for (const sized of new Set([lane.shape.all, named])) {
      const found = this.#fitting(lane, this.#parts.requestOf(lane, sized, flavors));
      const planned = found === null ? null : this.take(lane, entry, found);
      if (planned !== null) return planned;
    }
    return null;
  }

  /** True if the first gang of a lane fits now, without others that give way. */
  fits(lane: Lane, entry: Entry): boolean {
    const { isPaused } = this.#victims;
    this.#victims.isPaused = true;
    const found = this.#tryAll(lane, entry);
    this.#victims.isPaused = isPaused;
    return found !== null && "kind" in found && found.kind === "fits";
  }

  /** False: no choice of flavors has the quota and the room for the fewest members, nor would it have with less. */
  mayFit(lane: Lane): boolean {
    const queue = this.#queueOf(lane);
    if (queue === undefined || lane.shape.ask.service) return queue !== undefined;
    const { requests, cut } = this.#fewestRequests(lane, queue);
    // A request stays closed over rounds, so that most lanes are not asked again.
    const mayFit = (request: Request) => !this.#rooms.closes(request) && this.#rooms.hasRoom(lane, request);
    return cut || requests.some(mayFit);
  }

  /** True if no flavor has the room for the fewest members, also without what is kept for these reservations. */
  isClosedWithout(lane: Lane, kept: readonly KeptRoom[]): boolean {
    const lifted = liftedKey(kept, { all: true });
    const sized = lane.shape.fewest ?? lane.shape.all;
    const options = this.options.of(lane);
    if (options === null) return false;
    return options.every(({ flavor }) => this.#rooms.isClosed(this.#parts.requestOf(lane, sized, [flavor], lifted)));
  }

  /**
   * True if the nearest thing in the way of a lane's gangs is an older admission of their own. It does not depend on
   * what an earlier round has said of them.
   */
  waitsForItself(lane: Lane): boolean {
    const queue = this.#queueOf(lane);
    if (queue === undefined || lane.barred.length === 0) return false;
    const { requests } = this.#fewestRequests(lane, queue);
    return requests.length > 0 && onlyDrains(this.#rooms.blocks(lane, requests));
  }

  /** Admits a gang with a reservation wherever it fits now, or lets others give way. Null: neither is possible. */
  boardAny(lane: Lane, entry: Entry): PlannedAdmission | PlannedPreemption | null {
    const found = this.#tryAll(lane, entry);
    if (found === null || !("kind" in found)) return null;
    if (found.kind === "fits") return this.take(lane, entry, found);
    const outcome = found.kind === "preempts" ? this.preempt(lane, entry, found) : "skipped";
    return typeof outcome === "string" ? null : outcome;
  }

  /** Lets the victims of a lane's first gang give way, if it still needs them and no other gang has them. */
  preempt(lane: Lane, entry: Entry, { request, wants, victims }: Assignment): Preempted {
    if (request === null || victims === null) return "skipped";
    const asking = { lane, entry, request, wants };
    let found: VictimsAnswer = victims;
    if (this.#victims.overlaps(victims)) found = this.#victims.find(asking);
    if (found === "waits") {
      this.#victims.charge(entry, wants);
      return "reserved";
    }
    if (found === null || !this.#victims.stillServes(asking, found)) return "skipped";
    this.#victims.book(asking, found);
    return { planned: this.plannedIn(entry, request, found.room), victims: this.#victims.planned(found) };
  }

  /** Refuses the first gang of a lane. Returns the place that it gets in the waiting line; null if it gets none. */
  refuse(lane: Lane, entry: Entry): Omit<PlaceInLine, "after"> | null {
    const tried = this.#tryAll(lane, entry);
    if (tried === null || !("kind" in tried)) return this.#refuse(lane, entry, tried);
    // It lacks nothing once gangs have left that others wait for, too. Whatever happens to these, it looks again.
    this.#sleep(lane, { refusal: null, restless: "victims" });
    return null;
  }

  /** Ends the hope for room and quota of which the round has left too little: lanes need not be looked at for it. */
  closeHopeful(): void {
    const { waits, quota, clustersVersion } = this.#parts;
    this.#rooms.closeHopeful();
    waits.closeHopeful(quota, clustersVersion);
  }

  #queueOf({ line }: Lane): PlanQueue | undefined {
    return this.#parts.quota.queues.get(line.name);
  }

  /** The requests that quotas allow for the fewest members of a lane's gangs. `cut`: these are not all. */
  #fewestRequests(lane: Lane, queue: PlanQueue): { readonly requests: readonly Request[]; readonly cut: boolean } {
    const { resources, quota, excludes } = this.#parts;
    const sized = lane.shape.fewest ?? lane.shape.all;
    const options = flavorChoices(lane, queue, { sized, resources, quota, excludes });
    return { requests: this.#requestsOf(lane, sized, options), cut: options.cut };
  }

  #assignment(kind: Assignment["kind"], request: Request): Assignment {
    return { kind, request, wants: this.wantsOf(request), victims: null };
  }

  wantsOf(request: Request): PoolAmounts {
    return wantsOf(request, this.#parts.resources);
  }

  /** True if quotas allow a lane's gang what it was assigned. */
  #isAllowed(lane: Lane, { sized, choice }: Request): boolean {
    for (const [resource, need] of Object.entries(unitsOf(sized, this.#parts.resources))) {
      if (!this.#victims.allows({ lane }, choice[resource] ?? "", need)) return false;
    }
    return true;
  }

  /** Tries all members of a lane's gang, then the fewest, then the most. Null: its queue does not exist. */
  #tryAll(lane: Lane, entry: Entry): Assignment | FailedTry | null {
    const queue = this.#queueOf(lane);
    if (queue === undefined) return null;
    const { all, fewest } = lane.shape;
    const first = this.#tryMembers(lane, entry, { sized: all, queue });
    if ("kind" in first || fewest === null) return first;
    const least = this.#tryMembers(lane, entry, { sized: fewest, queue });
    return "kind" in least ? this.#tryParts(lane, entry, { least, queue }) : least;
  }

  /** What a gang would get with as many members as possible. With the fewest it gets `least`. */
  #tryParts(lane: Lane, entry: Entry, of: { readonly least: Assignment; readonly queue: PlanQueue }): Assignment {
    const { least, queue } = of;
    return largestPart(lane.shape, least, (sized) => {
      const found = this.#tryMembers(lane, entry, { sized, queue });
      return "kind" in found ? found : null;
    });
  }

  #tryMembers(lane: Lane, entry: Entry, of: TryOf): Assignment | FailedTry {
    const { sized, queue } = of;
    const { resources, quota, excludes } = this.#parts;
    const preempts = mayPreempt(queue, entry);
    const found = preempts ? this.#tryRanked(lane, entry, of) : null;
    if (found !== null) return found;
    const options = flavorChoices(lane, queue, { sized, resources, quota, excludes });
    if (!preempts) {
      if (!isRanked(queue, options)) return this.#tryInOrder(lane, sized, options);
      const ranked = this.#tryRanked(lane, entry, of);
      if (ranked !== null) return ranked;
    }
    return { sized, options, requests: this.#requestsOf(lane, sized, options) };
  }

  #requestsOf(lane: Lane, sized: SizedAsk, { choices }: Pick<FlavorChoices, "choices">): readonly Request[] {
    return choices.map((flavors) => this.#parts.requestOf(lane, sized, flavors));
  }

  #tryInOrder(lane: Lane, sized: SizedAsk, options: FlavorChoices): Assignment | FailedTry {
    const requests: Request[] = [];
    for (const flavors of options.choices) {
      const request = this.#parts.requestOf(lane, sized, flavors);
      requests.push(request);
      const found = this.#fitting(lane, request);
      if (found !== null) return found;
    }
    return { sized, options, requests };
  }

  /** The first flavors that a gang gets, also if others must give way. Nodes are looked at after all quotas. */
  #tryRanked(lane: Lane, entry: Entry, of: TryOf): Assignment | null {
    const { sized } = of;
    const noRoom: Request[] = [];
    const choices = rankedChoices(lane, entry, { ...of, parts: this.#parts, victims: this.#victims });
    for (const choice of choices) {
      const request = this.#parts.requestOf(lane, sized, choice.flavors);
      const fits = fitsNow(choice);
      const found = fits ? this.#fitting(lane, request) : this.#preempting(lane, entry, request);
      if (found !== null) return found;
      if (fits) noRoom.push(request);
    }
    for (const request of noRoom) {
      const found = this.#preempting(lane, entry, request);
      if (found !== null) return found;
    }
    return null;
  }

  #fitting(lane: Lane, request: Request): Assignment | null {
    return this.#rooms.hasRoom(lane, request) ? this.#assignment("fits", request) : null;
  }

  #preempting(lane: Lane, entry: Entry, request: Request): Assignment | null {
    const wants = this.wantsOf(request);
    const victims = this.#victims.find({ lane, entry, request, wants });
    return victims === null || victims === "waits" ? null : { kind: "preempts", request, wants, victims };
  }

  /** The request for which a gang may wait in the pools' lines, if it lacks only tokens and has a cluster. */
  #requestInLine(lane: Lane, { sized, options }: FailedTry): Request | null {
    if (this.#parts.quota.reserved !== null || options.choices.length > 0) return null;
    for (const flavors of options.inLine) {
      const request = this.#parts.requestOf(lane, sized, flavors);
      if (this.#rooms.hasRoom(lane, request)) return request;
    }
    return null;
  }

  #refuse(lane: Lane, entry: Entry, tried: FailedTry | null): Omit<PlaceInLine, "after"> | null {
    if (tried === null) {
      this.#sleep(lane, { refusal: null, restless: null });
      return null;
    }
    const { sized, options, requests } = tried;
    const request = this.#requestInLine(lane, tried);
    const inLine = request === null ? null : this.#standInLine(lane, entry, request);
    const refusal: LaneRefusal = {
      tried: sized === lane.shape.all ? "all" : "fewest",
      quotas: options.blocks,
      clusters: this.#rooms.blocks(lane, requests),
      stoppedByQuota: options.choices.length === 0,
      ...this.#sparesOthers(lane, entry, sized),
    };
    const isExact = this.#wait(lane, tried);
    // Whether such a gang holds up a strict queue depends on more than a lane waits for.
    const isBarred = lane.barred.length > 0 && this.#parts.isStrict(lane.line.name);
    const preempts = mayPreempt(this.#queueOf(lane), entry);
    const lacksTokens = options.blocks.some(concernsTokens);
    const isRestless = options.cut || !isExact || isBarred || (preempts && lacksTokens);
    const alone = preempts ? "victims" : lacksTokens ? "tokens" : null;
    this.#sleep(lane, { refusal, restless: isRestless ? "always" : alone });
    return inLine;
  }

  /** What keeps others from giving way for a gang although its queue's policy allows that. */
  #sparesOthers(lane: Lane, entry: Entry, sized: SizedAsk): Partial<LaneRefusal> {
    const queue = this.#queueOf(lane);
    const find = () => (queue === undefined ? null : (this.#tryRanked(lane, entry, { sized, queue })?.victims ?? null));
    const spared = this.#victims.protectedFrom({ lane, entry }, find);
    const byShare = this.mayPreempt(lane, entry) ? this.#victims.strategyOf(entry) : {};
    return { ...this.#victims.budget.refusalOf(entry), ...(spared === null ? {} : { spared }), ...byShare };
  }

  /** Lets a lane wait for all that can end its refusal. False: something that nothing watches can end it, too. */
  #wait(lane: Lane, { requests, options: { closedBy, choices } }: FailedTry): boolean {
    const { waits, quota } = this.#parts;
    leaveLists(lane);
    lane.options = undefined;
    lane.closedBy = closedBy;
    let isExact = true;
    for (const request of requests) isExact = this.#rooms.wait(lane, request) && isExact;
    const options = choices.length === 0 ? null : this.options.of(lane);
    for (const block of closedBy) {
      const request = options?.find(({ flavor }) => flavor === block.pool)?.request ?? null;
      waits.add(lane, { block, quota, request });
    }
    return isExact;
  }

  #sleep(lane: Lane, by: { readonly refusal: LaneRefusal | null; readonly restless: Lane["restless"] }): void {
    const { lines } = this.#parts;
    lane.awake = false;
    if ((lane.refusal === null) !== (by.refusal === null)) lane.line.waitedLong = null;
    lane.refusal = by.refusal;
    setRestless(lane, by.restless, lines);
  }

  #take(entry: Entry, request: Request, { room, mark }: Placed): PlannedAdmission {
    const planned = this.plannedIn(entry, request, room);
    for (const { pool, amount } of planned.allocations) this.#parts.quota.charge(entry.account, pool, amount);
    room.cluster.planned += 1;
    this.#victims.staying.noteBoarding(entry, planned, room.cluster, mark);
    return planned;
  }

  /** The admission that a gang gets in a cluster. */
  plannedIn({ gang }: Entry, { sized, choice }: Request, { cluster, flavorLabels }: RoomTry): PlannedAdmission {
    const units = unitsOf(sized, this.#parts.resources);
    return {
      ...newAdmission(gang, allocationsOf(gang, units, choice)),
      ...placeIn(cluster),
      members: sized.members,
      flavors: choice,
      flavorLabels,
    };
  }

  /** The first gang that waits for tokens of pools alone gets the place in their lines. */
  #standInLine(lane: Lane, entry: Entry, request: Request): Omit<PlaceInLine, "after"> | null {
    const { gang } = entry;
    const placed = this.#rooms.place(lane, gang, request);
    if (placed === null) return null;
    const planned = this.plannedIn(entry, request, placed.room);
    placed.room.cluster.room.undo(placed.mark);
    const amounts = new Map(planned.allocations.map(({ pool, amount }) => [pool, amount]));
    const holder = `${gang.namespace}/${gang.name}`;
    this.#parts.quota.reserved = { jobUid: gang.uid, holder, priority: gang.priority, amounts };
    return { planned, priority: gang.priority, sinceMs: gang.createTimeMs };
  }
}

type TryOf = { readonly sized: SizedAsk; readonly queue: PlanQueue };

type FailedTry = {
  readonly sized: SizedAsk;
  readonly options: FlavorChoices;
  /** Of the flavors that quotas allow. */
  readonly requests: readonly Request[];
};
