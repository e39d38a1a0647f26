/**
 * Decides about the first gang of a lane: admits it with all its members, else with the fewest that it accepts, or lets
 * the lane wait for everything that can end its refusal.
 */
import type { PlanGang } from "../plan-gang.ts";
import type { PlaceInLine, PlannedAdmission, PlannedAllocation } from "../plan-types.ts";
import type { PlanQueue } from "../snapshot.ts";
import { type SizedAsk, unitsOf } from "./ask-shape.ts";
import { type FlavorChoices, type Flavors, flavorChoices, flavorsOf } from "./choices.ts";
import { FindRoom } from "./find-room.ts";
import { type Entry, type Lane, type LaneOption, leaveLists } from "./gang-lines.ts";
import { allocationsOf, placeIn } from "./grow.ts";
import type { QuotaBlock } from "./quota-state.ts";
import type { LaneRefusal } from "./refused.ts";
import type { Request, RoomTry } from "./requests.ts";
import type { Parts } from "./state-parts.ts";

export class DecideLane {
  readonly #parts: Parts;
  readonly #rooms: FindRoom;
  /** The gang that the round gave the place in the waiting line. */
  inLine: Omit<PlaceInLine, "after"> | null = null;

  constructor(parts: Parts, round: number) {
    this.#parts = parts;
    this.#rooms = new FindRoom(parts, round);
  }

  /** Admits the first gang of a lane; null if it is refused, and the lane sleeps until something can end that. */
  decide(lane: Lane, entry: Entry): PlannedAdmission | null {
    const queue = this.#parts.quota.queues.get(lane.line.name);
    if (queue === undefined) {
      this.#sleep(lane, { refusal: null, restless: null });
      return null;
    }
    if (lane.shape.ask.service) return serviceAdmission(entry.gang);
    const { all, fewest } = lane.shape;
    const first = this.#tryMembers(lane, entry, { sized: all, queue });
    if ("kind" in first) return first;
    const last = fewest === null ? first : this.#tryMembers(lane, entry, { sized: fewest, queue });
    if ("kind" in last) return last;
    this.#refuse(lane, entry, last);
    return null;
  }

  /** Closes the requests for which the round has left no room: their lanes need not be looked at. */
  closeHopeful(): void {
    this.#rooms.closeHopeful();
  }

  /**
   * True if everything that kept a lane refused still does, or something else does now. A lane whose gang requests one
   * flavored resource is then also set to wait for that.
   */
  staysRefused(lane: Lane): boolean {
    const { quota } = this.#parts;
    if (lane.refusal === null || lane.restless === "always") return false;
    // The first gang that lacks only tokens is still to be found.
    if (lane.restless === "tokens" && quota.reserved === null) return false;
    const options = this.#optionsOf(lane);
    if (options === null) {
      if (quota.reserved !== null) return false;
      if (lane.requests.some((request) => !this.#rooms.closes(lane.shape, request))) return false;
      return lane.closedBy.every(({ level, leastNeed }) => leastNeed > quota.roomAt(level));
    }
    for (const option of options) if (!this.#isShut(lane, option)) return false;
    return true;
  }

  /** The alternatives for the fewest members of a lane's gang. Null: it requests no flavored resource, or several. */
  #optionsOf(lane: Lane): readonly LaneOption[] | null {
    if (lane.options !== undefined) return lane.options;
    const { quota, resources } = this.#parts;
    const queue = quota.queues.get(lane.line.name);
    const flavors = queue === undefined ? null : flavorsOf(lane, queue, resources);
    const sized = lane.shape.fewest ?? lane.shape.all;
    const [need = 0] = Object.keys(unitsOf(lane.shape.all, resources)).map(
      (name) => unitsOf(sized, resources)[name] ?? 0,
    );
    const options = flavors?.map((flavor) => {
      const request = this.#parts.requestOf(lane, sized, [flavor]);
      const block = lane.closedBy.find(({ pool }) => pool === flavor) ?? null;
      return { flavor, need, request, waits: request.waiting.has(lane), block };
    });
    lane.options = options ?? null;
    return lane.options;
  }

  /** True if quota or all clusters refuse an option of a lane, which waits for that then. */
  #isShut(lane: Lane, option: LaneOption): boolean {
    const { quota } = this.#parts;
    const { request, block, flavor, need } = option;
    if (option.waits && this.#rooms.isClosed(request)) return true;
    if (block !== null && block.leastNeed > quota.roomAt(block.level)) return true;
    const of = { resource: request.resource, need, priority: lane.priority };
    if (quota.admits(lane.account, flavor, of)) {
      return this.#rooms.closes(lane.shape, request) && this.#waitForRoom(lane, option);
    }
    // Each round looks at such a lane anyway.
    if (lane.restless === "tokens") return true;
    const blocks = quota.blocks(lane.account, flavor, of);
    const [found] = blocks;
    if (found === undefined || blocks.some(concernsTokens)) return false;
    this.#waitForQuota(lane, option, found);
    return true;
  }

  /** It keeps its place among those that wait for quota: one of the two things is sure to be in its way. */
  #waitForRoom(lane: Lane, option: LaneOption): boolean {
    option.waits = this.#rooms.wait(lane, option.request);
    return option.waits;
  }

  #waitForQuota(lane: Lane, option: LaneOption, block: QuotaBlock): void {
    const { quota, waits } = this.#parts;
    if (option.block !== null) waits.drop(lane, lane.account, { block: option.block, quota });
    waits.add(lane, lane.account, { block, quota });
    option.block = block;
  }

