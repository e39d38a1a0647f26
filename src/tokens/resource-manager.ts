/** Serves external callers and admins: everything that they do with tokens enters the tokens stage here. */

import { randomUUID } from "node:crypto";
import type {
  AllocateAnswer,
  AllocateRequest,
  LeaseRefusal,
  ReleaseAnswer,
  RenewAnswer,
  RenewRequest,
  TokenRelease,
  WaitAnswer,
} from "../core/quota/calls.ts";
import type { Holder, TokenName, Violation } from "../core/quota/counters.ts";
import type { QuotaEvents } from "../core/quota/events.ts";
import type { Clock } from "../runtime/clock.ts";
import { getOrCreate } from "../runtime/get-or-create.ts";
import { createPoolAdmin } from "./admin/pool-admin.ts";
import { allocate } from "./allocate.ts";
import { buildAllocations } from "./build-allocations.ts";
import { allocateAnswer, outcomeOf, releaseAnswer, renewAnswer, waitAnswer } from "./caller-answers.ts";
import type { QuotaDomain } from "./domain/domain.ts";
import type { Domains } from "./domain/domains.ts";
import type { LimitChanges } from "./limit-changes.ts";
import { PoolCache } from "./pool-cache.ts";
import type { QuotaStore } from "./ports.ts";
import { release } from "./release.ts";
import { renew, type TokenRenewal } from "./renew.ts";
import { wait } from "./wait.ts";

export type ResourceManagerPorts = {
  readonly clock: Clock;
  readonly domains: Domains;
  readonly store: QuotaStore;
  readonly events: QuotaEvents;
  readonly limitChanges: Pick<LimitChanges, "changed">;
  /** Called after an admin has freed tokens, which may let a gang in. A hint. */
  readonly wakePlanner: () => void;
};

/**
 * The operations of external callers and admins. They throw `UnavailableError` while a store is away or a domain is
 * being rebuilt.
 */
export function createResourceManager(ports: ResourceManagerPorts) {
  const cache = new PoolCache(ports.clock, ports.store);
  const calls = new CallerOperations(ports, cache);
  return {
    allocate: (request: AllocateRequest) => calls.allocate(request),
    release: (releases: readonly TokenRelease[]) => calls.release(releases),
    renew: (of: RenewRequest) => calls.renew(of),
    wait: (request: AllocateRequest, signal: AbortSignal) => calls.wait(request, signal),
    ...createPoolAdmin({ ...ports, cache }),
  };
}

class CallerOperations {
  readonly #ports: ResourceManagerPorts;
  readonly #cache: PoolCache;

  constructor(ports: ResourceManagerPorts, cache: PoolCache) {
    this.#ports = ports;
    this.#cache = cache;
  }

