import { append } from "../../../runtime/lists.ts";
import type { PlaceInLine, PlannedAdmission } from "../plan-types.ts";
import type { PlannedPreemption } from "../preemption.ts";
import type { RunningJobs } from "../running-jobs.ts";
import { borrowingLevel } from "./branch-use.ts";
import { type CycleHead, type CycleTurns, newTurns, nextGrowing, type WaitingHead } from "./cycle-turns.ts";
import { DecideBeside } from "./decide-beside.ts";
import { DecideLane } from "./decide-lane.ts";
import { FindReservations } from "./find-reservations.ts";
import { type BookedGang, FindVictims } from "./find-victims.ts";
import { type Entry, headOf, type Lane, type Line } from "./gang-lines.ts";
import { growEntry, missingAmounts } from "./grow.ts";
import { HeadOrder } from "./head-order.ts";
import {
  dropSleeping,
  endHope,
  forgetHead,
  gatherHopeful,
  isWakeful,
  mayHavePassed,
  mayTakeTurn,
  waitsForItself,
} from "./lane-turns.ts";
import { isBehind, LaneWalk } from "./lane-walk.ts";
import { rankOf } from "./line-ageing.ts";
import { newReservations } from "./new-reservations.ts";
import { decideNominees } from "./nominees.ts";
import { type RoundBounds, RoundStopped } from "./round-bounds.ts";
import type { Parts } from "./state-parts.ts";

/** The decisions of a round, before anything is said about them. */
export type RoundResult = {
  readonly admissions: readonly PlannedAdmission[];
  readonly inLine: PlaceInLine | null;
  readonly preemptions: readonly PlannedPreemption[];
  /** The gangs whose victims have not left, and that are charged with what they need. */
  readonly booked: readonly BookedGang[];
  /** The jobs whose nomination ends. */
  readonly withdrawn: readonly string[];
  /** When gangs may be preempted that are protected until then. Infinite: none is in the way. */
  readonly recheckAtMs: number;
  /** When the next gang has waited long enough for a reservation. Infinite: none will have. */
  readonly reserveAtMs: number;
  /** The lanes that were looked at and refused. */
  readonly refused: readonly Lane[];
  /** True if a bound ended the round or its searches: lanes are left that were not looked at. */
  readonly more: boolean;
};

/**
 * The cycles of one round. Each cycle takes one head of every queue, which the room and the quotas allow as the cycle
 * begins: a gang that runs with fewer members than its job has, or else the first one that waits. It decides about the
 * heads in the order of `HeadOrder`. A head that no longer fits on its turn waits for the next cycle. The cycles end
 * once one of them changes nothing. Only lanes that are awake are looked at.
 */
export class Cycles {
  readonly #parts: Parts;
  readonly #bounds: RoundBounds;
  readonly #decide: DecideLane;
  readonly #beside: DecideBeside;
  readonly #victims: FindVictims;
  readonly #reservations: FindReservations;
  readonly #nowMs: number;
  readonly #admissions: PlannedAdmission[] = [];
  readonly #preemptions: PlannedPreemption[] = [];
  readonly #withdrawn: string[] = [];
  readonly #refused: Lane[] = [];
  readonly #touched = new Set<Lane>();
  /** The lanes of strict queues that were looked at and got nothing. */
  readonly #passed = new Set<Lane>();
  #inLine: PlaceInLine | null = null;
  /** True: some gang was given something in a cycle of this round. */
  #isMoved = false;
  /** True: queues know their lanes for which something may have come. */
  #isGathered = false;
  /** The admissions after which hopeful lists were looked at last. */
  #closedAt = 0;
  readonly #running: RunningJobs;

  constructor(parts: Parts, at: { readonly number: number; readonly nowMs: number }, bounds: RoundBounds) {
    this.#parts = parts;
    this.#nowMs = at.nowMs;
    this.#running = parts.lines.countRunning();
    this.#bounds = bounds;
    this.#victims = new FindVictims(parts, at.nowMs);
    this.#decide = new DecideLane(parts, at.number, this.#victims);
    this.#beside = new DecideBeside(parts, this.#decide, at.nowMs);
    this.#reservations = new FindReservations(parts, at.nowMs, this.#victims);
  }

