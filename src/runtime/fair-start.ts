import { Shares } from "./shares.ts";
import { Turns } from "./turns.ts";

/** Callers share the event loop this long after the last task of another one. */
const SHARED_MS = 1_000;
/** Enough for the transactions of one caller to be worth their commits, and few enough not to fill those of others. */
const RUNNING_MAX = 8;
/** A caller with more waiting tasks does not wait for the answers of its calls before it makes others. */
const LINE_MAX = 4;
/**
 * Callers that ask for more than their share leave this part of the event loop's time unused. In a loop that is always
 * busy, each step of a task would wait for a step of every other one.
 */
const IDLE_SHARE = 1 / 2;
/** They begin a task at least this often, however busy the loop is. */
const HELD_MS_MAX = 50;

/** A task of a caller. */
export type FairTask = {
  readonly caller: string;
  /** True: it counts as running until `end` is called. */
  readonly runs: boolean;
};

export type FairStartPorts = {
  readonly monotonicMs: () => number;
  /** Runs a function in the next pass of the event loop, after input was read. */
  readonly nextPass: (run: () => void) => void;
  /** Runs a function in a millisecond. The event loop may be idle until then. */
  readonly soon: (run: () => void) => void;
  /** For how long the event loop has been idle in all. */
  readonly idleMs: () => number;
};

type Waiting = { readonly task: FairTask; readonly begin: () => void };

/**
 * Lets tasks begin so that a caller with many of them leaves room to others. While several callers have tasks, each of
 * them begins one in a pass of the event loop, and at most `RUNNING_MAX` of each run at a time; its others wait. Tasks
 * of a caller that is alone begin at once.
 *
 * A caller is beyond its share if more than `LINE_MAX` of its tasks wait, and it has begun more of them lately than the
 * mean of all. It begins one once the loop was idle for `IDLE_SHARE` of the time since it could begin the last one.
 */
export class FairStart {
  readonly #ports: FairStartPorts;
  readonly #waiting = new Turns<Waiting>();
  /** The lines that have begun a task in this pass. */
  readonly #begun = new Set<string>();
  readonly #running = new Map<string, number>();
  #last = { caller: "", atMs: Number.NEGATIVE_INFINITY };
  /** When a caller other than the last one had a task. */
  #otherMs = Number.NEGATIVE_INFINITY;
  #passes = false;
  /** True: a pass follows in a millisecond. */
  #looks = false;
  readonly #shares = new Shares(SHARED_MS);
  /** When callers beyond their share have begun tasks, and how long the loop had been idle then. */
  #beyond = { atMs: Number.NEGATIVE_INFINITY, idleMs: 0 };

  constructor(ports: FairStartPorts) {
    this.#ports = ports;
  }

  /** Null: the task begins now. Else it begins when the promise is resolved. */
  turn(task: FairTask): Promise<void> | null {
    const { caller } = task;
    const nowMs = this.#ports.monotonicMs();
    if (caller !== this.#last.caller) this.#otherMs = this.#last.atMs;
    this.#last = { caller, atMs: nowMs };
    const line = lineOf(task);
    this.#shares.age(nowMs);
    if (!this.#isShared() && this.#waiting.size === 0) {
      this.#count(task);
      return null;
    }
    this.#keepPassing();
    if (!this.#waiting.has(line) && this.#fits(task)) {
      this.#begun.add(line);
      this.#count(task);
      return null;
    }
    return new Promise((begin) => this.#waiting.add(line, { task, begin }));
  }

  /** Call it once for each task that runs and has begun. */
  end({ caller }: Pick<FairTask, "caller">): void {
    const left = (this.#running.get(caller) ?? 1) - 1;
    if (left > 0) this.#running.set(caller, left);
    else this.#running.delete(caller);
    if (this.#waiting.size > 0) this.#keepPassing();
  }

  #isShared(): boolean {
    return this.#ports.monotonicMs() - this.#otherMs < SHARED_MS;
  }

  /** True if a task's caller is beyond its share: so many others wait behind the task. */
  #isBeyond({ caller }: FairTask, behind: number): boolean {
    return behind >= LINE_MAX && this.#shares.isBeyond(caller);
  }

  /** Whether callers beyond their share may begin tasks. */
  #hasTime(nowMs: number): boolean {
    const passedMs = nowMs - this.#beyond.atMs;
    return passedMs >= HELD_MS_MAX || this.#ports.idleMs() - this.#beyond.idleMs >= passedMs * IDLE_SHARE;
  }

  #fits(task: FairTask): boolean {
    if (this.#begun.has(lineOf(task))) return false;
    return !task.runs || (this.#running.get(task.caller) ?? 0) < RUNNING_MAX;
  }

  #count({ caller, runs }: FairTask): void {
    this.#shares.add(caller);
    if (runs) this.#running.set(caller, (this.#running.get(caller) ?? 0) + 1);
  }

  #keepPassing(): void {
    if (this.#passes) return;
    this.#passes = true;
    this.#ports.nextPass(() => this.#pass());
  }

  #pass(): void {
    this.#passes = false;
    this.#begun.clear();
    const isShared = this.#isShared();
    const nowMs = this.#ports.monotonicMs();
    const hasTime = this.#hasTime(nowMs);
    const sizeOf = (task: FairTask) => this.#waiting.sizeOf(lineOf(task));
    const fits = (task: FairTask) => this.#fits(task) && (hasTime || !this.#isBeyond(task, sizeOf(task) - 1));
    let beyond = false;
    for (;;) {
      const next = this.#waiting.next(({ task }) => !isShared || fits(task));
      if (next === null) break;
      beyond ||= this.#isBeyond(next.task, sizeOf(next.task));
      this.#begun.add(lineOf(next.task));
      this.#count(next.task);
      next.begin();
    }
    if (beyond) this.#beyond = { atMs: nowMs, idleMs: this.#ports.idleMs() };
    if (this.#begun.size > 0) this.#keepPassing();
    if (this.#waiting.size > 0 && (beyond || !hasTime)) this.#lookSoon();
  }

  /** Passes alone would keep the loop from being idle. */
  #lookSoon(): void {
    if (this.#looks) return;
    this.#looks = true;
    this.#ports.soon(() => {
      this.#looks = false;
      if (this.#waiting.size > 0) this.#keepPassing();
    });
  }
}

/** Tasks that do not run wait for none that do. No name has a line break. */
function lineOf({ caller, runs }: FairTask): string {
  return runs ? caller : `\n${caller}`;
}
