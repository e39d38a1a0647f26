import { compareText } from "../../../runtime/compare-text.ts";
import { liveAdmission } from "../../job/job.ts";
import { type AgeingInBands, ageingOf } from "../ageing.ts";
import type { PlanGang } from "../plan-gang.ts";
import { haltOf, isSameStop, type QueueStop } from "../queue-stop.ts";
import { type LimitedTenant, RunningJobs } from "../running-jobs.ts";
import type { AskShape } from "./ask-shape.ts";
import { AskShapes } from "./ask-shapes.ts";
import { insertEntry, removeEntry } from "./entry-order.ts";
import { growthList, hasLeaving, isHeld, isWaiting, laneKey, staysInLane } from "./gang-place.ts";
import type { Lacking } from "./grow.ts";
import type { Holding } from "./holders.ts";
import type { LaneOption } from "./lane-options.ts";
import { changeLane, forgetOrder } from "./lane-order.ts";
import { forgetHead, leaveLists, listAwake, setRestless } from "./lane-turns.ts";
import { newLane, newLine } from "./new-lane.ts";
import { PassingLanes } from "./passing-lanes.ts";
import type { Account } from "./quota-levels.ts";
import type { QuotaBlock, QuotaState } from "./quota-state.ts";
import type { LevelList } from "./quota-waits.ts";
import type { LaneRefusal } from "./refused.ts";
import type { Request } from "./requests.ts";
import type { LineRunners } from "./runners.ts";
import { TenantCounts } from "./tenant-counts.ts";
import { TreeDigests } from "./tree-digests.ts";

/** A gang, and the place that it has in its queue. */
export type Entry = {
  gang: PlanGang;
  readonly line: Line;
  readonly shape: AskShape;
  readonly account: Account;
  /** Null: the gang does not wait, or waits for itself. */
  lane: Lane | null;
  /** The cause that was last told of why the gang waits, by its `causeKey`. 0: none was told. */
  said: number;
  /** What it lacks if it runs with fewer members than its job has. Null: nobody has asked. */
  lacks: Lacking | null;
};

/**
 * Waiting gangs that a plan cannot tell apart but by their age. They have one queue, project, namespace, ask and
 * priority, and older admissions of theirs have not left the same clusters. If the first does not fit, none does. Where
 * gangs age, those that waited before form lanes of their own: in every lane the older one has waited for longer.
 */
export type Lane = {
  readonly key: string;
  readonly queue: string;
  readonly namespace: string;
  readonly project: string;
  readonly line: Line;
  readonly shape: AskShape;
  readonly account: Account;
  readonly priority: number;
  readonly barred: readonly string[];
  /** The tenant whose limit of running jobs kept its gangs waiting when the last round looked. Null: none did. */
  full: LimitedTenant | null;
  /** The oldest first. */
  readonly entries: Entry[];
  /** The place of the first entry that the round has not admitted. */
  at: number;
  /** True: the next round looks at its first gang. */
  awake: boolean;
  /** True: it is among the `awake` ones of its queue. */
  isListed: boolean;
  /**
   * Why each round looks at it: its lists do not hold everything that can change its refusal. `tokens`: it may become
   * the gang in the pools' waiting lines, or leaves room for that one. `victims`: once any fact changes, or in time,
   * others may give way for it, or a reservation keep it out no more. Null: its lists hold everything.
   */
  restless: "tokens" | "victims" | "always" | null;
  /** True: if it may preempt others, it looks for them when a round looks at it. */
  maySearch: boolean;
  /** How often `SearchTurns` had told all lanes to look when this one had its turn last. */
  toldUpTo: number;
  refusal: LaneRefusal | null;
  /** The cause that its gangs were last told of, by its `causeKey`. */
  said: number;
  /** The requests for whose room it waits. */
  readonly requests: Request[];
  /** The quotas that kept it refused, and the lists of those that wait for quota with it. */
  closedBy: readonly QuotaBlock[];
  readonly waitsIn: LevelList[];
  /** The alternatives for its one flavored resource. Null: it has not just one. Undefined: not looked up yet. */
  options: readonly LaneOption[] | null | undefined;
};

