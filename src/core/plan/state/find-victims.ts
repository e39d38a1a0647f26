import { cheapestVictims, isCheaper } from "../preempt/cheapest-victims.ts";
import type { Protected } from "../preempt/protection.ts";
import {
  dischargeGangs,
  type RunningGang,
  type Victim,
  type VictimSearch,
  whileGone,
} from "../preempt/running-gang.ts";
import { areLegal, victimsFor } from "../preempt/victims.ts";
import type { PlannedVictim } from "../preemption.ts";
import type { PoolAmounts } from "./branch-use.ts";
import type { ClusterState, PlacedPod } from "./cluster-state.ts";
import type { Entry, Lane } from "./gang-lines.ts";
import { plannedVictims, wholeGangs, withLeastGrowth } from "./growth.ts";
import { type KeptRoom, leftPods } from "./kept-room.ts";
import { eachFits, fitGroups, placeAll } from "./place-all.ts";
import { type Request, type RoomTry, tryIn } from "./requests.ts";
import { RoundBudgets } from "./round-budgets.ts";
import { byCluster, type Runner, type Runners, type RunningVictim } from "./runners.ts";
import type { Parts } from "./state-parts.ts";
import { StayingGangs } from "./staying-gangs.ts";
import { Takers } from "./takers.ts";
import type { VictimBounds } from "./victim-bounds.ts";
import { WhoGivesWay } from "./who-gives-way.ts";

/** Running gangs that give way, and the cluster that has room for a request once they are gone. */
export type FoundVictims = {
  readonly room: RoomTry;
  readonly victims: readonly RunningVictim[];
};

/** A gang that waits for others that leave, and what it needs. */
export type BookedGang = Pick<RunningGang, "account" | "uses"> & { readonly entry: Entry };

/** `waits`: it fits once gangs are gone that leave anyway. */
export type VictimsAnswer = FoundVictims | "waits" | null;

export type AskingGang = {
  readonly lane: Lane;
  readonly entry: Entry;
  readonly request: Request;
  readonly wants: PoolAmounts;
};

type Hope = { state: string; entry: Entry | null; rooms: Map<Request, readonly RoomTry[]> };

/**
 * Finds gangs that may be preempted, during one round. Gangs that leave anyway, and the victims that the round has
 * chosen, count as gone: others wait for them and do not preempt them anew.
 */
export class FindVictims {
  readonly #parts: Parts;
  readonly #nowMs: number;
  readonly #runners: Runners;
  readonly #who: WhoGivesWay;
  readonly #takers: Takers;
  readonly #chosen = new Set<Runner>();
  /** What the gangs are charged with for which the round has chosen victims. */
  readonly #booked: BookedGang[] = [];
  /** The gangs that are gone anyway, by cluster, for so many that were chosen. Null: not known yet. */
  #gone: { readonly chosen: number; readonly byCluster: ReturnType<typeof byCluster> } | null = null;
  readonly #bounds: VictimBounds;
  /** The clusters that may have room for the requests of the gang that was asked for last, in one state of use. */
  #hope: Hope = { state: "", entry: null, rooms: new Map() };
  readonly budget: RoundBudgets;
  readonly staying: StayingGangs;
  /** True while no search finds anybody, because the turn of those who ask has not come. */
  isPaused = false;

