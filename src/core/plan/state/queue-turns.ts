import { compareText } from "../../../runtime/compare-text.ts";
import type { PlaceInLine, PlannedAdmission } from "../plan-types.ts";
import type { RunningJobs } from "../running-jobs.ts";
import { DecideLane } from "./decide-lane.ts";
import { compareEntries, headOf, type Lane, type Line } from "./gang-lines.ts";
import { growEntry } from "./grow.ts";
import { Heap } from "./heap.ts";
import type { Parts } from "./state-parts.ts";

export type RoundBounds = {
  /** The most admissions and growths that are planned. The next round plans the others. */
  readonly admissionsMax: number;
  /** The most gangs whose causes are told. The next round tells the others. Omitted: all are told. */
  readonly refusalsMax?: number;
  /** Asked at least once a gang. True: the round ends at once and throws `RoundStopped`. Omitted: never. */
  readonly isStopped?: () => boolean;
};

/** Thrown by a round that was stopped. The state has lost its order then: make a new one. */
export class RoundStopped extends Error {
  constructor() {
    super("the planner's round was stopped");
  }
}

/** The decisions of a round, before anything is said about them. */
export type RoundResult = {
  readonly admissions: readonly PlannedAdmission[];
  readonly inLine: PlaceInLine | null;
  /** The lanes that were looked at and refused. */
  readonly refused: readonly Lane[];
  /** True if the bound ended the round: lanes are left that were not looked at. */
  readonly more: boolean;
};

/** The turns of a queue that are left in the round. */
type Turns = {
  readonly line: Line;
  readonly isStrict: boolean;
  share: number;
  /** The place of its next gang that grows. */
  growing: number;
  /** Null: none of its lanes was looked at yet. */
  lanes: Heap<Lane> | null;
  /** True: the head of a strict queue was refused. */
  ended: boolean;
};

/**
 * The turns of one round. The queue that uses the smallest share of its quota has the next turn. It grows a gang that
 * runs with fewer members than its job has, or else decides about its first gang. Only lanes that are awake have turns.
 */
export class QueueTurns {
  readonly #parts: Parts;
  readonly #bounds: RoundBounds;
  readonly #decide: DecideLane;
  readonly #admissions: PlannedAdmission[] = [];
  readonly #refused: Lane[] = [];
  readonly #touched = new Set<Lane>();
  #inLine: PlaceInLine | null = null;
  /** Lanes that were looked at since hopeful requests were. */
  #looks = 0;
  /** The admissions after which hopeful requests, and lists for quota, were looked at last. */
  #roomsAt = 0;
  #levelsAt = 0;

  readonly #running: RunningJobs;

  constructor(parts: Parts, number: number, bounds: RoundBounds) {
    this.#parts = parts;
    this.#running = parts.lines.countRunning();
    this.#bounds = bounds;
    this.#decide = new DecideLane(parts, number);
  }