/** The gangs of one queue. */
export type Line = {
  readonly name: string;
  readonly lanes: Map<string, Lane>;
  /** The lanes in the order of their first gangs. Null: not known. */
  order: Lane[] | null;
  /** The lanes that may get reservations. Null: not known since gangs came or went, or lanes were looked at. */
  waitedLong: WaitedLong | null;
  /** True: some of its lanes request no flavored resource. Null: not known since lanes came. */
  hasUnflavored: boolean | null;
  /** Those that are awake, some that have fallen asleep, and some for which something may have come; each once. */
  readonly awake: Lane[];
  /** How many of these were awake when a round looked at them last. */
  keptAwake: number;
  /** How many of its lanes are restless. */
  restless: number;
  /** Gangs that wait for themselves. */
  readonly held: Set<Entry>;
  /** Gangs that run with fewer members than their jobs have, in their order; and elastic ones. */
  readonly growing: Entry[];
  readonly stretching: Entry[];
  /** Gangs with a live admission. */
  readonly running: Set<Entry>;
  /** The same as searches for victims see them. Null: not known since one came or went. */
  runners: LineRunners | null;
  /** What stops the queue. Null: its gangs are admitted. */
  stop: QueueStop | null;
  /** How the gangs age that wait. Null: they do not. */
  ageing: AgeingInBands | null;
  /** While the order of its lanes stays as it is. Null: no time changes it. */
  rankedMs: { readonly from: number; readonly until: number } | null;
  /** The first lane, if the queue is strict and the lane was refused. Null: not known, or it was not. */
  head: Lane | null;
  /** The first gang with a reservation, if the queue is strict. Others wait behind it, unless they may pass it. */
  reserved: Entry | null;
  /** The gang behind which the others were last told that they wait. */
  saidHead: string;
  /** The queue that ran as many jobs as it may when the last round ended: this one, or one above it. Null: none did. */
  full: string | null;
  /** True: a round passed over its lanes because of that. What they wait for may have come. */
  passedOver: boolean;
  /** How many gangs wait, those that wait for themselves included. */
  waiting: number;
};

/** The first refused lanes of a queue whose gangs have waited long enough: it stays so from one time until another. */
export type WaitedLong = { readonly lanes: readonly Lane[]; readonly fromMs: number; readonly nextMs: number };

/** Every gang by uid, sorted into the lines of queues. */
export class GangLines {
  readonly entries = new Map<string, Entry>();
  /** The tokens of gangs, for those whose tokens somebody asked for. */
  readonly holdings = new WeakMap<PlanGang, readonly Holding[]>();
  readonly lines = new Map<string, Line>();
  /** Those of `lines` by name. Null: not known since one came. */
  #byName: readonly Line[] | null = null;
  /** Gangs whose cause was not told yet, or may have changed. */
  readonly fresh = new Set<Entry>();
  /** Gangs with something in a cluster that leaves. */
  readonly leaving = new Set<Entry>();
  /** Gangs that wait for a time. */
  readonly timed = new Set<Entry>();
  readonly restless = new Set<Lane>();
  /** The restless lanes that every round looks at. */
  readonly sleepless = new Set<Lane>();
  readonly passing = new PassingLanes();
  /** Gangs for which others give way. */
  readonly nominees = new Set<Entry>();
  readonly tenants = new TenantCounts();
  readonly digests = new TreeDigests(this.entries);
  readonly #quota: QuotaState;
  /** The gang that the last round gave the planner's place in waiting lines. */
  #inLine: string | null = null;
  readonly #shapes = new AskShapes();

  constructor(quota: QuotaState) {
    this.#quota = quota;
  }

  set(uid: string, gang: PlanGang | null): void {
    const before = this.entries.get(uid);
    if (before !== undefined && gang !== null && staysInLane(before, gang)) {
      const isChanged = before.gang.generation !== gang.generation;
      before.gang = gang;
      if (isChanged) this.sayAgain(uid);
      return;
    }
    if (before !== undefined) this.#remove(before);
    if (gang !== null) this.#add(gang, before);
  }

