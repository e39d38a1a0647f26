import type { ClusterState } from "../capacity/cluster-state.ts";
import { eachFits } from "../capacity/place-all.ts";
import type { PlacedPod } from "../capacity/unseen-pods.ts";
import { fitGang, placeGang, wishesForDomains } from "../domains/place-gang.ts";
import type { Fleet } from "../fit/fleet.ts";
import { fitsEmpty, tryIn } from "../fit/requests.ts";
import { leftPods, type Reserved } from "../fit/reserved.ts";
import type { OvertakenGang, PlannedVictim } from "../model/preemption.ts";
import type {
  CapacityTry,
  GangClass,
  GangRecord,
  Request,
  ReservedCapacity,
  RunningAdmission,
  RunningVictim,
} from "../queues/records.ts";
import type { PoolAmounts } from "../usage/branch-use.ts";
import { cheapestVictims, isCheaper } from "../victims/cheapest-victims.ts";
import type { Protected } from "../victims/protection.ts";
import {
  dischargeGangs,
  type RunningGang,
  type Victim,
  type VictimSearch,
  whileGone,
} from "../victims/running-gang.ts";
import { areLegal, victimsFor } from "../victims/victims.ts";
import { plannedVictims, wholeGangs, withLeastGrowth } from "./growth.ts";
import { PreemptableGangs } from "./preemptable-gangs.ts";
import { Preemptors } from "./preemptors.ts";
import { RoundBudgets } from "./round-budgets.ts";
import { byCluster, type RunningAdmissions } from "./running-admissions.ts";
import { StayingGangs } from "./staying-gangs.ts";
import type { VictimBounds } from "./victim-bounds.ts";

/** Running gangs that are preempted, and the cluster that has capacity for a request once they are gone. */
export type FoundVictims = {
  readonly tried: CapacityTry;
  readonly victims: readonly RunningVictim[];
};

/** A gang that waits for others that leave, and what it needs. */
export type PendingGang = Pick<RunningGang, "account" | "uses"> & { readonly gang: GangRecord };

/** `waits`: it fits once gangs are gone that leave anyway. */
export type VictimsAnswer = FoundVictims | "waits" | null;

export type AskingGang = {
  readonly gangClass: GangClass;
  readonly gang: GangRecord;
  readonly request: Request;
  readonly requested: PoolAmounts;
};

/** The gangs that run, and what searches can find among them at most. Made again once what runs has changed. */
export type Running = { readonly runningAdmissions: RunningAdmissions; readonly bounds: VictimBounds };

/**
 * Whom a gang that waits may have preempted. `none`: its turn to search comes later, so that it takes only what is
 * free. `victims`: those that are not protected. `unprotected`: also those that are, to say what protects them.
 */
export type Search = "none" | "victims" | "unprotected";

type Searching = Exclude<Search, "none">;

type Candidates = { state: string; gang: GangRecord | null; tries: Map<Request, readonly CapacityTry[]> };

/**
 * Finds gangs that may be preempted, during one round. Gangs that leave anyway, and the victims that the round has
 * chosen, count as gone: others wait for them and do not preempt them again.
 */
export class FindVictims {
  readonly #fleet: Fleet;
  readonly #reserved: Reserved;
  readonly #nowMs: number;
  readonly #runningAdmissions: RunningAdmissions;
  readonly #who: PreemptableGangs;
  readonly #preemptors: Preemptors;
  readonly #chosen = new Set<RunningAdmission>();
  /** What the gangs are charged with for which the round has chosen victims. */
  readonly #pending: PendingGang[] = [];
  /** The gangs that are gone anyway, by cluster, for so many that were chosen. Null: not known yet. */
  #gone: { readonly chosen: number; readonly byCluster: ReturnType<typeof byCluster> } | null = null;
  readonly #bounds: VictimBounds;
  /** The clusters that may have capacity for the requests of the gang that was asked for last, in one state of use. */
  #candidates: Candidates = { state: "", gang: null, tries: new Map() };
  readonly budgets: RoundBudgets;
  readonly staying: StayingGangs;

