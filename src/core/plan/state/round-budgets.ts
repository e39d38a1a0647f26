import { minOf } from "../../../runtime/lists.ts";
import { type OverBudget, overBudget } from "../preempt/budget.ts";
import type { PlanQueue } from "../snapshot.ts";
import type { Entry } from "./gang-lines.ts";
import type { LaneRefusal } from "./refused.ts";

/** What is left of the queues' budgets of preemptions during one round. */
export class RoundBudgets {
  readonly #queues: ReadonlyMap<string, PlanQueue>;
  readonly #nowMs: number;
  /** The victims of the round, by the nominee's queue. */
  readonly #taken = new Map<string, number>();
  readonly #over = new Map<Entry, OverBudget>();

  constructor(queues: ReadonlyMap<string, PlanQueue>, nowMs: number) {
    this.#queues = queues;
    this.#nowMs = nowMs;
  }

  /** True if a gang's queue may cause so many preemptions now. */
  allows(entry: Entry, needed: number): boolean {
    const { name } = entry.line;
    const queue = this.#queues.get(name);
    const planned = this.#taken.get(name) ?? 0;
    const over = queue === undefined ? null : overBudget(queue, { needed, planned }, this.#nowMs);
    if (over !== null) this.#over.set(entry, over);
    return over === null;
  }

  take({ line }: Entry, victims: number): void {
    this.#taken.set(line.name, (this.#taken.get(line.name) ?? 0) + victims);
  }

  /** The part of a gang's refusal that says what its queue's budget has kept from it. */
  refusalOf(entry: Entry): Pick<LaneRefusal, "budget"> {
    const budget = this.#over.get(entry);
    return budget === undefined ? {} : { budget };
  }

  /** When a gang that was refused for it may preempt others. Infinite: no time changes that. */
  get recheckAtMs(): number {
    return minOf([...this.#over.values()].map(({ untilMs }) => untilMs ?? Number.POSITIVE_INFINITY));
  }
}