  run(): RoundResult {
    const all = this.#allTurns();
    const queues = new Heap(all, comesBefore);
    while (queues.size > 0 && !this.#isFull()) {
      const turns = queues.peek() as Turns;
      if (this.#takeTurn(turns)) {
        turns.share = this.#parts.quota.share(turns.line.name);
        queues.settle();
      } else queues.pop();
    }
    const isCut = queues.size > 0 || this.#stretch(all);
    this.#endHope(isCut);
    const { lines } = this.#parts;
    for (const line of lines.lines.values()) lines.noteFull(line, this.#running.fullAt(line.name));
    for (const { line } of all) dropSleeping(line);
    return { admissions: this.#admissions, inLine: this.#inLine, refused: this.#refused, more: isCut };
  }

  /** Lanes that were not looked at, because the bound ended the round, stay awake. */
  #endHope(isCut: boolean): void {
    const { hopeful, waits, lines } = this.#parts;
    for (const lists of [hopeful, waits.hopeful]) {
      if (isCut) lists.wakeAll(lines);
      else lists.clear();
    }
  }

  /** Forgets how far the round came in each lane: its gangs wait until their admissions are recorded. */
  end(): void {
    for (const lane of this.#touched) {
      lane.at = 0;
      lane.line.head = null;
    }
  }

  #allTurns(): readonly Turns[] {
    const all: Turns[] = [];
    const { hopeful, waits, lines } = this.#parts;
    const isHopeful = hopeful.size + waits.hopeful.size > 0;
    for (const line of lines.lines.values()) {
      if (!this.#isOpen(line)) continue;
      const isStrict = this.#parts.isStrict(line.name);
      // Such a lane may stand before the head, which has passed it, and be admitted now.
      if (isStrict && line.awake.some(({ restless }) => restless === "always")) line.head = null;
      const hasHead = !isStrict || line.head !== null || line.lanes.size === 0;
      const mayTake = line.awake.length + line.growing.length + line.stretching.length > 0;
      if (hasHead && !mayTake && !(isHopeful && line.lanes.size > 0)) continue;
      const share = this.#parts.quota.share(line.name);
      all.push({ line, isStrict, share, growing: 0, lanes: null, ended: false });
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
    return this.#admissions.length >= this.#bounds.admissionsMax;
  }

  /** Takes the next turn of a queue. False: it has none left. */
  #takeTurn(turns: Turns): boolean {
    if (this.#bounds.isStopped?.()) throw new RoundStopped();
    const growing = turns.line.growing[turns.growing];
    if (growing !== undefined) {
      turns.growing += 1;
      const grown = growEntry(this.#parts, growing);
      if (grown !== null) this.#admissions.push(grown);
      return true;
    }
    if (this.#isFullLine(turns)) return false;
    const lane = this.#nextLane(turns);
    if (lane === null) return false;
    const entry = headOf(lane);
    if (entry === undefined) turns.lanes?.pop();
    else if (lane.awake && !this.#decide.staysRefused(lane)) this.#look(turns, lane);
    else this.#pass(turns, lane);
    return true;
  }

  /** True if a queue has no turn for gangs that wait, because it runs as many jobs as it may. Its gangs still grow. */
  #isFullLine(turns: Turns): boolean {
    const { line } = turns;
    if (this.#running.fullAt(line.name) !== null) {
      line.passedOver = true;
      return true;
    }
    return false;
  }

  #look(turns: Turns, lane: Lane): void {
    const entry = headOf(lane);
    const planned = entry === undefined ? null : this.#decide.decide(lane, entry);
    const { inLine } = this.#decide;
    if (inLine !== null && this.#inLine === null) {
      this.#inLine = { ...inLine, after: this.#admissions.length };
      // It takes its place among the running jobs as soon as it has its tokens.
      this.#running.add(turns.line.name, 1);
    }
    if (planned === null) {
      this.#refused.push(lane);
      this.#pass(turns, lane);
      return;
    }
    this.#admissions.push(planned);
    this.#running.add(turns.line.name, 1);
    this.#touched.add(lane);
    lane.at += 1;
    turns.line.head = null;
    turns.lanes?.settle();
  }

  /** Goes on to the queue's next lane, unless the queue is strict: no gang passes its head. */
  #pass({ line, isStrict, lanes }: Turns, lane: Lane): void {
    lane.awake = false;
    lanes?.pop();
    if (isStrict) line.head = waitsForItself(lane) ? null : lane;
  }

  /** The lane of the queue's next gang; null if the queue has none that may be admitted. */
  #nextLane(turns: Turns): Lane | null {
    const { line, isStrict } = turns;
    if (turns.lanes === null) this.#wakeHopeful(line);
    if (isStrict && line.head !== null && !line.head.awake) {
      turns.ended = true;
      return null;
    }
    turns.lanes ??= new Heap(isStrict ? [...line.lanes.values()] : this.#wakeful(line), isFirst);
    return turns.lanes.peek() ?? null;
  }

  /** Wakes the lanes of a queue for which something may have come, unless the round has given it away since. */
  #wakeHopeful(line: Line): void {
    const { hopeful, waits, lines, quota } = this.#parts;
    const { length } = this.#admissions;
    if (length > this.#levelsAt) {
      this.#levelsAt = length;
      waits.closeHopeful(quota);
    }
    if (length > this.#roomsAt && this.#looks >= hopeful.size) {
      this.#roomsAt = length;
      this.#looks = 0;
      this.#decide.closeHopeful();
    }
    if (hopeful.size + waits.hopeful.size > 0) lines.wakeHopeful(line);
  }

  /** The lanes that are awake. Those that surely stay refused go back to sleep: room only shrinks during a round. */
  #wakeful(line: Line): Lane[] {
    const wakeful: Lane[] = [];
    for (const lane of line.awake) {
      if (!lane.awake || lane.entries.length === 0) continue;
      this.#looks += 1;
      if (this.#decide.staysRefused(lane)) lane.awake = false;
      else wakeful.push(lane);
    }
    return wakeful;
  }

  /** Elastic gangs grow into the room that is left, except those of a strict queue whose head was refused. */
  #stretch(all: readonly Turns[]): boolean {
    const stretching = all.filter(({ line, ended }) => !ended && line.stretching.length > 0);
    for (const { line } of stretching.sort((a, b) => compareText(a.line.name, b.line.name))) {
      for (const entry of line.stretching) {
        if (this.#isFull()) return true;
        const grown = growEntry(this.#parts, entry);
        if (grown !== null) this.#admissions.push(grown);
      }
    }
    return false;
  }
}

/** Keeps the lanes of a queue that are still awake. */
function dropSleeping(line: Line): void {
  const { awake } = line;
  let kept = 0;
  for (const lane of awake) {
    if (!lane.awake || lane.entries.length === 0) continue;
    awake[kept] = lane;
    kept += 1;
  }
  awake.length = kept;
}

/** True if the nearest thing in a gang's way is an older admission of its own: others may pass it. */
function waitsForItself({ refusal }: Lane): boolean {
  if (refusal === null || refusal.stoppedByQuota) return false;
  const reasons = refusal.clusters.all.map(({ reason }) => reason);
  return reasons.includes("Draining") && !reasons.includes("NoCapacity");
}

/** The queue that uses the smallest part of its quota comes first, then the first by name. */
function comesBefore(a: Turns, b: Turns): boolean {
  return a.share === b.share ? a.line.name < b.line.name : a.share < b.share;
}

/** Lanes without a gang that is left come first, to be dropped. */
function isFirst(a: Lane, b: Lane): boolean {
  const [one, other] = [headOf(a), headOf(b)];
  if (one === undefined || other === undefined) return one === undefined && other !== undefined;
  return compareEntries(one, other) < 0;
}