  /** Takes all allocations or none. */
  async allocate(request: AllocateRequest): Promise<AllocateAnswer> {
    const { clock, domains, events } = this.#ports;
    const startedMs = clock.monotonicMs();
    const built = await buildAllocations(this.#cache, request.allocations);
    if (built.kind !== "built") return built;
    const domain = await domains.domain(built.registered);
    const asked = { allocations: built.allocations, holder: callerHolder(request.holder), priority: request.priority };
    const outcome = await allocate(domain, asked);
    const deleted = outcome.kind === "exhausted" ? await this.#deleted(outcome.violation, outcome.index) : null;
    if (deleted !== null) return deleted;
    const answer = allocateAnswer(outcome, built.allocations, clock.nowMs());
    const tookMs = clock.monotonicMs() - startedMs;
    for (const pool of new Set(built.allocations.map((allocation) => allocation.pool)))
      events.granted({ pool, ...outcomeOf(answer), tookMs });
    return answer;
  }

  /**
   * Waits for one allocation, until an answer other than `waiting`. The caller leaves the waiting line when it leaves
   * the loop.
   */
  async *wait(request: AllocateRequest, signal: AbortSignal): AsyncGenerator<WaitAnswer> {
    const { clock, domains, events } = this.#ports;
    const startedMs = clock.monotonicMs();
    const built = await buildAllocations(this.#cache, request.allocations);
    if (built.kind !== "built") {
      yield built;
      return;
    }
    const [allocation] = built.allocations;
    if (allocation === undefined || built.allocations.length > 1)
      throw new Error("a waiting request has exactly one allocation");
    const domain = await domains.domain(built.registered);
    const holder = callerHolder(request.holder);
    const waiter = `call/${randomUUID()}`;
    let outcome = "left";
    try {
      for await (const step of wait(domain, { allocation, holder, priority: request.priority, waiter }, signal)) {
        const deleted = step.kind === "never" ? await this.#deleted(step.violation, 0) : null;
        if (deleted !== null) {
          yield deleted;
          return;
        }
        if (step.kind !== "waiting") outcome = step.kind;
        yield waitAnswer(step, built.allocations, clock.nowMs());
      }
    } finally {
      events.waited({ pool: allocation.pool, outcome, tookMs: clock.monotonicMs() - startedMs });
    }
  }

  /** To the counters, a pool that was deleted a moment ago is one with the limit 0. */
  async #deleted({ scope, limit }: Violation, index: number) {
    if (limit > 0) return null;
    this.#cache.forget(scope.pool);
    if ((await this.#cache.pool(scope.pool)) !== null) return null;
    return { kind: "unknownPool", name: scope.pool, index } as const;
  }

  /** Releases each token on its own. The answers are in the order of the tokens. */
  release(releases: readonly TokenRelease[]): Promise<readonly ReleaseAnswer[]> {
    return this.#byDomain<TokenRelease, ReleaseAnswer>(releases, { kind: "unknownPool" }, async (domain, own) => {
      const outcomes = await release(
        domain,
        own.map((release) => ({ ...release, holder: callerHolder(release.holder) })),
      );
      return outcomes.map(releaseAnswer);
    });
  }

  /** Renews each token on its own, in order. Renews none if the pool of one token does not allow the lease. */
  async renew({ holder, tokens, leaseMs }: RenewRequest): Promise<readonly RenewAnswer[] | LeaseRefusal> {
    const pools = await Promise.all(tokens.map((token) => this.#cache.pool(token.pool)));
    for (const [index, pool] of pools.entries()) {
      const maxLeaseMs = pool?.maxLeaseMs ?? null;
      if (leaseMs !== null && maxLeaseMs !== null && leaseMs > maxLeaseMs) {
        return { kind: "leaseTooLong", index, maxLeaseMs };
      }
    }
    const leases = tokens.map((token, at) => ({ ...token, leaseMs: leaseMs ?? pools[at]?.defaultLeaseMs ?? null }));
    return this.#byDomain<TokenRenewal, RenewAnswer>(leases, { kind: "unknownPool" }, async (domain, own) => {
      const renewed = await renew(domain, { holder: callerHolder(holder), allocations: own });
      return renewed.map((outcome) => renewAnswer(outcome, this.#ports.clock.nowMs()));
    });
  }

  /** Runs an operation once for each domain, with all tokens of that domain together. */
  async #byDomain<Named extends TokenName, Answer>(
    tokens: readonly Named[],
    unknownPool: Answer,
    run: (domain: QuotaDomain, tokens: readonly Named[]) => Promise<readonly Answer[]>,
  ): Promise<readonly Answer[]> {
    const groups = new Map<QuotaDomain, number[]>();
    for (const [at, token] of tokens.entries()) {
      const pool = await this.#cache.pool(token.pool);
      if (pool === null) continue;
      const domain = await this.#ports.domains.domain(pool);
      getOrCreate(groups, domain, () => []).push(at);
    }
    const answers: Answer[] = tokens.map(() => unknownPool);
    await Promise.all(
      [...groups].map(async ([domain, indexes]) => {
        const own = await run(
          domain,
          indexes.flatMap((at) => tokens[at] ?? []),
        );
        for (const [index, at] of indexes.entries()) answers[at] = own[index] ?? unknownPool;
      }),
    );
    return answers;
  }
}

function callerHolder(name: string): Holder {
  return { kind: "caller", name };
}