  constructor(of: {
    readonly fleet: Fleet;
    readonly reserved: Reserved;
    readonly running: Running;
    readonly nowMs: number;
  }) {
    const { fleet, nowMs } = of;
    const { runningAdmissions, bounds } = of.running;
    this.#fleet = fleet;
    this.#reserved = of.reserved;
    this.#runningAdmissions = runningAdmissions;
    this.#bounds = bounds;
    this.#who = new PreemptableGangs(fleet, this.#runningAdmissions, nowMs);
    this.#preemptors = new Preemptors(
      fleet,
      () => this.staying.admittedCount + this.#pending.length + this.#chosen.size,
    );
    this.#nowMs = nowMs;
    this.staying = new StayingGangs({ queues: fleet.queues, runningAdmissions, who: this.#who, nowMs });
    this.budgets = new RoundBudgets(fleet.quota.queues, nowMs);
  }

  /** When the first gang that was skipped may be preempted. Infinite: none was. */
  get recheckAtMs(): number {
    return this.#who.recheckAtMs;
  }

  /** The victims for a request. Null: it does not fit, whoever is preempted. */
  find(asking: AskingGang, search: Search): VictimsAnswer {
    if (search === "none") return null;
    const found = this.#afterGone(() => {
      const lacking = this.shortPools(asking);
      return lacking.size > 0 ? this.#forQuota(asking, lacking, search) : this.#forCapacity(asking, search);
    });
    if (found === null || found === "waits") return found;
    const withVictims = (victims: FoundVictims["victims"]) => ({ ...found, victims });
    const fits = (victims: FoundVictims["victims"]) => this.stillServes(asking, withVictims(victims), search);
    const least = withVictims(withLeastGrowth(found.victims, { runningAdmissions: this.#runningAdmissions, fits }));
    if (search === "unprotected") return least;
    const over = this.budgets.overBy(asking.gang, wholeGangs(least.victims));
    if (over === null) return least;
    this.budgets.noteOver(asking.gang, over);
    return null;
  }

  /** True if a request that asks for one pool surely finds no victims, nor does one that asks for more of it. */
  findsNobody(asking: AskingGang): boolean {
    return this.#afterGone(() => this.#triesForAll(asking).length === 0);
  }

  /** The gangs that would be preempted for an amount of one pool, if capacity did not matter. Null: nobody can. */
  forPool(
    { gangClass, gang }: Pick<AskingGang, "gangClass" | "gang">,
    { pool, need }: { readonly pool: string; readonly need: number },
    search: Search,
  ): readonly Victim[] | null {
    if (search === "none") return null;
    const { quota } = this.#fleet;
    const of = { need, priority: gangClass.priority };
    return this.#afterGone(() => {
      if (quota.admits(gangClass.account, pool, of)) return [];
      const preemptor = this.#preemptors.preemptorOf(
        { gangClass, gang, requested: new Map([[pool, need]]) },
        new Set([pool]),
      );
      const searched = this.#searchFor({ gangClass, gang }, null, search);
      const own = this.#bounds.own(this.#who.searchAll({ gangClass, gang }), preemptor);
      const reached = this.#bounds.reached(preemptor, own);
      if (!whileGone(quota, reached, () => quota.admits(gangClass.account, pool, of))) return null;
      const victims = victimsFor(searched, preemptor);
      return victims.length > 0 ? victims : null;
    });
  }

  /** Decides while all count as gone that leave. */
  #afterGone<T>(decide: () => T): T {
    const { quota } = this.#fleet;
    const { mark } = quota;
    const state = `${quota.useVersion} ${this.#chosen.size}`;
    this.#dischargeGone();
    this.#bounds.enter(quota.useVersion, this.#reserved.kept);
    if (this.#candidates.state !== state) this.#candidates = { state, gang: null, tries: new Map() };
    const decided = decide();
    quota.undo(mark);
    return decided;
  }

  /** The clusters that may have the capacity once gangs have been preempted for all that a gang requests. */
  #triesForAll(asking: AskingGang): readonly CapacityTry[] {
    const { gang, request } = asking;
    if (this.#candidates.gang !== gang) this.#candidates = { ...this.#candidates, gang, tries: new Map() };
    const { tries } = this.#candidates;
    const known = tries.get(request) ?? this.#triesThatMayFit(asking, poolsOf(asking.requested));
    tries.set(request, known);
    return known;
  }

  /**
   * The clusters in which a request may fit once gangs have been preempted for it. No search finds it capacity in
   * another.
   */
  #triesThatMayFit(asking: AskingGang, pools: ReadonlySet<string>): readonly CapacityTry[] {
    const preemptor = this.#preemptors.preemptorOf(asking, pools);
    const own = this.#bounds.own(this.#who.searchAll(asking), preemptor);
    const tries = this.#bounds.triesWith(this.triesOf(asking), own);
    if (tries.length === 0) return tries;
    const reached = this.#bounds.reached(preemptor, own);
    const isAllowed = () => this.shortPools(asking).size === 0;
    if (!isAllowed() && !whileGone(this.#fleet.quota, reached, isAllowed)) return [];
    return tries.filter((tried) => this.#mayFitIn(tried, reached));
  }

  /** True if the round has chosen one of these victims for another gang. */
  overlaps({ victims }: FoundVictims): boolean {
    return victims.some(({ gang }) => this.#who.isChosen(gang.gang));
  }

  /** True if a request still fits once its victims are gone, and these may still go. */
  stillServes(asking: AskingGang, found: FoundVictims, search: Searching): boolean {
    return this.stillFits(asking, found) && this.#afterGone(() => this.#areLegal(asking, found.victims, search));
  }

  #areLegal(asking: AskingGang, victims: FoundVictims["victims"], search: Searching): boolean {
    const lacking = this.shortPools(asking);
    const needed = lacking.size > 0 ? lacking : poolsOf(asking.requested);
    const preemptor = this.#preemptors.preemptorOf(asking, needed, lacking.size === 0);
    return areLegal(this.#searchFor(asking, null, search), preemptor, victims);
  }

  /** True if a request still fits once its victims, those of others and all that leave are gone. */
  stillFits(asking: Pick<AskingGang, "gangClass" | "requested">, { victims, tried }: FoundVictims): boolean {
    const gone = victims.map(({ gang }) => gang);
    return this.isAllowedWithout(asking, gone) && this.fitsIn(tried, gone);
  }

  /** True if quotas allow a request once these gangs, all victims and all that leave are gone. */
  isAllowedWithout(asking: Pick<AskingGang, "gangClass" | "requested">, gone: readonly RunningAdmission[]): boolean {
    const { quota } = this.#fleet;
    const { mark } = quota;
    this.dischargeAll(gone);
    const allowed = this.shortPools(asking).size === 0;
    quota.undo(mark);
    return allowed;
  }

  /** Takes off the use what these gangs, all victims and all that leave are charged with. */
  dischargeAll(gone: readonly RunningAdmission[]): void {
    this.#dischargeGone();
    dischargeGangs(this.#fleet.quota, gone);
  }

  /** True if gangs leave, or are about to be preempted. */
  get hasLeaving(): boolean {
    return this.#runningAdmissions.leaving().length + this.#chosen.size > 0;
  }

  /** Lets gangs be preempted for a reservation. */
  choose(victims: readonly RunningAdmission[]): void {
    for (const gang of victims) {
      this.#chosen.add(gang);
      this.#who.choose(gang.gang);
    }
    this.#bounds.noteGone(victims);
  }

  /**
   * Gives a request its tokens and its capacity, beside those of its victims, so that no other gang of the round does.
   */
  reserveFor({ gang, requested }: Pick<AskingGang, "gang" | "requested">, { tried, victims }: FoundVictims): void {
    this.choose(gangsOf(victims));
    this.budgets.take(gang, wholeGangs(victims));
    this.charge(gang, requested);
    this.occupy(tried);
  }

  /** What the strategies of its tree do not let a gang do. */
  strategyOf(gang: GangRecord): ReturnType<Preemptors["refusalOf"]> {
    return this.#preemptors.refusalOf(gang);
  }

  /** The victims as a plan names them. */
  planned({ victims }: FoundVictims): readonly PlannedVictim[] {
    return plannedVictims(victims).map((victim) => this.#preemptors.inTree(victim));
  }

  /** A nominee that is overtaken, with the digest of its tree. */
  inTree(overtaken: OvertakenGang): OvertakenGang {
    const treeDigest = this.#preemptors.treeDigestOf(this.#fleet.queues.gangs.get(overtaken.jobUid)?.gangQueue.name);
    return treeDigest === undefined ? overtaken : { ...overtaken, treeDigest };
  }

  get pending(): readonly PendingGang[] {
    return this.#pending;
  }

  /** Those that are charged now, the nominees included about which nothing is decided yet. */
  #pendingNow(): readonly PendingGang[] {
    const contested = this.#reserved.contested.filter(({ excluded }) => !excluded);
    if (contested.length === 0) return this.#pending;
    return [
      ...this.#pending,
      ...contested.map(({ gang, requested }) => ({ gang, account: gang.account, uses: requested })),
    ];
  }

  charge(gang: GangRecord, requested: PoolAmounts): void {
    this.#pending.push({ gang, account: gang.account, uses: requested });
    for (const [pool, amount] of requested) this.#fleet.quota.charge(gang.account, pool, amount);
  }

  /** Places a request as if all were gone that leave, and these gangs. They keep their capacity, too. */
  occupy(tried: CapacityTry, gone: readonly RunningAdmission[] = []): ReservedCapacity["placed"] {
    const { cluster } = tried;
    const freed = this.free(cluster, gone);
    const { mark } = cluster.free;
    placeGang(cluster.free, tried);
    const placed = cluster.free.placedAfter(mark);
    for (const { node, fit } of freed) cluster.free.shift(node, fit, 1);
    return placed;
  }

  /**
   * True if quotas allow an amount now, and still do once all nominees have theirs and all victims are gone. The state
   * counts both meanwhile.
   */
  allows(asking: Pick<AskingGang, "gangClass">, pool: string, need: number): boolean {
    const { quota } = this.#fleet;
    const { account, priority } = asking.gangClass;
    const of = { need, priority };
    const pending = this.#pendingNow();
    if (pending.length === 0) return quota.admits(account, pool, of);
    if (quota.admits(account, pool, of)) return true;
    const { mark } = quota;
    dischargeGangs(quota, pending);
    const now = quota.admits(account, pool, of);
    quota.undo(mark);
    if (!now) return false;
    this.#dischargeGone();
    const later = quota.admits(account, pool, of);
    quota.undo(mark);
    return later;
  }

  #forQuota(asking: AskingGang, lacking: ReadonlySet<string>, search: Searching): FoundVictims | null {
    const searched = this.#searchFor(asking, null, search);
    const tries = this.#triesThatMayFit(asking, lacking);
    if (tries.length === 0) return null;
    const tryWithout = (gone: readonly Victim[]) => tries.find((tried) => this.fitsIn(tried, gangsOf(gone))) ?? null;
    const fitsWithout = (gone: readonly Victim[]) => tryWithout(gone) !== null;
    const mayFitWithout = (gone: readonly RunningGang[]) =>
      tries.some((tried) => this.#mayFitIn(tried, gone as readonly RunningAdmission[]));
    const victims = victimsFor(
      { ...searched, fitsWithout, mayFitWithout },
      this.#preemptors.preemptorOf(asking, lacking),
    );
    const tried = victims.length === 0 ? null : tryWithout(victims);
    return tried === null ? null : { tried, victims: victims as FoundVictims["victims"] };
  }

  /** If only capacity lacks, the gangs of one cluster are preempted: where that costs least. */
  #forCapacity(asking: AskingGang, search: Searching): VictimsAnswer {
    const pools = poolsOf(asking.requested);
    const tries = this.#triesForAll(asking);
    if (tries.some((tried) => this.fitsIn(tried, []))) return "waits";
    let best: FoundVictims | null = null;
    for (const tried of tries) {
      const searched = this.#searchFor(asking, tried.cluster.name, search);
      const inCluster = {
        ...searched,
        fitsWithout: (gone: readonly Victim[]) => this.fitsIn(tried, gangsOf(gone)),
        mayFitWithout: (gone: readonly RunningGang[]) => this.#mayFitIn(tried, gone as readonly RunningAdmission[]),
      };
      const preemptor = this.#preemptors.preemptorOf(asking, pools, true);
      const of = { found: victimsFor(inCluster, preemptor), nowMs: this.#nowMs };
      const victims = cheapestVictims(inCluster, preemptor, of) as FoundVictims["victims"];
      if (victims.length > 0 && (best === null || isCheaper(victims, best.victims, this.#nowMs))) {
        best = { tried, victims };
      }
    }
    return best;
  }

  #searchFor(asking: Pick<AskingGang, "gangClass" | "gang">, cluster: string | null, search: Searching): VictimSearch {
    return this.#preemptors.searchWithOthers(this.#who.search(asking, { cluster, search }), asking.gang);
  }

  /**
   * What protects the gangs that would be preempted for a gang if nobody were protected. `find` asks who that would be.
   */
  protectedFrom(of: Pick<AskingGang, "gangClass" | "gang">, find: () => FoundVictims | null): Protected | null {
    return this.#who.protectedFrom(of, () => gangsOf(find()?.victims ?? []));
  }

  shortPools({ gangClass, requested }: Pick<AskingGang, "gangClass" | "requested">): ReadonlySet<string> {
    const { quota } = this.#fleet;
    const { account, priority } = gangClass;
    const lacking = [...requested].filter(([pool, need]) => !quota.admits(account, pool, { need, priority }));
    return new Set(lacking.map(([pool]) => pool));
  }

  triesOf({ gangClass, request }: Pick<AskingGang, "gangClass" | "request">): readonly CapacityTry[] {
    return this.#fleet.clustersFor(gangClass.shape.ask).flatMap(({ cluster, facts, block }) => {
      if (block !== null || gangClass.excludedClusters.includes(cluster.name)) return [];
      const tried = tryIn(request, cluster, facts);
      // Where no domain is large enough, no victims help.
      const isInVain = tried.lacks !== null || (wishesForDomains(tried) && !fitsEmpty(tried));
      return isInVain ? [] : [tried];
    });
  }

  /** True if a cluster has capacity for a request once these gangs, all victims and all that leave are gone. */
  fitsIn(tried: CapacityTry, gone: readonly RunningAdmission[]): boolean {
    return this.#askWithout(tried, gone, fitGang);
  }

  /** False: it has not, nor if fewer of these gangs are gone. */
  #mayFitIn(tried: CapacityTry, gone: readonly RunningAdmission[]): boolean {
    return this.#askWithout(tried, gone, (free, { groups }) => eachFits(free, groups));
  }

  #askWithout(tried: CapacityTry, gone: readonly RunningAdmission[], ask: typeof fitGang): boolean {
    const { cluster } = tried;
    const { free } = cluster;
    const { mark } = free;
    this.free(cluster, gone);
    const answer = ask(free, tried);
    free.undo(mark);
    return answer;
  }

  /**
   * Takes off a cluster's nodes the pods of gangs that are gone, and of all that leave. `capacity.undo` puts them back.
   */
  free(cluster: ClusterState, gone: readonly RunningAdmission[]): readonly PlacedPod[] {
    const all = new Set(this.#goneIn(cluster.name));
    for (const gang of gone) if (gang.admission.cluster === cluster.name) all.add(gang);
    const freed = [...all].flatMap((one) => this.podsOf(cluster, one));
    for (const { node, fit } of freed) cluster.free.shift(node, fit, -1);
    return freed;
  }

  /** The gangs that leave a cluster, and the victims in it that the round has chosen. */
  #goneIn(cluster: string): readonly RunningAdmission[] {
    const chosen = this.#chosen.size;
    if (this.#gone?.chosen !== chosen) {
      this.#gone = { chosen, byCluster: byCluster([...this.#runningAdmissions.leaving(), ...this.#chosen]) };
    }
    return this.#gone.byCluster.get(cluster) ?? [];
  }

  /** The pods of a gang whose capacity is free once it has ended. */
  podsOf(cluster: ClusterState, running: RunningAdmission): readonly PlacedPod[] {
    return leftPods(this.#reserved.kept, running, this.#runningAdmissions.podsOf(cluster, running));
  }

  #dischargeGone(): void {
    const { quota } = this.#fleet;
    const leaving = this.#runningAdmissions.leaving().filter(({ admission }) => admission.tokensReleasedMs === null);
    dischargeGangs(quota, leaving);
    dischargeGangs(quota, this.#chosen);
  }
}

function poolsOf(requested: PoolAmounts): ReadonlySet<string> {
  return new Set([...requested].flatMap(([pool, amount]) => (amount > 0 ? [pool] : [])));
}

function gangsOf(victims: readonly Victim[]): readonly RunningAdmission[] {
  return (victims as FoundVictims["victims"]).map(({ gang }) => gang);
}