  constructor(parts: Parts, nowMs: number) {
    this.#parts = parts;
    const { runners, bounds } = parts.running();
    this.#runners = runners;
    this.#bounds = bounds;
    this.#who = new WhoGivesWay(parts, this.#runners, nowMs);
    this.#takers = new Takers(parts, () => this.staying.boardingCount + this.#booked.length + this.#chosen.size);
    this.#nowMs = nowMs;
    this.staying = new StayingGangs({ lines: parts.lines, runners, who: this.#who, nowMs });
    this.budget = new RoundBudgets(parts.quota.queues, nowMs);
  }

  /** When the first gang that was passed over may be preempted. Infinite: none was. */
  get recheckAtMs(): number {
    return this.#who.recheckAtMs;
  }

  /** The victims for a request. Null: it does not fit, whoever gives way. */
  find(asking: AskingGang): VictimsAnswer {
    if (this.isPaused) return null;
    const found = this.#afterGone(() => {
      const lacking = this.lacking(asking);
      return lacking.size > 0 ? this.#forQuota(asking, lacking) : this.#forRoom(asking);
    });
    if (found === null || found === "waits") return found;
    const withVictims = (victims: FoundVictims["victims"]) => ({ ...found, victims });
    const fits = (victims: FoundVictims["victims"]) => this.stillServes(asking, withVictims(victims));
    const least = withVictims(withLeastGrowth(found.victims, { runners: this.#runners, fits }));
    if (!this.#who.heedsProtection) return least;
    return this.budget.allows(asking.entry, wholeGangs(least.victims)) ? least : null;
  }

  /** True if a request that asks for one pool surely finds no victims, nor does one that asks for more of it. */
  isHopeless(asking: AskingGang): boolean {
    if (this.isPaused) return true;
    return this.#afterGone(() => this.#roomsForAll(asking).length === 0);
  }

  /** The gangs that would give way for an amount of one pool, if room did not matter. Null: nobody can. */
  forPool({ lane, entry }: Pick<AskingGang, "lane" | "entry">, pool: string, amount: number): readonly Victim[] | null {
    if (this.isPaused) return null;
    const { quota } = this.#parts;
    const of = { need: amount, priority: lane.priority };
    return this.#afterGone(() => {
      if (quota.admits(lane.account, pool, of)) return [];
      const taker = this.#takers.takerOf({ lane, entry, wants: new Map([[pool, amount]]) }, new Set([pool]));
      const search = this.#searchFor({ lane, entry }, null);
      const own = this.#bounds.own(this.#who.searchAll({ lane, entry }), taker);
      const reached = this.#bounds.reached(taker, own);
      if (!whileGone(quota, reached, () => quota.admits(lane.account, pool, of))) return null;
      const victims = victimsFor(search, taker);
      return victims.length > 0 ? victims : null;
    });
  }

  /** Decides while all count as gone that leave. */
  #afterGone<T>(decide: () => T): T {
    const { quota } = this.#parts;
    const { mark } = quota;
    const state = `${quota.useVersion} ${this.#chosen.size}`;
    this.#dischargeGone();
    this.#bounds.enter(quota.useVersion);
    if (this.#hope.state !== state) this.#hope = { state, entry: null, rooms: new Map() };
    const decided = decide();
    quota.undo(mark);
    return decided;
  }

  /** The clusters that may have the room once gangs have given way for all that a gang wants. */
  #roomsForAll(asking: AskingGang): readonly RoomTry[] {
    const { entry, request } = asking;
    if (this.#hope.entry !== entry) this.#hope = { ...this.#hope, entry, rooms: new Map() };
    const { rooms } = this.#hope;
    const known = rooms.get(request) ?? this.#hopefulRooms(asking, poolsOf(asking.wants));
    rooms.set(request, known);
    return known;
  }

  /** The clusters in which a request may fit once gangs have given way for it. No search finds it room in another. */
  #hopefulRooms(asking: AskingGang, pools: ReadonlySet<string>): readonly RoomTry[] {
    const taker = this.#takers.takerOf(asking, pools);
    const own = this.#bounds.own(this.#who.searchAll(asking), taker);
    const rooms = this.#bounds.roomsWith(this.roomsOf(asking), own);
    if (rooms.length === 0) return rooms;
    const reached = this.#bounds.reached(taker, own);
    const isAllowed = () => this.lacking(asking).size === 0;
    if (!isAllowed() && !whileGone(this.#parts.quota, reached, isAllowed)) return [];
    return rooms.filter((room) => this.#mayFitIn(room, reached));
  }

  /** True if the round has chosen one of these victims for another gang. */
  overlaps({ victims }: FoundVictims): boolean {
    return victims.some(({ gang }) => this.#who.isChosen(gang.entry));
  }

  /** True if a request still fits once its victims are gone, and these may still go. */
  stillServes(asking: AskingGang, found: FoundVictims): boolean {
    return this.stillFits(asking, found) && this.#afterGone(() => this.#areLegal(asking, found.victims));
  }

  #areLegal(asking: AskingGang, victims: FoundVictims["victims"]): boolean {
    const lacking = this.lacking(asking);
    const needed = lacking.size > 0 ? lacking : poolsOf(asking.wants);
    return areLegal(this.#searchFor(asking, null), this.#takers.takerOf(asking, needed), victims);
  }

  /** True if a request still fits once its victims, those of others and all that leave are gone. */
  stillFits(asking: AskingGang, { victims, room }: FoundVictims): boolean {
    const gone = victims.map(({ gang }) => gang);
    return this.isAllowedWithout(asking, gone) && this.fitsIn(room, gone);
  }

  /** True if quotas allow a request once these gangs, all victims and all that leave are gone. */
  isAllowedWithout(asking: AskingGang, gone: readonly Runner[]): boolean {
    const { quota } = this.#parts;
    const { mark } = quota;
    this.dischargeAll(gone);
    const allowed = this.lacking(asking).size === 0;
    quota.undo(mark);
    return allowed;
  }

  /** Takes off the use what these gangs, all victims and all that leave are charged with. */
  dischargeAll(gone: readonly Runner[]): void {
    this.#dischargeGone();
    dischargeGangs(this.#parts.quota, gone);
  }

  /** True if gangs leave, or are about to be preempted. */
  get hasLeaving(): boolean {
    return this.#runners.leaving().length + this.#chosen.size > 0;
  }

  /** Lets gangs give way for a reservation. */
  choose(victims: readonly Runner[]): void {
    for (const gang of victims) {
      this.#chosen.add(gang);
      this.#who.choose(gang.entry);
    }
    this.#bounds.noteGone(victims);
  }

  /** Gives a request its tokens and its room, beside those of its victims, so that no other gang of the round does. */
  book({ entry, wants }: Pick<AskingGang, "entry" | "wants">, { room, victims }: FoundVictims): void {
    this.choose(gangsOf(victims));
    this.budget.take(entry, wholeGangs(victims));
    this.charge(entry, wants);
    this.occupy(room);
  }

  /** What the strategies of its tree do not let a gang do. */
  strategyOf(entry: Entry): ReturnType<Takers["refusalOf"]> {
    return this.isPaused ? {} : this.#takers.refusalOf(entry);
  }

  /** The victims as a plan names them. */
  planned({ victims }: FoundVictims): readonly PlannedVictim[] {
    return plannedVictims(victims).map((victim) => this.#takers.inTree(victim));
  }

  get booked(): readonly BookedGang[] {
    return this.#booked;
  }

  charge(entry: Entry, wants: PoolAmounts): void {
    this.#booked.push({ entry, account: entry.account, uses: wants });
    for (const [pool, amount] of wants) this.#parts.quota.charge(entry.account, pool, amount);
  }

  /** Places a request as if all were gone that leave, and these gangs. They keep their room, too. */
  occupy({ cluster, groups }: RoomTry, gone: readonly Runner[] = []): KeptRoom["placed"] {
    const freed = this.free(cluster, gone);
    const { mark } = cluster.room;
    placeAll(cluster.room, groups);
    const placed = cluster.room.placedAfter(mark);
    for (const { node, fit } of freed) cluster.room.shift(node, fit, 1);
    return placed;
  }

  /**
   * True if quotas allow an amount now, and still do once all nominees have theirs and all victims are gone. The state
   * counts both meanwhile.
   */
  allows(asking: Pick<AskingGang, "lane">, pool: string, need: number): boolean {
    const { quota } = this.#parts;
    const { account, priority } = asking.lane;
    const of = { need, priority };
    if (this.#booked.length === 0) return quota.admits(account, pool, of);
    if (quota.admits(account, pool, of)) return true;
    const { mark } = quota;
    dischargeGangs(quota, this.#booked);
    const now = quota.admits(account, pool, of);
    quota.undo(mark);
    if (!now) return false;
    this.#dischargeGone();
    const later = quota.admits(account, pool, of);
    quota.undo(mark);
    return later;
  }

  #forQuota(asking: AskingGang, lacking: ReadonlySet<string>): FoundVictims | null {
    const search = this.#searchFor(asking, null);
    const rooms = this.#hopefulRooms(asking, lacking);
    if (rooms.length === 0) return null;
    const roomWithout = (gone: readonly Victim[]) => rooms.find((room) => this.fitsIn(room, gangsOf(gone))) ?? null;
    const fitsWithout = (gone: readonly Victim[]) => roomWithout(gone) !== null;
    const mayFitWithout = (gone: readonly RunningGang[]) =>
      rooms.some((room) => this.#mayFitIn(room, gone as readonly Runner[]));
    const victims = victimsFor({ ...search, fitsWithout, mayFitWithout }, this.#takers.takerOf(asking, lacking));
    const room = victims.length === 0 ? null : roomWithout(victims);
    return room === null ? null : { room, victims: victims as FoundVictims["victims"] };
  }

  /** If only nodes lack, the gangs of one cluster give way: where that costs least. */
  #forRoom(asking: AskingGang): VictimsAnswer {
    const pools = poolsOf(asking.wants);
    const rooms = this.#roomsForAll(asking);
    if (rooms.some((room) => this.fitsIn(room, []))) return "waits";
    let best: FoundVictims | null = null;
    for (const room of rooms) {
      const search = this.#searchFor(asking, room.cluster.name);
      const inRoom = {
        ...search,
        fitsWithout: (gone: readonly Victim[]) => this.fitsIn(room, gangsOf(gone)),
        mayFitWithout: (gone: readonly RunningGang[]) => this.#mayFitIn(room, gone as readonly Runner[]),
      };
      const taker = this.#takers.takerOf(asking, pools);
      const of = { found: victimsFor(inRoom, taker), nowMs: this.#nowMs };
      const victims = cheapestVictims(inRoom, taker, of) as FoundVictims["victims"];
      if (victims.length > 0 && (best === null || isCheaper(victims, best.victims, this.#nowMs))) {
        best = { room, victims };
      }
    }
    return best;
  }

  #searchFor(asking: Pick<AskingGang, "lane" | "entry">, cluster: string | null): VictimSearch {
    return this.#takers.searchBeside(this.#who.search(asking, cluster), asking.entry);
  }

  /** What protects the gangs that would give way for a gang if nobody were protected. `find` asks who that would be. */
  protectedFrom(of: Pick<AskingGang, "lane" | "entry">, find: () => FoundVictims | null): Protected | null {
    if (this.isPaused) return null;
    return this.#who.protectedFrom(of, () => gangsOf(find()?.victims ?? []));
  }

  lacking({ lane, wants }: Pick<AskingGang, "lane" | "wants">): ReadonlySet<string> {
    const { quota } = this.#parts;
    const { account, priority } = lane;
    const lacking = [...wants].filter(([pool, need]) => !quota.admits(account, pool, { need, priority }));
    return new Set(lacking.map(([pool]) => pool));
  }

  roomsOf({ lane, request }: Pick<AskingGang, "lane" | "request">): readonly RoomTry[] {
    return this.#parts.clustersFor(lane.shape.ask).flatMap(({ cluster, facts, block }) => {
      if (block !== null || lane.barred.includes(cluster.name)) return [];
      const room = tryIn(request, cluster, facts);
      return room.lacks === null ? [room] : [];
    });
  }

  /** True if a cluster has room for a request once these gangs, all victims and all that leave are gone. */
  fitsIn(tried: RoomTry, gone: readonly Runner[]): boolean {
    return this.#askWithout(tried, gone, fitGroups);
  }

  /** False: it has not, nor if fewer of these gangs are gone. */
  #mayFitIn(tried: RoomTry, gone: readonly Runner[]): boolean {
    return this.#askWithout(tried, gone, eachFits);
  }

  #askWithout({ cluster, groups }: RoomTry, gone: readonly Runner[], ask: typeof fitGroups): boolean {
    const { room } = cluster;
    const { mark } = room;
    this.free(cluster, gone);
    const answer = ask(room, groups);
    room.undo(mark);
    return answer;
  }

  /** Takes off a cluster's nodes the pods of gangs that are gone, and of all that leave. `room.undo` puts them back. */
  free(cluster: ClusterState, gone: readonly Runner[]): readonly PlacedPod[] {
    const all = new Set(this.#goneIn(cluster.name));
    for (const gang of gone) if (gang.admission.cluster === cluster.name) all.add(gang);
    const freed = [...all].flatMap((one) => this.podsOf(cluster, one));
    for (const { node, fit } of freed) cluster.room.shift(node, fit, -1);
    return freed;
  }

  /** The gangs that leave a cluster, and the victims in it that the round has chosen. */
  #goneIn(cluster: string): readonly Runner[] {
    const chosen = this.#chosen.size;
    if (this.#gone?.chosen !== chosen) {
      this.#gone = { chosen, byCluster: byCluster([...this.#runners.leaving(), ...this.#chosen]) };
    }
    return this.#gone.byCluster.get(cluster) ?? [];
  }

  /** The pods of a gang whose room is free once it has ended. */
  podsOf(cluster: ClusterState, runner: Runner): readonly PlacedPod[] {
    return leftPods(this.#parts.kept, runner, this.#runners.podsOf(cluster, runner));
  }

  #dischargeGone(): void {
    const { quota } = this.#parts;
    const leaving = this.#runners.leaving().filter(({ admission }) => admission.tokensReleasedMs === null);
    dischargeGangs(quota, leaving);
    dischargeGangs(quota, this.#chosen);
  }
}

function poolsOf(wants: PoolAmounts): ReadonlySet<string> {
  return new Set([...wants].flatMap(([pool, amount]) => (amount > 0 ? [pool] : [])));
}

function gangsOf(victims: readonly Victim[]): readonly Runner[] {
  return (victims as FoundVictims["victims"]).map(({ gang }) => gang);
}
