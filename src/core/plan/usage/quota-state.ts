import type { Caps, PoolLimit, Scope } from "../../quota/counters.ts";
import { freezeOf, limitOf, QUEUE_DEPTH_MAX } from "../../quota/decide.ts";
import { type LimitBook, limitBook } from "../../quota/limits.ts";
import { scopeKey } from "../../quota/scopes.ts";
import { queueLimitsOf } from "../../quota/tree.ts";
import type { PlanQueue } from "../model/snapshot.ts";
import { treeQueue } from "../model/tree-queue.ts";
import { type Branches, type BranchPool, branchesOf } from "./branches.ts";
import {
  type Account,
  frozenReason,
  type Level,
  type Owner,
  type Path,
  type PoolLevels,
  passedUp,
  type QuotaRise,
} from "./quota-levels.ts";
import { UseTrail } from "./use-trail.ts";

/** A job is limited by pools and queues alone. */
const NO_CAPS: Caps = { project: null, namespace: null };

/** A level that keeps a gang from taking more of a pool. */
export type QuotaBlock = {
  readonly pool: string;
  /** The number of the level. -1: the queue has no quota. */
  readonly level: number;
  readonly scope: Scope;
  readonly reason: "QuotaExhausted" | "AboveQuota" | "Reserved" | "NoQuota" | "PoolFrozen" | "QueueFrozen";
  /** The resource for which the pool was asked. */
  readonly resource: string;
  /** The replica types that would use the pool. Omitted: all that request the resource. */
  readonly roles?: readonly string[];
  /** The part of the amount that counts at the level. */
  readonly need: number;
  readonly used: number;
  readonly limit: number;
  readonly reserved: number;
  /** The capacity at the level below which the gang surely stays refused. */
  readonly leastNeed: number;
};

/** The capacity in pools that is kept for the gang in their waiting lines. */
export type Reservation = {
  readonly jobUid: string;
  readonly holder: string;
  readonly priority: number;
  readonly amounts: ReadonlyMap<string, number>;
};

/**
 * The use of every pool, in total and by queue, project and namespace. The recorded sums move it. A round charges its
 * admissions, and takes them back at its end. It decides as the counters do for a request outside their waiting line.
 */
export class QuotaState {
  readonly pools = new Map<string, PoolLimit>();
  /** The pools of which nothing is granted or taken now. */
  readonly frozen = new Set<string>();
  readonly queues = new Map<string, PlanQueue>();
  /**
   * The levels whose capacity has grown since `takeWidened` was called, and the least capacity that each had before.
   */
  #widened = new Map<number, number>();
  /** Rises when a limit or the tree changes. */
  version = 0;
  #reserved: Reservation | null = null;
  #limits: LimitBook | null = null;
  #branches: Branches | null = null;
  readonly #ids = new Map<string, number>();
  readonly #scopes: Scope[] = [];
  /** By level: the use that counts, and that of the allocations which name the level themselves. */
  readonly #used: number[] = [];
  readonly #own: number[] = [];
  #levelLimits: number[] = [];
  /** The levels by their numbers, and by pool. A change of the limits ends both. */
  #levels: (Level | undefined)[] = [];
  readonly #byPool = new Map<string, PoolLevels>();
  readonly #accounts = new Map<string, Account>();
  readonly #owners = new Map<string, Owner>();
  readonly #trail = new UseTrail();

  account(queue: string, project: string, namespace: string): Account {
    const key = JSON.stringify([queue, project, namespace]);
    const known = this.#accounts.get(key);
    if (known !== undefined) return known;
    const account: Account = { queue, owner: this.#ownerOf(project, namespace), paths: new Map() };
    this.#accounts.set(key, account);
    return account;
  }

  #ownerOf(project: string, namespace: string): Owner {
    const key = JSON.stringify([project, namespace]);
    const owner = this.#owners.get(key) ?? { project, namespace };
    this.#owners.set(key, owner);
    return owner;
  }

  setQueue(name: string, queue: PlanQueue | null): void {
    if (queue === null) this.queues.delete(name);
    else this.queues.set(name, queue);
    this.#limitsChanged();
  }

  setPool(name: string, pool: PoolLimit | null): void {
    if (pool === null) this.pools.delete(name);
    else this.pools.set(name, pool);
    if (pool?.freeze === undefined) this.frozen.delete(name);
    else this.frozen.add(name);
    this.#limitsChanged();
  }