  #tryMembers(
    lane: Lane,
    entry: Entry,
    of: { readonly sized: SizedAsk; readonly queue: PlanQueue },
  ): PlannedAdmission | FailedTry {
    const { resources, quota } = this.#parts;
    const options = flavorChoices(lane, of.queue, { sized: of.sized, resources, quota });
    const requests: Request[] = [];
    for (const flavors of options.choices) {
      const request = this.#parts.requestOf(lane, of.sized, flavors);
      requests.push(request);
      const placed = this.#rooms.place(lane, entry.gang, request);
      if (placed !== null) return this.#take(entry, request, placed.room);
    }
    return { sized: of.sized, options, requests };
  }

  #refuse(lane: Lane, entry: Entry, { sized, options, requests }: FailedTry): void {
    const stoppedByQuota = options.choices.length === 0;
    const waitsInLine = stoppedByQuota && options.inLine.length > 0;
    if (waitsInLine) this.#standInLine(lane, entry, { sized, choices: options.inLine });
    const refusal: LaneRefusal = {
      tried: sized === lane.shape.all ? "all" : "fewest",
      quotas: options.blocks,
      clusters: this.#rooms.blocks(lane, requests),
      stoppedByQuota,
    };
    const isExact = this.#wait(lane, requests, options.closedBy);
    // Whether such a gang holds up a strict queue depends on more than a lane waits for.
    const isBarred = lane.barred.length > 0 && this.#parts.isStrict(lane.line.name);
    const tokens = options.blocks.some(concernsTokens) ? "tokens" : null;
    this.#sleep(lane, { refusal, restless: options.cut || !isExact || isBarred ? "always" : tokens });
  }

  /** Lets a lane wait for all that can end its refusal. False: something that nothing watches can end it, too. */
  #wait(lane: Lane, requests: readonly Request[], closedBy: readonly QuotaBlock[]): boolean {
    const { waits, quota } = this.#parts;
    leaveLists(lane);
    lane.options = undefined;
    lane.closedBy = closedBy;
    for (const block of closedBy) waits.add(lane, lane.account, { block, quota });
    let isExact = true;
    for (const request of requests) isExact = this.#rooms.wait(lane, request) && isExact;
    return isExact;
  }

  #sleep(lane: Lane, by: { readonly refusal: LaneRefusal | null; readonly restless: Lane["restless"] }): void {
    const { lines } = this.#parts;
    lane.awake = false;
    lane.refusal = by.refusal;
    lane.restless = by.restless;
    if (by.restless !== null) lines.restless.add(lane);
    else lines.restless.delete(lane);
  }

  #take(entry: Entry, request: Request, room: RoomTry): PlannedAdmission {
    const planned = this.#planned(entry, request, room);
    for (const { pool, amount } of planned.allocations) this.#parts.quota.charge(entry.account, pool, amount);
    room.cluster.planned += 1;
    return planned;
  }

  #planned({ gang }: Entry, { sized, choice }: Request, { cluster, labels }: RoomTry): PlannedAdmission {
    const units = unitsOf(sized, this.#parts.resources);
    return {
      ...admission(gang, allocationsOf(gang, units, choice)),
      ...placeIn(cluster),
      members: sized.members,
      flavors: choice,
      nodeLabels: labels,
    };
  }

  /**
   * The first gang that waits for tokens of pools alone gets the place in their lines, if a cluster has room for it.
   */
  #standInLine(lane: Lane, entry: Entry, of: { sized: SizedAsk; choices: readonly Flavors[] }): void {
    const { quota } = this.#parts;
    if (quota.reserved !== null) return;
    const { gang } = entry;
    for (const flavors of of.choices) {
      const request = this.#parts.requestOf(lane, of.sized, flavors);
      const placed = this.#rooms.place(lane, gang, request);
      if (placed === null) continue;
      const planned = this.#planned(entry, request, placed.room);
      placed.room.cluster.room.undo(placed.mark);
      const amounts = new Map(planned.allocations.map(({ pool, amount }) => [pool, amount]));
      quota.reserved = { jobUid: gang.uid, holder: `${gang.namespace}/${gang.name}`, priority: gang.priority, amounts };
      this.inLine = { planned, priority: gang.priority, sinceMs: gang.createTimeMs };
      return;
    }
  }
}

type FailedTry = {
  readonly sized: SizedAsk;
  readonly options: FlavorChoices;
  /** Of the flavors that quotas allow. */
  readonly requests: readonly Request[];
};

/** True if a pool lacks tokens that others hold, or keeps them for the gang in its waiting line. */
function concernsTokens({ scope, reason }: QuotaBlock): boolean {
  return scope.kind === "pool" && (reason === "QuotaExhausted" || reason === "Reserved");
}

/** A job without pods needs no room in a cluster, only its turn; its plugin takes the tokens that it needs. */
function serviceAdmission(gang: PlanGang): PlannedAdmission {
  return { ...admission(gang, []), cluster: null, admissionCounter: 0, members: {}, flavors: {}, nodeLabels: {} };
}

function admission(gang: PlanGang, allocations: readonly PlannedAllocation[]) {
  const { uid, askHash, generation, lastAdmission } = gang;
  // Numbers are never used twice: objects of an older admission are never adopted.
  return { kind: "admit" as const, jobUid: uid, askHash, generation, admission: lastAdmission + 1, allocations };
}