  /** Notes which gang has the planner's place in waiting lines. If it is another one, the causes of both are new. */
  noteInLine(uid: string | null): void {
    if (uid === this.#inLine) return;
    for (const one of [uid, this.#inLine]) {
      const entry = this.entries.get(one ?? "");
      if (entry !== undefined && isWaiting(entry.gang)) this.fresh.add(entry);
    }
    this.#inLine = uid;
  }

  /** Lets the next round tell a gang's cause again. */
  sayAgain(uid: string): void {
    const entry = this.entries.get(uid);
    if (entry === undefined || !isWaiting(entry.gang)) return;
    entry.said = 0;
    this.fresh.add(entry);
  }

  /** Lets gangs whose time has come enter their lanes. */
  passTime(nowMs: number): void {
    for (const entry of [...this.timed]) {
      if ((entry.gang.backoff?.notBeforeMs ?? 0) > nowMs) continue;
      this.timed.delete(entry);
      if (isHeld(entry.gang, nowMs)) continue;
      entry.line.held.delete(entry);
      this.#enterLane(entry);
    }
  }

  /**
   * Finds out which queues are stopped, whose gangs' causes are new, and where gangs age, after a queue has changed.
   */
  readQueues(): void {
    for (const line of this.lines.values()) {
      this.#readAgeing(line);
      const stop = haltOf(line.name, this.#quota.queues);
      if (isSameStop(stop, line.stop)) continue;
      line.stop = stop;
      for (const entry of waitingIn(line)) this.fresh.add(entry);
    }
  }

  #readAgeing(line: Line): void {
    const before = line.ageing;
    line.ageing = ageingOf(this.#quota.queues.get(line.name));
    forgetOrder(line);
    if ((before === null) === (line.ageing === null)) return;
    for (const entry of [...line.lanes.values()].flatMap(({ entries }) => [...entries])) {
      this.#leaveLane(entry);
      this.#enterLane(entry);
    }
  }

  /** Counts the jobs that are admitted now. */
  countRunning(): RunningJobs {
    const running = new RunningJobs(this.#quota.queues, this.tenants.limited);
    for (const { name, running: gangs } of this.lines.values()) if (gangs.size > 0) running.addIn(name, gangs.size);
    this.tenants.addTo(running);
    return running;
  }

  /** Notes which lanes wait because of the number of jobs of their tenants. `begins`: the round is about to decide. */
  noteFullTenants(running: RunningJobs, { begins }: { readonly begins: boolean }): void {
    if (!this.tenants.areLimited()) return;
    for (const { lanes } of this.lines.values()) {
      for (const lane of lanes.values()) this.#noteFullTenant(lane, running.fullTenant(lane), begins);
    }
  }

  /**
   * If it is another tenant, the causes of the lane's gangs are new. Before a round, a strict queue forgets a head that
   * waits for that, since others may pass it, and a lane that waits for it no more is looked at as if it were new.
   */
  #noteFullTenant(lane: Lane, full: LimitedTenant | null, begins: boolean): void {
    if (begins && full !== null && lane.line.head === lane) lane.line.head = null;
    if (full === lane.full) return;
    lane.full = full;
    lane.line.waitedLong = null;
    for (const entry of lane.entries) this.fresh.add(entry);
    if (begins && full === null) this.lookAgain(lane);
  }

  /** Notes which queue keeps a line's gangs waiting because of its number of jobs. If it is another, causes are new. */
  noteFull(line: Line, full: string | null): void {
    if (full === line.full) return;
    line.full = full;
    for (const entry of waitingIn(line)) this.fresh.add(entry);
  }

  wake(lane: Lane): void {
    lane.awake = true;
    listAwake(lane);
  }

  /** Lets the next round decide about a lane as if none had. */
  lookAgain(lane: Lane): void {
    lane.refusal = null;
    lane.maySearch = true;
    forgetHead(lane.line);
    if (lane.entries.length > 0) this.wake(lane);
  }

  /** Lets the next round decide about a queue as if none had. */
  lookAgainIn(line: Line): void {
    line.passedOver = false;
    for (const lane of line.lanes.values()) this.lookAgain(lane);
  }

  #add(gang: PlanGang, before: Entry | undefined): void {
    const { project, namespace, queue } = gang;
    const line = this.#lineOf(queue);
    const account = this.#quota.account(queue, project, namespace);
    // A change may have recorded another reason, also one that is over already, such as a suspension.
    const said = before?.gang.generation === gang.generation ? before.said : 0;
    const entry: Entry = { gang, line, account, shape: this.#shapes.add(gang), lane: null, said, lacks: null };
    this.entries.set(gang.uid, entry);
    this.digests.note(gang, 1);
    if (hasLeaving(gang)) this.leaving.add(entry);
    if (liveAdmission(gang) !== null) {
      line.running.add(entry);
      line.runners = null;
      this.tenants.count(gang, 1);
    }
    if (isWaiting(gang)) this.#enter(entry);
    else {
      const list = growthList(entry);
      if (list !== null) insertEntry(list, entry);
    }
  }

  #enter(entry: Entry): void {
    this.fresh.add(entry);
    entry.line.head = null;
    entry.line.waiting += 1;
    if (!isHeld(entry.gang, Number.NEGATIVE_INFINITY)) {
      this.#enterLane(entry);
      return;
    }
    entry.line.held.add(entry);
    if (entry.gang.nomination !== undefined) this.nominees.add(entry);
    if (entry.gang.backoff !== null) this.timed.add(entry);
  }

  #enterLane(entry: Entry): void {
    const { line } = entry;
    const key = laneKey(entry.gang, line);
    const lane = line.lanes.get(key) ?? newLane(key, entry);
    line.lanes.set(key, lane);
    entry.lane = lane;
    changeLane(lane, () => insertEntry(lane.entries, entry));
    if (lane.entries.length === 1 || lane.restless !== null) this.lookAgain(lane);
    if (lane.entries.length === 1) {
      this.passing.add(lane);
      line.hasUnflavored = null;
    }
    line.head = null;
    this.fresh.add(entry);
  }

  #remove(entry: Entry): void {
    const { gang, line } = entry;
    this.entries.delete(gang.uid);
    this.digests.note(gang, -1);
    this.leaving.delete(entry);
    this.#shapes.drop(entry.shape);
    this.fresh.delete(entry);
    this.timed.delete(entry);
    this.nominees.delete(entry);
    line.held.delete(entry);
    if (line.running.delete(entry)) {
      this.tenants.count(gang, -1);
      line.runners = null;
    }
    if (isWaiting(gang)) line.waiting -= 1;
    const list = growthList(entry);
    if (list !== null) removeEntry(list, entry);
    this.#leaveLane(entry);
  }

