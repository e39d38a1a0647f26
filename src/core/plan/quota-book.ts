import type { Caps, Scope } from "../quota/counters.ts";
import { type ChargedAllocation, chargesOf, limitOf } from "../quota/decide.ts";
import { GrantBook } from "../quota/grant-book.ts";
import { scopeKey } from "../quota/scopes.ts";
import { queueLimitsOf, type TreeQueue } from "../quota/tree.ts";
import { Holdings } from "./holdings.ts";
import type { PlanGang } from "./plan-gang.ts";
import type { PlannedAllocation, QuotaRefusal } from "./plan-types.ts";
import type { PlanQueue, PlanSnapshot } from "./snapshot.ts";

/** A job is limited by pools and queues alone. */
const NO_CAPS: Caps = { project: null, namespace: null };

type Reservation = { readonly job: string; readonly priority: number; readonly amounts: ReadonlyMap<string, number> };

/**
 * The use of each pool, in total and by each queue, project and namespace, while a plan is made: the ledger's sums and
 * the plan's admissions. It decides as the counters do for a request that is not in their waiting line.
 */
export class QuotaBook {
  readonly #queues: ReadonlyMap<string, PlanQueue>;
  readonly #grants: GrantBook;
  readonly #holdings: Holdings;
  /** The use by allocations that name a scope themselves. */
  readonly #own: Map<string, number>;
  #reserved: Reservation | null = null;

  constructor(snapshot: PlanSnapshot) {
    this.#queues = new Map(snapshot.queues.map((queue) => [queue.name, queue]));
    const queues = queueLimitsOf(snapshot.queues.map(treeQueue));
    this.#grants = new GrantBook({ pools: snapshot.pools, queues }, snapshot.sums);
    this.#holdings = new Holdings(snapshot, this.#grants.limits);
    this.#own = new Map(snapshot.sums.map(({ scope, used }) => [scopeKey(scope), used]));
  }

  queue(name: string): PlanQueue | undefined {
    return this.#queues.get(name);
  }

  /** Every level that keeps the gang from taking `need` more of a pool now; empty if it may take them. */
  refusals(gang: PlanGang, pool: string, need: number): readonly QuotaRefusal[] {
    if (need === 0) return [];
    const allocation = allocationOf(gang, pool, need);
    const { limits } = this.#grants;
    return this.#grants.charges(allocation).flatMap(({ scope, used, amount }) => {
      const limit = limitOf(scope, NO_CAPS, limits);
      const reserved = scope.kind === "pool" ? this.#reservedIn(pool, gang) : 0;
      if (amount <= limit - used - reserved) return [];
      const exhausted = amount <= limit - used ? "Reserved" : "QuotaExhausted";
      const reason = this.#isNever(allocation, scope) ? "AboveQuota" : exhausted;
      const heldBy = reason === "Reserved" ? [this.#reserved?.job ?? ""] : this.#holdings.largest(scope);
      return [{ queue: gang.queue, flavor: pool, scope, reason, need: amount, used, limit, reserved, heldBy }];
    });
  }

  charge(gang: PlanGang, pool: string, amount: number): void {
    const allocation = allocationOf(gang, pool, amount);
    this.#grants.charge(allocation);
    const key = scopeKey({ kind: "queue", pool, queue: allocation.queue });
    this.#own.set(key, (this.#own.get(key) ?? 0) + amount);
    this.#holdings.add({ ...allocation, holder: `${gang.namespace}/${gang.name}` });
  }

  /** True once room is kept for a gang. Only one gang at a time has the place in the waiting line. */
  get hasReserved(): boolean {
    return this.#reserved !== null;
  }

  /** Keeps room in its pools for the gang in their waiting lines. Only gangs of a higher priority may take it. */
  reserve(gang: PlanGang, allocations: readonly PlannedAllocation[]): void {
    const amounts = new Map(allocations.map(({ pool, amount }) => [pool, amount]));
    this.#reserved = { job: `${gang.namespace}/${gang.name}`, priority: gang.priority, amounts };
  }

  /** The part of its quota that a queue's own allocations use, in the flavor with the largest part; 1 is all of it. */
  share(name: string): number {
    const quotas = this.#queues.get(name)?.quotas ?? [];
    return quotas.reduce((most, { flavor, nominal }) => {
      const used = this.#own.get(scopeKey({ kind: "queue", pool: flavor, queue: name })) ?? 0;
      return Math.max(most, used === 0 ? 0 : used / nominal);
    }, 0);
  }

  #reservedIn(pool: string, gang: PlanGang): number {
    if (this.#reserved === null || gang.priority > this.#reserved.priority) return 0;
    return this.#reserved.amounts.get(pool) ?? 0;
  }

  /** True if the scope would refuse the allocation even if nothing were used. */
  #isNever(allocation: ChargedAllocation, scope: Scope): boolean {
    const key = scopeKey(scope);
    const alone = chargesOf(allocation, () => 0, this.#grants.limits).find((charge) => charge.key === key);
    return alone !== undefined && alone.amount > limitOf(scope, NO_CAPS, this.#grants.limits);
  }
}

function allocationOf({ project, namespace, queue }: PlanGang, pool: string, amount: number) {
  return { pool, amount, project, namespace, queue };
}

/** A queue as the tree of limits takes it. */
export function treeQueue({ name, parent, quotas }: PlanQueue): TreeQueue {
  return {
    name,
    parent,
    quotas: quotas.map(({ flavor, nominal, borrowingLimit = null, lendingLimit = null }) => {
      return { pool: flavor, nominal, borrowingLimit, lendingLimit };
    }),
  };
}
