import { minOf } from "../../../runtime/lists.ts";
import type { PlanQueue } from "../model/snapshot.ts";
import type { GangRecord } from "../queues/records.ts";
import type { ClassRefusal } from "../queues/refusals.ts";
import { type OverBudget, overBudget } from "../victims/budget.ts";

/** What is left of the queues' budgets of preemptions during one round. */
export class RoundBudgets {
  readonly #queues: ReadonlyMap<string, PlanQueue>;
  readonly #nowMs: number;
  /** The victims of the round, by the nominee's queue. */
  readonly #taken = new Map<string, number>();
  readonly #over = new Map<GangRecord, OverBudget>();

  constructor(queues: ReadonlyMap<string, PlanQueue>, nowMs: number) {
    this.#queues = queues;
    this.#nowMs = nowMs;
  }

  /** The budget that so many preemptions for a gang would exceed now. Null: its queue may cause them. */
  overBy({ gangQueue: { name } }: GangRecord, needed: number): OverBudget | null {
    const queue = this.#queues.get(name);
    const planned = this.#taken.get(name) ?? 0;
    return queue === undefined ? null : overBudget(queue, { needed, planned }, this.#nowMs);
  }

  /** Records the budget that has kept victims from a gang. */
  noteOver(gang: GangRecord, over: OverBudget): void {
    this.#over.set(gang, over);
  }

  take({ gangQueue }: GangRecord, victims: number): void {
    this.#taken.set(gangQueue.name, (this.#taken.get(gangQueue.name) ?? 0) + victims);
  }

  /** The part of a gang's refusal that says what its queue's budget has kept from it. */
  refusalOf(gang: GangRecord): Pick<ClassRefusal, "budget"> {
    const budget = this.#over.get(gang);
    return budget === undefined ? {} : { budget };
  }

  /** When a gang that was refused for it may preempt others. Infinite: no time changes that. */
  get recheckAtMs(): number {
    return minOf([...this.#over.values()].map(({ untilMs }) => untilMs ?? Number.POSITIVE_INFINITY));
  }
}