  #leaveLane(entry: Entry): void {
    const { line, lane } = entry;
    if (lane === null) return;
    entry.lane = null;
    line.head = null;
    changeLane(lane, () => removeEntry(lane.entries, entry));
    // Whom it may preempt depends on its first gang, too.
    if (lane.restless !== null) this.lookAgain(lane);
    if (lane.entries.length > 0) return;
    line.lanes.delete(lane.key);
    lane.awake = false;
    setRestless(lane, null, this);
    this.passing.delete(lane);
    leaveLists(lane);
  }

  #lineOf(name: string): Line {
    const known = this.lines.get(name);
    if (known !== undefined) return known;
    const { queues } = this.#quota;
    const line = newLine(name, { stop: haltOf(name, queues), ageing: ageingOf(queues.get(name)) });
    this.lines.set(name, line);
    this.#byName = null;
    return line;
  }

  /** The lines by the names of their queues. */
  get byName(): readonly Line[] {
    this.#byName ??= [...this.lines.values()].sort((a, b) => compareText(a.name, b.name));
    return this.#byName;
  }
}

/** The first gang of a lane that the round has not admitted. */
export function headOf(lane: Lane): Entry | undefined {
  return lane.entries[lane.at];
}

/** The gangs of a queue that wait, those that wait for themselves included. */
export function waitingIn(line: Line): Entry[] {
  return [...[...line.lanes.values()].flatMap(({ entries }) => entries), ...line.held];
}
