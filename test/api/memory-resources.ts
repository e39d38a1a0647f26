import type { TokenOperations } from "../../src/api/resource-manager/quota-ports.ts";
import type { AuditEntry, AuditNote, AuditQuery } from "../../src/core/admin/audit.ts";
import type { ChangeOutcome } from "../../src/core/admin/change-outcome.ts";
import type { AllocationQuery, ForcedRelease, PageRequest, ReconcileRequest } from "../../src/core/quota/admin.ts";
import { AMOUNT_MAX } from "../../src/core/quota/allocations.ts";
import type {
  AllocateAnswer,
  AllocateRequest,
  ReleaseAnswer,
  RenewAnswer,
  RenewRequest,
  TokenRelease,
  WaitAnswer,
} from "../../src/core/quota/calls.ts";
import { CounterState } from "../../src/core/quota/counter-state.ts";
import type {
  Allocation,
  HeldToken,
  Holder,
  Limits,
  QueueLimit,
  TokenName,
  Violation,
} from "../../src/core/quota/counters.ts";
import { TICK_MS_MAX } from "../../src/core/quota/lease-clock.ts";
import type {
  PoolFreeze,
  PoolRecord,
  PoolRegistration,
  RegisterOutcome,
  ShownPool,
} from "../../src/core/quota/pools.ts";

const EPOCH = 1;
const HOUR_MS = 3_600_000;
const POOLS_MAX = 50;

type Pool = Omit<ShownPool, "used" | "tokens" | "waiters">;

/**
 * Pools over the counters' specification, with the contract of `TokenOperations`, without ledger and failures. Leases
 * run only while a test lets time pass.
 */
export class MemoryResources implements TokenOperations {
  readonly pools = new Map<string, Pool>();
  /** Queues that may be charged, with their limits. */
  readonly queues: QueueLimit[] = [];
  readonly audit: AuditEntry[] = [];
  /** Names of jobs whose admissions hold tokens, as `namespace/name`, by uid. */
  readonly jobs = new Map<string, string>();
  tokensMax = 1000;
  waitersMax = 100;
  readonly #granted = new Map<string, number>();
  readonly #state = new CounterState(() => this.#changed());
  readonly #listeners = new Set<() => void>();
  #limitsVersion = 0;
  readonly #limitsChanged: () => void;
  #waiters = 0;

  constructor(limitsChanged: () => void = () => {}) {
    this.#limitsChanged = limitsChanged;
    this.#state.open(EPOCH, { rows: [], limits: this.#limits() });
  }

  /** Lets time pass, and ends leases that lapse, as the reaper does. */
  pass(spanMs: number): void {
    for (let left = spanMs; left > 0; left -= TICK_MS_MAX) {
      this.#state.report(EPOCH);
      const elapsedMs = Math.min(left, TICK_MS_MAX);
      const ticked = this.#state.tick(EPOCH, { elapsedMs, unconfirmedMs: AMOUNT_MAX, limit: 1000 });
      if (ticked.kind === "ticked") this.#state.free(EPOCH, ticked.lapsed);
    }
    this.#changed();
  }

  /** Loads the present queues, pools and bounds into the counters. */
  refresh(): void {
    this.#state.setLimits(EPOCH, this.#limits());
    this.#changed();
  }

  /** Grants tokens to the admission of a job, as the planner does. */
  admit(allocation: Omit<Allocation, "caps" | "leaseMs">, holder: Extract<Holder, { kind: "admission" }>): void {
    const allocations = [{ ...allocation, caps: { project: null, namespace: null }, leaseMs: null }];
    this.#state.grant({ epoch: EPOCH, holder, allocations, priority: 0, waiter: null });
    this.#granted.set(keyOf(allocation), Date.now());
  }

  get held(): readonly HeldToken[] {
    return this.#state.held(null, 10_000).tokens;
  }

  get waiting(): number {
    return this.#state.waiting().length;
  }

