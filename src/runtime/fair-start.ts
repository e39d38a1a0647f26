import { Turns } from "./turns.ts";

/** Callers share the event loop this long after the last task of another one. */
const SHARED_MS = 1_000;
/** Enough for the transactions of one caller to be worth their commits, and few enough not to fill those of others. */
const RUNNING_MAX = 8;

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
};

type Waiting = { readonly task: FairTask; readonly begin: () => void };

/**
 * Lets tasks begin so that a caller with many of them leaves room to others. While several callers have tasks, each of
 * them begins one in a pass of the event loop, and at most `RUNNING_MAX` of each run at a time; its others wait. Tasks
 * of a caller that is alone begin at once.
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

  #fits(task: FairTask): boolean {
    if (this.#begun.has(lineOf(task))) return false;
    return !task.runs || (this.#running.get(task.caller) ?? 0) < RUNNING_MAX;
  }

  #count({ caller, runs }: FairTask): void {
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
    for (;;) {
      const next = this.#waiting.next(({ task }) => !isShared || this.#fits(task));
      if (next === null) break;
      this.#begun.add(lineOf(next.task));
      this.#count(next.task);
      next.begin();
    }
    if (this.#begun.size > 0) this.#keepPassing();
  }
}

/** Tasks that do not run wait for none that do. No name has a line break. */
function lineOf({ caller, runs }: FairTask): string {
  return runs ? caller : `\n${caller}`;
}
