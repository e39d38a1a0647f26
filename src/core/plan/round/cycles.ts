import { append } from "../../../runtime/lists.ts";
import { DecideClass } from "../assign/assign-class.ts";
import { addedBy } from "../assign/assignment.ts";
import { DecideBackfill } from "../assign/backfill.ts";
import { growGang, missingAmounts } from "../assign/grow.ts";
import type { Fleet } from "../fit/fleet.ts";
import type { PlaceInLine, PlannedAdmission } from "../model/plan-types.ts";
import type { PlannedPreemption } from "../model/preemption.ts";
import { type RoundBounds, RoundStopped } from "../model/round-bounds.ts";
import type { FindVictims, PendingGang } from "../preempt/find-victims.ts";
import type { Round } from "../preempt/round.ts";
import { advance, deactivate, goBack, requeue, requeueAll, setSearch } from "../queues/class-state.ts";
import { ClassWalk, isBehind } from "../queues/class-walk.ts";
import { headOf, rankOf } from "../queues/order.ts";
import { dropInactive, forgetHead, noteSkipped, reserve, setHead } from "../queues/queue-state.ts";
import type { GangClass, GangQueue, GangRecord } from "../queues/records.ts";
import type { RunningJobs } from "../queues/running-jobs.ts";
import {
  areFewCandidates,
  dropCandidates,
  gatherCandidates,
  isCandidate,
  mayHaveHead,
  mayHaveOvertaken,
  waitsForItself,
} from "../requeue/candidates.ts";
import { FindReservations } from "../reservations/forecast.ts";
import { newReservations } from "../reservations/new-reservations.ts";
import { borrowingLevel } from "../usage/branch-use.ts";
import { type CycleHead, type CycleSlot, newSlot, nextGrowing, type WaitingHead } from "./cycle-slots.ts";
import { DecideInPlace } from "./decide-in-place.ts";
import { HeadOrder } from "./head-order.ts";
import { planMoves } from "./moves.ts";
import { decideContested, decideNominees, isKept } from "./nominees.ts";
import { planRepairs } from "./repairs.ts";

/**
 * The cycles of one round. Each cycle takes one head of every queue, which the capacity and the quotas allow as the
 * cycle begins: a gang that runs with fewer members than its job has, or else the first one that waits. It decides
 * about the heads in the order of `HeadOrder`. A head that no longer fits on its turn waits for the next cycle. The
 * cycles end once one of them changes nothing. Only gang classes that are active are looked at.
 */
export class Cycles {
  readonly #round: Round;
  readonly #fleet: Fleet;
  readonly #bounds: RoundBounds;
  readonly #decide: DecideClass;
  readonly #backfill: DecideBackfill;
  readonly #inPlace: DecideInPlace;
  readonly #victims: FindVictims;
  readonly #reservations: FindReservations;
  readonly #nowMs: number;
  readonly #admissions: PlannedAdmission[] = [];
  readonly #preemptions: PlannedPreemption[] = [];
  readonly #withdrawn: string[] = [];
  readonly #refused: GangClass[] = [];
  readonly #touched = new Set<GangClass>();
  /** The gang classes of strict queues that were looked at and got nothing. */
  readonly #tried = new Set<GangClass>();
  #inLine: PlaceInLine | null = null;
  /** True: some gang was given something in a cycle of this round. */
  #isMoved = false;
  /** How often a head of this round has grown, was tried in vain to grow, or was given something. */
  #moves = 0;
  /** True: queues know their gang classes for which something may have come. */
  #isGathered = false;
  /** The admissions after which lists of candidates were looked at last. */
  #closedAt = 0;
  readonly #running: RunningJobs;

  constructor(round: Round) {
    this.#round = round;
    this.#fleet = round.fleet;
    this.#nowMs = round.nowMs;
    this.#running = round.fleet.queues.countRunning();
    this.#bounds = round.bounds;
    this.#victims = round.victims;
    this.#decide = new DecideClass(round);
    this.#backfill = new DecideBackfill(round, this.#decide);
    this.#inPlace = new DecideInPlace(round, { backfill: this.#backfill, decide: this.#decide });
    this.#reservations = new FindReservations(round);
  }