  async registerPool(settings: PoolRegistration, version: number, actor: string): Promise<RegisterOutcome<ShownPool>> {
    const { name } = settings;
    const before = this.pools.get(name);
    if (version !== 0 && before === undefined) return { kind: "notFound" };
    if (version !== 0 && version !== before?.version) return { kind: "stale" };
    if (before === undefined && this.pools.size >= POOLS_MAX) return { kind: "tooManyPools", poolsMax: POOLS_MAX };
    for (const field of ["domain", "durability"] as const) {
      const asked = settings[field];
      if (before !== undefined && asked !== null && asked !== before[field])
        return { kind: "fixed", field, is: before[field] };
    }
    if (settings.queue && !this.#knowsQueue(settings.queue)) return { kind: "unknownQueue", name: settings.queue };
    const pool = this.#merged(settings, before);
    this.pools.set(name, pool);
    this.refresh();
    this.#limitsChanged();
    this.#note({ actor, action: "RegisterResourceQuota", subject: name, reason: "", details: { quota: pool.quota } });
    return { kind: "done", record: this.#shown(pool) };
  }

  async deletePool(name: string, version: number, actor: string): Promise<ChangeOutcome<PoolRecord>> {
    const pool = this.pools.get(name);
    if (pool === undefined) return { kind: "notFound" };
    if (version !== 0 && version !== pool.version) return { kind: "stale" };
    if (this.held.some((token) => token.pool === name)) return { kind: "inUse", by: "tokens that are held" };
    this.pools.delete(name);
    this.refresh();
    this.#note({ actor, action: "DeletePool", subject: name, reason: "", details: {} });
    return { kind: "done", record: this.#shown(pool) };
  }

  async freezePool({ name, reason, actor }: PoolFreeze): Promise<ChangeOutcome<ShownPool>> {
    const before = this.pools.get(name);
    if (before === undefined) return { kind: "notFound" };
    const freeze = reason === null ? null : { by: actor, atMs: 1000, reason };
    const pool = { ...before, freeze, version: before.version + 1 };
    this.pools.set(name, pool);
    this.refresh();
    this.#limitsChanged();
    const action = reason === null ? "UnfreezePool" : "FreezePool";
    this.#note({ actor, action, subject: name, reason: reason ?? "", details: {} });
    return { kind: "done", record: this.#shown(pool) };
  }

  #merged(settings: PoolRegistration, before: Pool | undefined): Pool {
    const nowMs = Date.now();
    const limit = (asked: number | null, is: number | null | undefined) =>
      asked === null ? (is ?? null) : asked === AMOUNT_MAX ? null : asked;
    const span = (asked: number | null, is: number | null) => (asked === null ? is : asked === 0 ? null : asked);
    return {
      name: settings.name,
      quota: limit(settings.quota, null),
      projectDefault: limit(settings.projectDefault, before?.projectDefault),
      namespaceDefault: limit(settings.namespaceDefault, before?.namespaceDefault),
      queue: settings.queue === null ? (before?.queue ?? null) : settings.queue || null,
      domain: before?.domain ?? settings.domain ?? "default",
      defaultLeaseMs: span(
        settings.defaultLeaseMs,
        before === undefined ? firstLeaseMs(settings) : before.defaultLeaseMs,
      ),
      maxLeaseMs: span(settings.maxLeaseMs, before?.maxLeaseMs ?? null),
      durability: before?.durability ?? settings.durability ?? "LEDGER",
      freeze: before?.freeze ?? null,
      version: (before?.version ?? 0) + 1,
      createTimeMs: before?.createTimeMs ?? nowMs,
      updateTimeMs: nowMs,
    };
  }

  async allocate(request: AllocateRequest): Promise<AllocateAnswer> {
    const checked = this.#check(request);
    if ("kind" in checked) return checked;
    const { allocations, holder } = checked;
    const outcome = this.#state.grant({ epoch: EPOCH, holder, allocations, priority: request.priority, waiter: null });
    return this.#answer(outcome, request);
  }

  /** Converts allocations for the counters, or refuses them. */
  #check({ allocations, holder }: AllocateRequest): { allocations: Allocation[]; holder: Holder } | AllocateAnswer {
    const checked: Allocation[] = [];
    for (const [index, { lease, ...asked }] of allocations.entries()) {
      const pool = this.pools.get(asked.pool);
      if (pool === undefined) return { kind: "unknownPool", name: asked.pool, index };
      const queue = asked.queue ?? pool.queue;
      if (queue !== null && !this.#knowsQueue(queue)) return { kind: "unknownQueue", name: queue, index };
      const leaseMs = lease.kind === "default" ? pool.defaultLeaseMs : lease.ms;
      if (pool.maxLeaseMs !== null && leaseMs !== null && leaseMs > pool.maxLeaseMs)
        return { kind: "leaseTooLong", index, maxLeaseMs: pool.maxLeaseMs };
      checked.push({ ...asked, queue, leaseMs });
    }
    const [first] = allocations.map(({ pool }) => this.pools.get(pool));
    const other = allocations
      .map(({ pool }) => this.pools.get(pool))
      .find((pool) => pool?.domain !== first?.domain || pool?.durability !== first?.durability);
    if (first !== undefined && other !== undefined) return { kind: "apart", pools: [first.name, other.name] };
    return { allocations: checked, holder: { kind: "caller", name: holder } };
  }

  #answer(outcome: ReturnType<CounterState["grant"]>, { allocations }: AllocateRequest): AllocateAnswer {
    switch (outcome.kind) {
      case "granted": {
        const { fence, held } = outcome;
        this.#state.confirm(
          EPOCH,
          allocations.map(({ pool, token }) => ({ pool, token, fence })),
        );
        for (const allocation of allocations) if (!held) this.#granted.set(keyOf(allocation), Date.now());
        this.#changed();
        const granted = allocations.map(({ pool, token }, at) => {
          const leftMs = outcome.expiresInMs[at] ?? null;
          return { pool, token, expireTimeMs: leftMs === null ? null : Date.now() + leftMs };
        });
        return { kind: "granted", fence, held, allocations: granted };
      }
      case "exhausted": {
        const { violation } = outcome;
        const index = Math.max(
          0,
          allocations.findIndex(({ pool }) => pool === violation.scope.pool),
        );
        return { kind: usedUp(violation), violation, index };
      }
      case "conflict": {
        // If the allocations are held by different grants, the named allocation may not be held at all.
        const held = [outcome, ...allocations]
          .map((allocation) => this.#find(allocation))
          .find((allocation) => allocation !== null);
        if (held === undefined) throw new Error("a conflict is with a token that is held");
        const { amount, fence } = held;
        return { kind: "heldOtherwise", ...refOf(held), holder: this.#nameOf(held.holder), amount, fence };
      }
      case "full":
        return { kind: "tooManyTokens", tokensMax: outcome.tokensMax };
      case "closed":
        throw new Error("these counters do not close");
    }
  }

  async release(releases: readonly TokenRelease[]): Promise<readonly ReleaseAnswer[]> {
    const answers = releases.map((release): ReleaseAnswer => {
      if (!this.pools.has(release.pool)) return { kind: "unknownPool" };
      const held = this.#find(release);
      if (held === null) return { kind: "notHeld" };
      if (this.#nameOf(held.holder) !== release.holder) return { kind: "otherHolder" };
      const { project, namespace, fence } = held;
      const isElsewhere = (release.project ?? project) !== project || (release.namespace ?? namespace) !== namespace;
      if (isElsewhere) return { kind: "otherScope", project, namespace };
      this.#state.free(EPOCH, [{ ...refOf(release), fence }]);
      return { kind: "released", fence };
    });
    this.#changed();
    return answers;
  }

  async renew(of: RenewRequest): ReturnType<TokenOperations["renew"]> {
    const holder: Holder = { kind: "caller", name: of.holder };
    for (const [index, { pool }] of of.tokens.entries()) {
      const maxLeaseMs = this.pools.get(pool)?.maxLeaseMs ?? null;
      if (of.leaseMs !== null && maxLeaseMs !== null && of.leaseMs > maxLeaseMs)
        return { kind: "leaseTooLong", index, maxLeaseMs };
    }
    return of.tokens.map((token): RenewAnswer => {
      const pool = this.pools.get(token.pool);
      if (pool === undefined) return { kind: "unknownPool" };
      const leaseMs = of.leaseMs ?? pool.defaultLeaseMs;
      const outcomes = this.#state.renew(EPOCH, { holder, allocations: [{ ...refOf(token), leaseMs }] });
      const [outcome] = outcomes === "closed" ? [] : outcomes;
      if (outcome?.kind === "otherHolder") return { kind: "otherHolder" };
      if (outcome?.kind !== "renewed") return { kind: "lost" };
      const { fence, expiresInMs } = outcome;
      return { kind: "renewed", fence, expireTimeMs: expiresInMs === null ? null : Date.now() + expiresInMs };
    });
  }

  async *wait(request: AllocateRequest, signal: AbortSignal): AsyncIterable<WaitAnswer> {
    const checked = this.#check(request);
    if ("kind" in checked) return yield checked;
    const waiter = `w${++this.#waiters}`;
    const sinceMs = Date.now();
    try {
      for (let said = ""; !signal.aborted; ) {
        const changed = this.#nextChange(signal);
        const stand = { epoch: EPOCH, waiter, ...checked, priority: request.priority, sinceMs, grants: true };
        const outcome = this.#state.stand(stand);
        if (outcome.kind === "never" || outcome.kind === "lineFull") return yield outcome;
        if (outcome.kind !== "waiting") return yield this.#answer(outcome, request);
        const text = JSON.stringify(outcome);
        if (text !== said) yield outcome;
        said = text;
        await changed;
      }
    } finally {
      this.#state.leave(EPOCH, waiter);
      this.#changed();
    }
  }

  async getPool(name: string) {
    const pool = this.pools.get(name);
    return pool === undefined ? null : this.#shown(pool);
  }

  async listPools({ prefix, ...page }: PageRequest & { readonly prefix: string }) {
    const all = [...this.pools.values()].filter(({ name }) => name.startsWith(prefix)).map((pool) => this.#shown(pool));
    const cut = pageOf(all, page);
    return cut === "badCursor" ? cut : { pools: cut.items, next: cut.next };
  }

  async listAllocations({ filter, ...page }: AllocationQuery) {
    const all = this.held
      .map((held) => ({ held, holder: this.#nameOf(held.holder), grantTimeMs: this.#granted.get(keyOf(held)) ?? 0 }))
      .filter(({ held, holder, grantTimeMs }) => {
        const named = { pool: held.pool, project: held.project, namespace: held.namespace, holder };
        const keys = Object.keys(named) as (keyof typeof named)[];
        const isOld = Date.now() - grantTimeMs >= (filter.olderThanMs ?? 0);
        if (filter.neverLapses && (held.leaseMs !== null || held.holder.kind !== "caller")) return false;
        return isOld && keys.every((key) => filter[key] === null || filter[key] === named[key]);
      })
      .map(({ held, holder, grantTimeMs }) => {
        const { pool, token, amount, project, namespace, queue, fence, leaseMs } = held;
        const expireTimeMs = leaseMs === null ? null : grantTimeMs + leaseMs;
        return { pool, token, amount, project, namespace, queue, holder, fence, grantTimeMs, expireTimeMs };
      });
    const cut = pageOf(all, page);
    return cut === "badCursor" ? cut : { allocations: cut.items, next: cut.next };
  }

  async forceRelease(of: ForcedRelease) {
    if (!this.pools.has(of.pool)) return { kind: "unknownPool" } as const;
    const held = this.#find(of);
    if (held === null) return { kind: "notHeld" } as const;
    const job = held.holder.kind === "admission" ? this.jobs.get(held.holder.jobUid) : undefined;
    if (job !== undefined) return { kind: "liveAdmission", job } as const;
    this.#state.free(EPOCH, [held]);
    this.#changed();
    const details = { token: of.token, holder: this.#nameOf(held.holder) };
    this.#note({ actor: of.actor, action: "ForceRelease", subject: of.pool, reason: of.reason, details });
    return { kind: "released" } as const;
  }

  async reconcile({ pool, dryRun, actor }: ReconcileRequest) {
    if (pool !== null && !this.pools.has(pool)) return { kind: "unknownPool" } as const;
    const gone = this.held.filter(({ holder }) => holder.kind === "admission" && !this.jobs.has(holder.jobUid));
    const of = gone.filter((held) => pool === null || held.pool === pool);
    if (!dryRun) this.#state.free(EPOCH, of);
    if (!dryRun && of.length > 0)
      this.#note({ actor, action: "ReconcileQuota", subject: pool ?? "", reason: "", details: {} });
    const differences = of.map(({ pool: name, token, amount }) => {
      const counts = { counters: amount, ledger: null };
      return { kind: "holderGone" as const, pool: name, subject: token, ...counts, repaired: !dryRun };
    });
    return { differences, repaired: !dryRun && of.length > 0, epoch: EPOCH };
  }

  async listAudit({ filter, ...page }: AuditQuery) {
    const keys = ["action", "actor", "subject"] as const;
    const all = this.audit.filter((entry) => keys.every((key) => filter[key] === null || filter[key] === entry[key]));
    const cut = pageOf(all.toReversed(), page);
    return cut === "badCursor" ? cut : { entries: cut.items, next: cut.next };
  }

  #note(note: Omit<AuditNote, "timeMs">): void {
    const of = { actor: "", reason: "", method: "", peer: "", rpc: "", requestId: "", outcome: "OK" };
    this.audit.push({ ...of, timeMs: Date.now(), ...note });
  }

  #find({ pool, token }: TokenName): HeldToken | null {
    return this.held.find((held) => held.pool === pool && held.token === token) ?? null;
  }

  #nameOf(holder: Holder): string {
    if (holder.kind === "caller") return holder.name;
    return `job/${this.jobs.get(holder.jobUid) ?? holder.jobUid}/${holder.admission}`;
  }

  #knowsQueue(name: string): boolean {
    return this.queues.some(({ queue }) => queue === name);
  }

  #shown(pool: Pool): ShownPool {
    const tokens = this.held.filter((held) => held.pool === pool.name);
    const waiters = this.#state.waiting().filter((waiter) => waiter.pool === pool.name).length;
    return { ...pool, used: tokens.reduce((sum, { amount }) => sum + amount, 0), tokens: tokens.length, waiters };
  }

  #limits(): Limits {
    const { queues, tokensMax, waitersMax } = this;
    const pools = [...this.pools.values()].map(({ name: pool, quota, projectDefault, namespaceDefault, freeze }) => {
      return { pool, quota, projectDefault, namespaceDefault, ...(freeze === null ? {} : { freeze }) };
    });
    return { version: ++this.#limitsVersion, pools, queues: [...queues], tokensMax, waitersMax };
  }

  #changed(): void {
    for (const listener of [...this.#listeners]) listener();
  }

  /** Resolves at the next change after this call, also if it comes before the result is awaited. */
  #nextChange(signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const done = () => {
        this.#listeners.delete(done);
        signal.removeEventListener("abort", done);
        resolve();
      };
      this.#listeners.add(done);
      signal.addEventListener("abort", done, { once: true });
      if (signal.aborted) done();
    });
  }
}

function usedUp({ scope }: Violation) {
  return scope.kind === "pool" || scope.kind === "queue" ? "exhausted" : "namespaceQuotaExceeded";
}

function keyOf({ pool, token }: TokenName): string {
  return JSON.stringify([pool, token]);
}

function refOf({ pool, token }: TokenName): TokenName {
  return { pool, token };
}

function pageOf<T>(all: readonly T[], { pageSize, after }: PageRequest) {
  if (after !== null && !/^\d{1,9}$/.test(after)) return "badCursor" as const;
  const from = Number(after ?? 0);
  const next = from + pageSize < all.length ? String(from + pageSize) : null;
  return { items: all.slice(from, from + pageSize), next };
}

/** A registration of the quota alone is that of a pool whose tokens do not lapse. */
function firstLeaseMs({ name: _name, quota: _quota, ...others }: PoolRegistration): number | null {
  return Object.values(others).every((setting) => setting === null) ? null : HOUR_MS;
}