  run(): RoundResult {
    this.#admitNominees();
    // Sleeping lanes do not get the room and quota that are kept for nominees.
    if (this.#parts.lines.nominees.size > 0) this.#decide.closeHopeful();
    this.#isGathered ||= gatherHopeful(this.#parts);
    const { lines, turns } = this.#parts;
    const { searchesMax: max = Number.POSITIVE_INFINITY } = this.#bounds;
    turns.begin(lines, { max, nowMs: this.#nowMs });
    lines.noteFullTenants(this.#running, { begins: true });
    const all = this.#allTurns();
    const { cyclesMax = Number.POSITIVE_INFINITY } = this.#bounds;
    let open = all;
    let hasMoved = true;
    for (let cycle = 0; open.length > 0 && hasMoved && cycle < cyclesMax && !this.#isFull(); cycle++) {
      this.#closeHopeful();
      const heads = open.flatMap((turns) => this.#headOf(turns) ?? []);
      hasMoved = this.#runCycle(heads);
      open = heads.map(({ turns }) => turns);
    }
    const isCut = (hasMoved && open.length > 0) || this.#stretch(all);
    // Nothing that comes later in a round helps a gang that it has refused.
    for (const lane of this.#refused) lane.awake = false;
    endHope(this.#parts, { isCut, passed: this.#passed });
    lines.noteFullTenants(this.#running, { begins: false });
    const reserveAtMs = isCut ? Number.POSITIVE_INFINITY : this.#reserve();
    for (const line of lines.lines.values()) lines.noteFull(line, this.#running.fullAt(line.name));
    for (const { line, lanes } of all) dropSleeping(line, { isWalked: lanes !== null });
    const preempts = { preemptions: this.#preemptions, booked: this.#victims.booked, withdrawn: this.#withdrawn };
    const recheckAtMs = Math.min(this.#victims.recheckAtMs, this.#victims.budget.recheckAtMs);
    const decided = { admissions: this.#admissions, inLine: this.#inLine, refused: this.#refused };
    return { ...decided, ...preempts, recheckAtMs, reserveAtMs, more: isCut || turns.areLeft };
  }

  /** Gangs for which others give way, and those with reservations, go before all others. */
  #admitNominees(): void {
    const { lines } = this.#parts;
    for (const line of lines.lines.values()) line.reserved = null;
    const answers = decideNominees(this.#reserving(), () => this.#checkStopped());
    // Once less is kept for nominees, others may take more.
    if (answers.some(({ answer }) => answer !== "waits")) this.#parts.turns.addAll(lines);
    for (const { entry, answer } of answers) {
      if (answer === "withdrawn") this.#withdrawn.push(entry.gang.uid);
      if (typeof answer === "string") continue;
      if ("planned" in answer) this.#preemptions.push(answer);
      else this.#admissions.push(answer);
      lines.fresh.delete(entry);
    }
    this.#beside.wakePassing();
  }

  #reserving() {
    const of = { parts: this.#parts, decide: this.#decide, victims: this.#victims, running: this.#running };
    const at = { nowMs: this.#nowMs, perPool: this.#bounds.reservationsPerPool ?? 1 };
    return { ...of, ...at, reservations: this.#reservations };
  }

  /** Gives new reservations, and returns when the next gang has waited long enough for one. */
  #reserve(): number {
    const { made, recheckAtMs } = newReservations(this.#reserving());
    append(this.#preemptions, made);
    return recheckAtMs;
  }

  /** Forgets how far the round came in each lane: its gangs wait until their admissions are recorded. */
  end(): void {
    for (const lane of this.#touched) {
      lane.at = 0;
      forgetHead(lane.line);
    }
  }

  #allTurns(): readonly CycleTurns[] {
    const all: CycleTurns[] = [];
    const { lines } = this.#parts;
    // The order must not depend on that of the changes.
    for (const line of lines.byName) {
      if (!this.#isOpen(line)) continue;
      const isStrict = this.#parts.isStrict(line.name);
      if (isStrict && mayHavePassed(lines, line)) line.head = null;
      const mayTake = mayTakeTurn(line, { isStrict, isGathered: this.#isGathered });
      if (mayTake) all.push(newTurns(line, isStrict));
      else dropSleeping(line);
    }
    return all;
  }

  /** False: the queue is stopped. A queue that was full, and is not full now, is looked at as if it were new. */
  #isOpen(line: Line): boolean {
    if (line.stop !== null) {
      dropSleeping(line);
      return false;
    }
    if (line.passedOver && this.#running.fullAt(line.name) === null) this.#parts.lines.lookAgainIn(line);
    return true;
  }

  #isFull(): boolean {
    return this.#admissions.length + this.#preemptions.length >= this.#bounds.admissionsMax;
  }

  /** Decides about heads in their order. False: it changed nothing, so that another cycle would not either. */
  #runCycle(heads: readonly CycleHead[]): boolean {
    const order = new HeadOrder(this.#parts.quota, heads);
    let hasMoved = false;
    for (let head = order.next(); head !== undefined && !this.#isFull(); head = order.next()) {
      this.#checkStopped();
      const moved = head.waits === null ? this.#grow(head) : this.#admit(head, head.waits);
      hasMoved ||= moved;
    }
    return hasMoved;
  }

  #checkStopped(): void {
    if (this.#bounds.isStopped?.()) throw new RoundStopped();
  }

  /** The head of a queue in a cycle that begins now. Null: the queue has none left in this round. */
  #headOf(turns: CycleTurns): CycleHead | null {
    const growing = nextGrowing(this.#parts, turns);
    if (growing !== undefined) {
      const wants = missingAmounts(growing, this.#parts.resources);
      return this.#asHead(turns, { entry: growing, waits: null, wants });
    }
    this.#searchBehind(turns);
    while (!this.#isFullLine(turns)) {
      this.#checkStopped();
      const lane = this.#nextLane(turns);
      if (lane === null) return null;
      const entry = headOf(lane) as Entry;
      if (this.#running.fullTenant(lane) !== null) {
        // Others pass it, also in a strict queue: it waits for gangs of its tenant, not for room.
        lane.awake = false;
        turns.lanes?.drop();
        if (turns.line.head === lane) forgetHead(turns.line);
        continue;
      }
      const waits = this.#assign(turns, lane, entry);
      if (waits !== null) return this.#asHead(turns, { entry, waits, wants: waits.assignment.wants });
    }
    return null;
  }

  #asHead(turns: CycleTurns, of: Pick<CycleHead, "entry" | "waits" | "wants">): CycleHead {
    const { quota } = this.#parts;
    turns.first ??= of.waits === null ? "all" : of.entry;
    const leaf = quota.branches.leaf(turns.line.name);
    const level = leaf === null ? 0 : borrowingLevel(quota, leaf, of.wants);
    return { turns, leaf, level, rank: rankOf(of.entry, this.#nowMs), ...of };
  }

  /** What the first gang of a lane would get now. Null: nothing, and the queue goes on to its next lane. */
  #assign(turns: CycleTurns, lane: Lane, entry: Entry): WaitingHead | null {
    const found = this.#mayFit(lane) ? this.#find(lane, entry) : null;
    if (found === null) this.#pass(turns, lane);
    return found;
  }

  #find(lane: Lane, entry: Entry): WaitingHead | null {
    const { turns } = this.#parts;
    const mayPreempt = this.#decide.mayPreempt(lane, entry);
    const searches = mayPreempt && turns.take(lane);
    this.#victims.isPaused = mayPreempt && !searches;
    const isRefused = this.#beside.staysRefused(lane);
    const assignment = isRefused ? null : this.#beside.assign(lane, entry);
    this.#victims.isPaused = false;
    if (assignment?.kind === "preempts") turns.noteFound();
    if (assignment !== null) return { lane, assignment };
    lane.maySearch = false;
    if (searches && this.#isMoved) turns.addAgain(lane);
    if (!isRefused) this.#refused.push(lane);
    return null;
  }

  /** Lanes that are decided after others were given something may take more than when they looked last. */
  #searchBehind(turns: CycleTurns): void {
    const { first, searchesBehind } = turns;
    if (first === null || searchesBehind || !this.#isMoved) return;
    turns.searchesBehind = true;
    turns.onlyWakeful = false;
    this.#searchAfter(first, turns.line);
  }

  #searchAfter(first: Entry | "all", line: Line): void {
    const { lines, turns } = this.#parts;
    turns.addNow(line, lines, (lane) => first === "all" || isBehind(lane, first, this.#nowMs));
  }

  /** True if a lane is awake. Wakes it if something may have come for it, unless the round has given it away since. */
  #mayFit(lane: Lane): boolean {
    if (isWakeful(lane)) this.#parts.lines.wake(lane);
    return lane.awake;
  }

  /** True if a queue has no turn for gangs that wait, because it runs as many jobs as it may. Its gangs still grow. */
  #isFullLine({ line }: CycleTurns): boolean {
    if (this.#running.fullAt(line.name) === null) return false;
    line.passedOver = true;
    return true;
  }

  #grow({ turns, entry }: CycleHead): boolean {
    turns.growing += 1;
    const grown = growEntry(this.#parts, entry);
    if (grown !== null) this.#admissions.push(grown);
    this.#isMoved ||= grown !== null;
    return true;
  }

  /** Gives a head what it was assigned, or its place in the waiting line. False: it no longer fits. */
  #admit({ turns, entry }: CycleHead, { lane, assignment }: WaitingHead): boolean {
    if (this.#isFullLine(turns) || this.#running.fullTenant(lane) !== null) return false;
    if (assignment.kind === "inLine") {
      this.#standInLine(turns, lane, entry);
      return true;
    }
    if (assignment.kind === "preempts") return this.#preempt({ turns, entry }, { lane, assignment });
    const planned = this.#beside.take(lane, entry, assignment);
    if (planned === null) return false;
    if ("victims" in planned) this.#preemptions.push(planned);
    else this.#admissions.push(planned);
    this.#goOn(turns, lane);
    return true;
  }

  /** Lets others give way for a head. False: it no longer fits. */
  #preempt({ turns, entry }: Pick<CycleHead, "turns" | "entry">, { lane, assignment }: WaitingHead): boolean {
    const outcome = this.#beside.preempt(lane, entry, assignment);
    if (outcome === "skipped") return false;
    if (outcome === "reserved") {
      this.#standInLine(turns, lane, entry);
      return true;
    }
    this.#preemptions.push(outcome);
    this.#goOn(turns, lane);
    return true;
  }

  /** Goes on to the next gang of a lane, whose first one was admitted or nominated. */
  #goOn(turns: CycleTurns, lane: Lane): void {
    this.#isMoved = true;
    this.#running.add(lane);
    this.#touched.add(lane);
    lane.at += 1;
    forgetHead(turns.line);
    turns.lanes?.settle();
  }

  #standInLine(turns: CycleTurns, lane: Lane, entry: Entry): void {
    const inLine = this.#beside.refuse(lane, entry);
    if (inLine !== null) {
      this.#inLine = { ...inLine, after: this.#admissions.length };
      // It takes its place among the running jobs as soon as it has its tokens.
      this.#running.add(lane);
    }
    this.#refused.push(lane);
    this.#isMoved = true;
    this.#parts.turns.addAgain(lane);
    this.#pass(turns, lane);
  }

  /** Goes on to the queue's next lane, unless the queue is strict: no gang passes its head. */
  #pass({ line, isStrict, lanes }: CycleTurns, lane: Lane): void {
    lane.awake = false;
    lanes?.drop();
    if (isStrict) line.head = waitsForItself(lane) ? null : lane;
    if (isStrict) this.#passed.add(lane);
  }

  /** The lane of the queue's next gang; null if the queue has none that may be admitted. */
  #nextLane(turns: CycleTurns): Lane | null {
    const { line, isStrict } = turns;
    const { head } = line;
    // Once the round has refused the head, nothing more comes for it.
    if (isStrict && head !== null && !(turns.lanes === null ? this.#mayFit(head) : head.awake)) {
      turns.ended = true;
      return null;
    }
    // No gang of a strict queue passes its head, also one that sleeps.
    if (isStrict || !this.#isGathered) {
      turns.lanes ??= LaneWalk.ofAll(line, this.#nowMs);
      return turns.lanes.peek(isStrict ? this.#beside.passesReserved : isWakeful);
    }
    if (!turns.onlyWakeful) turns.lanes = LaneWalk.ofWakeful(line, this.#nowMs);
    turns.onlyWakeful = true;
    return turns.lanes?.peek(isWakeful) ?? null;
  }

  /** Ends the hope for what the round has given away, so that lanes which wait for it sleep on. */
  #closeHopeful(): void {
    const { length } = this.#admissions;
    if (length === this.#closedAt) return;
    this.#closedAt = length;
    this.#decide.closeHopeful();
    this.#isGathered ||= gatherHopeful(this.#parts);
  }

  /** Elastic gangs grow into the room that is left, except those of a strict queue whose head was refused. */
  #stretch(all: readonly CycleTurns[]): boolean {
    for (const { line, ended } of all) {
      if (ended || line.reserved !== null) continue;
      for (const entry of line.stretching) {
        if (this.#isFull()) return true;
        const grown = growEntry(this.#parts, entry);
        if (grown !== null) this.#admissions.push(grown);
      }
    }
    return false;
  }
}