  /** Sets the recorded sum of a scope. A queue's counts only the allocations that name the queue itself. */
  setSum(scope: Scope, used: number): void {
    const id = this.#idOf(scope);
    const more = used - (this.#own[id] as number);
    if (more === 0) return;
    this.#own[id] = used;
    if (this.#limits === null) return;
    if (scope.kind === "queue") this.#addToQueues(this.#queueLevels(scope.queue, scope.pool), more);
    else this.#add(id, more);
  }

  sumOf(scope: Scope): number {
    return this.#own[this.#idOf(scope)] as number;
  }

  /** The same limits with nothing used and nothing frozen. */
  withoutUse(): QuotaState {
    const limits = new QuotaState();
    for (const [name, queue] of this.queues) limits.setQueue(name, queue);
    for (const [name, { freeze: _, ...pool }] of this.pools) limits.setPool(name, pool);
    return limits;
  }

  /** The capacity that is left at a level. */
  availableAt(level: number): number {
    return this.#limitAt(level) - (this.#used[level] as number);
  }

  #limitAt(level: number): number {
    const known = this.#levelLimits[level];
    if (known !== undefined) return known;
    const limit = limitOf(this.#scopes[level] as Scope, NO_CAPS, this.limits);
    this.#levelLimits[level] = limit;
    return limit;
  }

  get limits(): LimitBook {
    this.#limits ??= this.#load();
    return this.#limits;
  }

  /** The queues as branches of their trees, for this version of the limits. */
  get branches(): Branches {
    if (this.#limits === null) this.#limits = this.#load();
    this.#branches ??= branchesOf([...this.queues.values()], (queue, pool) =>
      this.#idOf({ kind: "queue", pool, queue }),
    );
    return this.#branches;
  }

  /** The use of a branch of this version in one pool. */
  usedIn({ level, ownOnly }: BranchPool): number {
    return (ownOnly ? this.#own[level] : this.#used[level]) as number;
  }

  /**
   * Returns the levels whose capacity has grown since the last call, and the least capacity that each had in between.
   */
  takeWidened(): ReadonlyMap<number, number> {
    const widened = this.#widened;
    this.#widened = new Map();
    return widened;
  }

  #noteLeast(level: number): void {
    const left = this.availableAt(level);
    if (left < (this.#widened.get(level) ?? Number.POSITIVE_INFINITY)) this.#widened.set(level, left);
  }

  /** True if an account may take `need` more of a pool now. */
  admits(account: Account, pool: string, of: { readonly need: number; readonly priority: number }): boolean {
    if (of.need === 0) return true;
    const path = this.#pathOf(account, pool);
    if (of.need > this.#leftAt(path.pool) - this.reservedIn(pool, of.priority)) return false;
    for (const level of path.others) if (of.need > this.#leftAt(level)) return false;
    let passed = of.need;
    for (const level of path.queues) {
      if (passed > this.#leftAt(level)) return false;
      passed = passedUp(this.#used[level.id] as number, passed, level.guarantee);
      if (passed === 0) break;
    }
    return true;
  }

  /** Every level that keeps an account from taking `need` more of a pool now; empty if it may take them. */
  blocks(
    account: Account,
    pool: string,
    of: { readonly resource: string; readonly need: number; readonly priority: number },
  ): QuotaBlock[] {
    if (of.need === 0) return [];
    const path = this.#pathOf(account, pool);
    const found: QuotaBlock[] = [];
    const check = (level: Level, need: number, least: { readonly alone: number; readonly leastNeed: number }) => {
      const used = this.#used[level.id] as number;
      const { scope, limit } = level;
      const reserved = scope.kind === "pool" ? this.reservedIn(pool, of.priority) : 0;
      if (need <= limit - used - reserved) return;
      const exhausted = need <= limit - used ? "Reserved" : "QuotaExhausted";
      const overQuota = least.alone > limit ? "AboveQuota" : exhausted;
      const reason = freezeOf(scope, this.limits) === undefined ? overQuota : frozenReason(scope);
      const amounts = { need, used, limit, reserved, leastNeed: least.leastNeed };
      found.push({ pool, level: level.id, scope, reason, resource: of.resource, ...amounts });
    };
    check(path.pool, of.need, { alone: of.need, leastNeed: of.need });
    let passed = of.need;
    let alone = of.need;
    let guaranteed = false;
    for (const level of path.queues) {
      check(level, passed, { alone, leastNeed: guaranteed ? Number.NEGATIVE_INFINITY : passed });
      passed = passedUp(this.#used[level.id] as number, passed, level.guarantee);
      alone = passedUp(0, alone, level.guarantee);
      guaranteed ||= level.guarantee > 0;
      if (passed === 0) break;
    }
    for (const level of path.others) check(level, of.need, { alone: of.need, leastNeed: of.need });
    return found;
  }

  /** The use and the limit of a scope now, and how much of `need` would count there. */
  usageAt(account: Account, scope: Scope, need: number) {
    const limit = limitOf(scope, NO_CAPS, this.limits);
    const used = this.#used[this.#ids.get(scopeKey(scope)) ?? -1] ?? 0;
    return { used, limit, need: scope.kind === "queue" ? this.#passedTo(account, scope, need) : need };
  }

  /** The part of an amount that a queue is charged with: the queues below it pass on what exceeds their guarantees. */
  #passedTo(account: Account, { queue, pool }: Extract<Scope, { readonly kind: "queue" }>, amount: number): number {
    let passed = amount;
    for (const { id, scope, guarantee } of this.#pathOf(account, pool).queues) {
      if (passed === 0 || (scope.kind === "queue" && scope.queue === queue)) break;
      passed = passedUp(this.#used[id] as number, passed, guarantee);
    }
    return passed;
  }

  /** The queues' levels of a path up to the one that a block names: changes there can change what reaches it. */
  levelsUpTo(account: Account, block: QuotaBlock): readonly number[] {
    if (block.leastNeed !== Number.NEGATIVE_INFINITY) return [block.level];
    const ids = this.#pathOf(account, block.pool).queues.map(({ id }) => id);
    return ids.slice(0, ids.indexOf(block.level) + 1);
  }

  /** Charges an account even above limits. `undo` takes it back. */
  charge(account: Account, pool: string, amount: number): void {
    const path = this.#pathOf(account, pool);
    const [own] = path.queues;
    this.#note(path.pool.id, amount);
    let passed = amount;
    for (const level of path.queues) {
      const used = this.#used[level.id] as number;
      this.#note(level.id, passed);
      passed = passedUp(used, passed, level.guarantee);
      if (passed === 0) break;
    }
    for (const level of path.others) this.#note(level.id, amount);
    if (own !== undefined) {
      this.#own[own.id] = (this.#own[own.id] as number) + amount;
      this.#trail.push(-1 - own.id, amount);
    }
  }

  /**
   * Takes off what an account was charged, as if it had never been charged. `undo` charges it again. The capacity that
   * it makes wakes nobody, because it is not there yet.
   */
  discharge(account: Account, pool: string, amount: number): void {
    this.charge(account, pool, -amount);
  }

  get mark(): number {
    return this.#trail.mark;
  }

  /** Equal during one round: the use is the same. */
  get useVersion(): number {
    return this.#trail.version;
  }

  undo(mark: number): void {
    this.#trail.popAfter(mark, (at, amount) => {
      if (at >= 0 && amount > 0) this.#noteLeast(at);
      if (at < 0) this.#own[-1 - at] = (this.#own[-1 - at] as number) - amount;
      else this.#used[at] = (this.#used[at] as number) - amount;
    });
  }

  /** Makes changes of the use and takes them back. Returns by how much each level would be used more. */
  riseOf(change: () => void): QuotaRise {
    const { mark } = this;
    change();
    const rise = new Map<number, number>();
    this.#trail.forEachAfter(mark, (level, more) => {
      if (level >= 0) rise.set(level, (rise.get(level) ?? 0) + more);
    });
    this.undo(mark);
    return [...rise].filter(([, more]) => more > 0);
  }

  /** `undo` takes it back. */
  chargeRise(rise: QuotaRise, times: 1 | -1): void {
    for (const [level, more] of rise) this.#note(level, times * more);
  }

  #leftAt(level: Level): number {
    return level.limit - (this.#used[level.id] as number);
  }

  /** The gang in the waiting lines of pools, as the last round has found. Null: there is none. */
  get reserved(): Reservation | null {
    return this.#reserved;
  }

  /** Gives a gang the place in the waiting lines of pools, which keep its tokens for it. Null: no gang has it. */
  reserve(reserved: Reservation | null): void {
    this.#reserved = reserved;
  }

  /** Calls back while another gang has the place in the waiting lines of pools. */
  whileReserved<T>(reserved: Reservation | null, use: () => T): T {
    const before = this.#reserved;
    this.#reserved = reserved;
    try {
      return use();
    } finally {
      this.#reserved = before;
    }
  }

  /** The capacity of a pool that is kept from gangs of this priority. */
  reservedIn(pool: string, priority: number): number {
    if (this.#reserved === null || priority > this.#reserved.priority) return 0;
    return this.#reserved.amounts.get(pool) ?? 0;
  }

  #pathOf(account: Account, pool: string): Path {
    const known = account.paths.get(pool);
    if (known !== undefined && known.version === this.version && this.#limits !== null) return known;
    const path: Path = {
      pool: this.#levelsIn(pool).pool,
      queues: this.#queueLevels(account.queue, pool),
      others: this.#ownerLevels(account.owner, pool),
      version: this.version,
    };
    account.paths.set(pool, path);
    return path;
  }

  #levelsIn(pool: string): PoolLevels {
    const known = this.#byPool.get(pool);
    if (known !== undefined) return known;
    const level = this.#levelOf({ kind: "pool", pool }, 0);
    const made: PoolLevels = { pool: level, ofQueues: new Map(), ofOwners: new Map() };
    this.#byPool.set(pool, made);
    return made;
  }

  #ownerLevels(owner: Owner, pool: string): readonly Level[] {
    const { ofOwners } = this.#levelsIn(pool);
    const known = ofOwners.get(owner);
    if (known !== undefined) return known;
    const { project, namespace } = owner;
    const levels = [
      this.#levelOf({ kind: "project", pool, project }, 0),
      this.#levelOf({ kind: "namespace", pool, project, namespace }, 0),
    ];
    ofOwners.set(owner, levels);
    return levels;
  }

  #queueLevels(queue: string, pool: string): readonly Level[] {
    const { ofQueues } = this.#levelsIn(pool);
    const known = ofQueues.get(queue);
    if (known !== undefined) return known;
    const levels: Level[] = [];
    let next: string | null = queue;
    while (next !== null && levels.length < QUEUE_DEPTH_MAX) {
      const { guarantee, parent } = this.limits.queue(next, pool);
      levels.push(this.#levelOf({ kind: "queue", pool, queue: next }, guarantee));
      next = parent;
    }
    ofQueues.set(queue, levels);
    return levels;
  }

  #levelOf(scope: Scope, guarantee: number): Level {
    const id = this.#idOf(scope);
    const known = this.#levels[id];
    if (known !== undefined) return known;
    const level = { id, scope: this.#scopes[id] as Scope, limit: limitOf(scope, NO_CAPS, this.limits), guarantee };
    this.#levels[id] = level;
    return level;
  }

  #addToQueues(levels: readonly Level[], amount: number): void {
    let passed = amount;
    for (const { id, guarantee } of levels) {
      const used = this.#used[id] as number;
      this.#add(id, passed);
      passed = passedUp(used, passed, guarantee);
      if (passed === 0) break;
    }
  }

  #add(id: number, amount: number): void {
    if (amount < 0) this.#noteLeast(id);
    this.#used[id] = (this.#used[id] as number) + amount;
  }

  #note(id: number, amount: number): void {
    this.#used[id] = (this.#used[id] as number) + amount;
    this.#trail.push(id, amount);
  }

  #idOf(scope: Scope): number {
    const key = scopeKey(scope);
    const known = this.#ids.get(key);
    if (known !== undefined) return known;
    const id = this.#scopes.push(scope) - 1;
    this.#ids.set(key, id);
    this.#used.push(0);
    this.#own.push(0);
    return id;
  }

  #limitsChanged(): void {
    this.version += 1;
    this.#limits = null;
    this.#branches = null;
    this.#levelLimits = [];
    this.#levels = [];
    this.#byPool.clear();
  }

  /** Makes the limits, and sums up the use of all levels again. */
  #load(): LimitBook {
    const queues = queueLimitsOf([...this.queues.values()].map(treeQueue));
    const limits = limitBook({ pools: [...this.pools.values()], queues });
    this.#limits = limits;
    this.#used.fill(0);
    for (const [id, scope] of [...this.#scopes].entries()) {
      const own = this.#own[id] as number;
      if (own === 0) continue;
      if (scope.kind === "queue") this.#addToQueues(this.#queueLevels(scope.queue, scope.pool), own);
      else this.#add(id, own);
    }
    return limits;
  }
}