  run(): RoundResult {
    append(this.#admissions, planRepairs(this.#fleet));
    this.#admitNominees();
    append(
      this.#admissions,
      planMoves(this.#round, this.#decide, {
        isFull: (planned) => this.#isFull(planned),
        checkStopped: () => this.#checkStopped(),
      }),
    );
    // Inactive gang classes do not get the capacity and quota that are kept for nominees and gangs that move.
    const { nominees, moving } = this.#fleet.queues;
    if (nominees.size + moving.size > 0) this.#decide.closeCandidates();
    this.#gather();
    const { requeue: due, searchesLeft: left } = this.#round;
    const { queues } = this.#fleet;
    due.searchQueue.begin(queues, { left, nowMs: this.#nowMs });
    queues.noteFullTenants(this.#running, { begins: true });
    const all = this.#allSlots();
    const { cyclesMax = Number.POSITIVE_INFINITY } = this.#bounds;
    let open = all;
    let hasMoved = true;
    for (let cycle = 0; open.length > 0 && hasMoved && cycle < cyclesMax && !this.#isFull(); cycle++) {
      this.#closeCandidates();
      const heads = open.flatMap((slot) => this.#headOf(slot) ?? []);
      const before = this.#moves;
      this.#runCycle(heads);
      hasMoved = this.#moves > before;
      open = heads.map(({ slot }) => slot);
    }
    const isUnfinished = hasMoved && open.length > 0;
    this.#noteAnswers(decideContested(this.#reserving(), { isCut: isUnfinished }));
    const isCut = isUnfinished || this.#stretch(all) === "cut";
    // Nothing that comes later in a round helps a gang that it has refused.
    for (const gangClass of this.#refused) deactivate(gangClass);
    const isStrict = (queue: string) => this.#fleet.isStrict(queue);
    dropCandidates(due, { isCut, tried: this.#tried, isStrict });
    queues.noteFullTenants(this.#running, { begins: false });
    const reserveAtMs = isCut ? Number.POSITIVE_INFINITY : this.#reserve();
    for (const gangQueue of queues.all.values()) queues.noteFull(gangQueue, this.#running.fullAt(gangQueue.name));
    for (const { gangQueue, classes } of all) dropInactive(gangQueue, { isWalked: classes !== null });
    const preempts = { preemptions: this.#preemptions, pending: this.#victims.pending, withdrawn: this.#withdrawn };
    const recheckAtMs = Math.min(this.#victims.recheckAtMs, this.#victims.budgets.recheckAtMs);
    const decided = { admissions: this.#admissions, inLine: this.#inLine, refused: this.#refused };
    return { ...decided, ...preempts, recheckAtMs, reserveAtMs, more: isCut || due.searchQueue.areLeft };
  }

  /** Gangs for which others are preempted, and those with reservations, go before all others. */
  #admitNominees(): void {
    const { queues } = this.#fleet;
    for (const gangQueue of queues.all.values()) reserve(gangQueue, null);
    const answers = decideNominees(this.#reserving(), () => this.#checkStopped());
    // Once less is kept for nominees, others may take more.
    if (answers.some(({ answer }) => !isKept(answer))) this.#round.requeue.searchQueue.addAll(queues);
    this.#noteAnswers(answers);
    this.#backfill.requeueOvertaking();
  }

  #noteAnswers(answers: ReturnType<typeof decideNominees>): void {
    for (const { gang, answer } of answers) {
      if (answer === "withdrawn") this.#withdrawn.push(gang.facts.uid);
      if (typeof answer === "string") continue;
      if ("planned" in answer) this.#preemptions.push(answer);
      else this.#admissions.push(answer);
      this.#fleet.queues.fresh.delete(gang);
    }
  }

  #reserving() {
    const by = { decide: this.#decide, reservations: this.#reservations };
    return { round: this.#round, running: this.#running, ...by };
  }

  /** Gives new reservations, and returns when the next gang has waited long enough for one. */
  #reserve(): number {
    const { made, recheckAtMs } = newReservations(this.#reserving());
    append(this.#preemptions, made);
    return recheckAtMs;
  }

  /** Forgets how far the round came in each gang class: its gangs wait until their admissions are recorded. */
  end(): void {
    for (const gangClass of this.#touched) goBack(gangClass);
  }

  #allSlots(): readonly CycleSlot[] {
    const all: CycleSlot[] = [];
    const { queues } = this.#fleet;
    // The order must not depend on that of the changes.
    for (const gangQueue of queues.byName) {
      if (gangQueue.stop !== null) {
        dropInactive(gangQueue);
        continue;
      }
      // A queue that was full, and is not full now, is looked at as if it were new.
      if (gangQueue.skipped && !this.#isFullQueue(gangQueue)) requeueAll(gangQueue);
      const isStrict = this.#fleet.isStrict(gangQueue.name);
      if (isStrict && mayHaveOvertaken(queues, gangQueue)) setHead(gangQueue, null);
      const mayTake = mayHaveHead(gangQueue, { isStrict, isGathered: this.#isGathered });
      if (mayTake) all.push(newSlot(gangQueue, isStrict));
      else dropInactive(gangQueue);
    }
    return all;
  }

  /** `planned`: beside those that are counted already. */
  #isFull(planned = 0): boolean {
    return this.#admissions.length + this.#preemptions.length + planned >= this.#bounds.admissionsMax;
  }

  /** Decides about heads in their order. If that changes nothing, another cycle would not either. */
  #runCycle(heads: readonly CycleHead[]): void {
    const order = new HeadOrder(this.#fleet.quota, heads);
    for (let head = order.next(); head !== undefined && !this.#isFull(); head = order.next()) {
      this.#checkStopped();
      if (head.waits === null) this.#grow(head);
      else this.#admit(head, head.waits);
    }
  }

  #checkStopped(): void {
    if (this.#bounds.isStopped?.()) throw new RoundStopped();
  }

  /** The head of a queue in a cycle that begins now. Null: the queue has none left in this round. */
  #headOf(slot: CycleSlot): CycleHead | null {
    const growing = nextGrowing(this.#fleet, slot);
    if (growing !== undefined) {
      const requested = missingAmounts(growing, this.#fleet.resources);
      return this.#asHead(slot, { gang: growing, waits: null, requested });
    }
    this.#searchBehind(slot);
    while (!this.#isFullQueue(slot.gangQueue)) {
      this.#checkStopped();
      const gangClass = this.#nextClass(slot);
      if (gangClass === null) return null;
      const gang = headOf(gangClass) as GangRecord;
      if (this.#running.fullTenant(gangClass) !== null) {
        // Others overtake it, also in a strict queue: it waits for gangs of its tenant, not for capacity.
        deactivate(gangClass);
        slot.classes?.drop();
        if (slot.gangQueue.head === gangClass) forgetHead(slot.gangQueue);
        continue;
      }
      const waits = this.#assign(slot, gangClass, gang);
      if (waits !== null) return this.#asHead(slot, { gang, waits, requested: addedBy(waits.assignment) });
    }
    noteSkipped(slot.gangQueue);
    return null;
  }

  #asHead(slot: CycleSlot, of: Pick<CycleHead, "gang" | "waits" | "requested">): CycleHead {
    const { quota } = this.#fleet;
    slot.first ??= of.waits === null ? "all" : of.gang;
    const leaf = quota.branches.leaf(slot.gangQueue.name);
    const level = leaf === null ? 0 : borrowingLevel(quota, leaf, of.requested);
    return { slot, leaf, level, rank: rankOf(of.gang, this.#nowMs), ...of };
  }

  /** The assignment of a class's first gang now. Null: there is none, and the queue goes on to its next gang class. */
  #assign(slot: CycleSlot, gangClass: GangClass, gang: GangRecord): WaitingHead | null {
    if (isCandidate(gangClass)) requeue(gangClass, "mayFit");
    const found = gangClass.active ? this.#find(gangClass, gang) : null;
    if (found === null) this.#skip(slot, gangClass);
    return found;
  }

  #find(gangClass: GangClass, gang: GangRecord): WaitingHead | null {
    const { searchesLeft: left, requeue: due } = this.#round;
    const mayPreempt = this.#decide.mayPreempt(gangClass, gang);
    const searches = mayPreempt && due.searchQueue.mayTake(gangClass, left);
    if (mayPreempt) due.searchQueue.take(gangClass, left);
    const search = mayPreempt && !searches ? "none" : "victims";
    const isRefused = this.#backfill.lookAgain(gangClass, search) === "staysRefused";
    const assignment = isRefused ? null : this.#inPlace.assign(gangClass, gang, search);
    if (assignment?.kind === "preempts") due.searchQueue.noteFound(left);
    if (assignment !== null) return { gangClass, assignment };
    setSearch(gangClass, false);
    if (searches && this.#isMoved) due.searchQueue.addAgain(gangClass);
    if (!isRefused) this.#refused.push(gangClass);
    return null;
  }

  /** Gang classes that are decided after others were given something may take more than when they looked last. */
  #searchBehind(slot: CycleSlot): void {
    const { first, searchesBehind } = slot;
    if (first === null || searchesBehind || !this.#isMoved) return;
    slot.searchesBehind = true;
    slot.onlyCandidates = false;
    this.#searchAfter(first, slot.gangQueue);
  }

  #searchAfter(first: GangRecord | "all", gangQueue: GangQueue): void {
    const { requeue: due, searchesLeft } = this.#round;
    due.searchQueue.addNow(
      gangQueue,
      searchesLeft,
      (gangClass) => first === "all" || isBehind(gangClass, first, this.#nowMs),
    );
  }

  /** True if a queue takes no gangs that wait, because it runs as many jobs as it may. Its gangs still grow. */
  #isFullQueue({ name }: GangQueue): boolean {
    return this.#running.fullAt(name) !== null;
  }

  #grow({ slot, gang }: CycleHead): void {
    slot.growing += 1;
    this.#moves += 1;
    const grown = growGang(this.#fleet, gang);
    if (grown === null) return;
    this.#admissions.push(grown);
    this.#isMoved = true;
  }

  /** Gives a head what it was assigned, or its place in the waiting line, unless it no longer fits. */
  #admit({ slot, gang }: CycleHead, { gangClass, assignment }: WaitingHead): void {
    if (this.#isFullQueue(slot.gangQueue)) {
      noteSkipped(slot.gangQueue);
      return;
    }
    if (this.#running.fullTenant(gangClass) !== null) return;
    if (assignment.kind === "inLine") {
      this.#standInLine(slot, gangClass, gang);
      return;
    }
    const isInPlace = assignment.overtakes !== undefined;
    if (assignment.kind === "preempts" && !isInPlace) {
      this.#preempt({ slot, gang }, { gangClass, assignment });
      return;
    }
    const planned = this.#inPlace.take(gangClass, gang, assignment);
    if (planned === null) return;
    if ("victims" in planned) this.#preemptions.push(planned);
    else this.#admissions.push(planned);
    this.#goOn(slot, gangClass);
  }

  /** Lets others be preempted for a head, unless it no longer fits. */
  #preempt({ slot, gang }: Pick<CycleHead, "slot" | "gang">, { gangClass, assignment }: WaitingHead): void {
    const outcome = this.#backfill.preempt(gangClass, gang, assignment);
    if (outcome === "skipped") return;
    if (outcome === "reserved") {
      this.#standInLine(slot, gangClass, gang);
      return;
    }
    this.#preemptions.push(outcome);
    this.#goOn(slot, gangClass);
  }

  /** Goes on to the next gang of a class, whose first one was admitted or nominated. */
  #goOn(slot: CycleSlot, gangClass: GangClass): void {
    this.#isMoved = true;
    this.#moves += 1;
    this.#running.add(gangClass);
    this.#touched.add(gangClass);
    advance(gangClass);
    slot.classes?.settle();
  }

  #standInLine(slot: CycleSlot, gangClass: GangClass, gang: GangRecord): void {
    const inLine = this.#backfill.refuse(gangClass, gang);
    if (inLine !== null) {
      this.#inLine = { ...inLine, after: this.#admissions.length };
      // It takes its place among the running jobs as soon as it has its tokens.
      this.#running.add(gangClass);
    }
    this.#refused.push(gangClass);
    this.#isMoved = true;
    this.#moves += 1;
    this.#round.requeue.searchQueue.addAgain(gangClass);
    this.#skip(slot, gangClass);
  }

  /** Goes on to the queue's next gang class, unless the queue is strict: no gang overtakes its head. */
  #skip({ gangQueue, isStrict, classes }: CycleSlot, gangClass: GangClass): void {
    deactivate(gangClass);
    classes?.drop();
    if (isStrict) setHead(gangQueue, waitsForItself(gangClass) ? null : gangClass);
    if (isStrict) this.#tried.add(gangClass);
  }

  /** The gang class of the queue's next gang; null if the queue has none that may be admitted. */
  #nextClass(slot: CycleSlot): GangClass | null {
    const { gangQueue, isStrict } = slot;
    const { head } = gangQueue;
    // Once the round has refused the head, nothing more comes for it.
    if (isStrict && head !== null && slot.classes === null && isCandidate(head)) requeue(head, "mayFit");
    if (isStrict && head !== null && !head.active) {
      slot.ended = true;
      return null;
    }
    // No gang of a strict queue overtakes its head, also one that is inactive.
    if (isStrict || !this.#isGathered) {
      slot.classes ??= ClassWalk.ofAll(gangQueue, this.#nowMs);
      return slot.classes.peek(isStrict ? this.#backfill.mayOvertakeReserved : isCandidate);
    }
    if (!slot.onlyCandidates) slot.classes = ClassWalk.ofCandidates(gangQueue, this.#nowMs);
    slot.onlyCandidates = true;
    return slot.classes?.peek(isCandidate) ?? null;
  }

  /** Drops the candidates for what the round has given away, so that gang classes which wait for it stay inactive. */
  #closeCandidates(): void {
    const { length } = this.#admissions;
    if (length === this.#closedAt) return;
    this.#closedAt = length;
    this.#decide.closeCandidates();
    this.#gather();
  }

  /** Lets queues know their gang classes for which something may have come, once these are few. */
  #gather(): void {
    const due = this.#round.requeue;
    if (this.#isGathered || !areFewCandidates(due, this.#fleet.queues)) return;
    gatherCandidates(due);
    this.#isGathered = true;
  }

  /**
   * Elastic gangs grow into the capacity that is left, except those of a strict queue whose head was refused. `cut`: a
   * bound has ended that.
   */
  #stretch(all: readonly CycleSlot[]): "cut" | "done" {
    for (const { gangQueue, ended } of all) {
      if (ended || gangQueue.reserved !== null) continue;
      for (const gang of gangQueue.stretching) {
        if (this.#isFull()) return "cut";
        const grown = growGang(this.#fleet, gang);
        if (grown !== null) this.#admissions.push(grown);
      }
    }
    return "done";
  }
}

/** The decisions of a round, before anything is said about them. */
export type RoundResult = {
  readonly admissions: readonly PlannedAdmission[];
  readonly inLine: PlaceInLine | null;
  readonly preemptions: readonly PlannedPreemption[];
  /** The gangs whose victims have not left, and that are charged with what they need. */
  readonly pending: readonly PendingGang[];
  /** The jobs whose nomination ends. */
  readonly withdrawn: readonly string[];
  /** When gangs may be preempted that are protected until then. Infinite: none is in the way. */
  readonly recheckAtMs: number;
  /** When the next gang has waited long enough for a reservation. Infinite: none will have. */
  readonly reserveAtMs: number;
  /** The gang classes that were looked at and refused. */
  readonly refused: readonly GangClass[];
  /** True if a bound ended the round or its searches: gang classes are left that were not looked at. */
  readonly more: boolean;
};
