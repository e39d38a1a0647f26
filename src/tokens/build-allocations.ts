import type { RequestedAllocation, RequestRefusal } from "../core/quota/calls.ts";
import type { Allocation } from "../core/quota/counters.ts";
import type { PoolSettings, RegisteredDomain } from "../core/quota/pools.ts";
import { QUEUES_DOMAIN } from "./limit-changes.ts";
import type { PoolCache } from "./pool-cache.ts";

type BuiltAllocations = {
  readonly kind: "built";
  readonly registered: RegisteredDomain;
  readonly allocations: readonly Allocation[];
};

/** Completes the allocations of a request with the settings of their pools. Needs at least one allocation. */
export async function buildAllocations(
  cache: PoolCache,
  allocations: readonly RequestedAllocation[],
): Promise<BuiltAllocations | RequestRefusal> {
  const pools = await Promise.all(allocations.map((allocation) => cache.pool(allocation.pool)));
  const built: Allocation[] = [];
  for (const [at, allocation] of allocations.entries()) {
    const pool = pools[at];
    if (!pool) return { kind: "unknownPool", name: allocation.pool, index: at };
    const refused = (await allocationRefusal(cache, pool, { ...allocation, at })) ?? apart(pools[0] ?? pool, pool);
    if (refused !== null) return refused;
    const { token, amount, project, namespace, caps } = allocation;
    const queue = allocation.queue ?? pool.queue;
    const leaseMs = allocation.lease.kind === "asked" ? allocation.lease.ms : pool.defaultLeaseMs;
    built.push({ pool: pool.name, token, amount, project, namespace, caps, queue, leaseMs });
  }
  const [first] = pools;
  if (!first) throw new Error("a request has at least one allocation");
  return { kind: "built", registered: { domain: first.domain, durability: first.durability }, allocations: built };
}

async function allocationRefusal(
  cache: PoolCache,
  { name, domain, durability, maxLeaseMs }: PoolSettings,
  { queue, lease, at }: RequestedAllocation & { readonly at: number },
): Promise<RequestRefusal | null> {
  if (queue !== null && !(await cache.queueExists(queue))) return { kind: "unknownQueue", name: queue, index: at };
  if (queue !== null && (domain !== QUEUES_DOMAIN.domain || durability !== QUEUES_DOMAIN.durability)) {
    return { kind: "queueApart", pool: name, queue };
  }
  const isTooLong = lease.kind === "asked" && maxLeaseMs !== null && lease.ms > maxLeaseMs;
  return isTooLong ? { kind: "leaseTooLong", index: at, maxLeaseMs } : null;
}

function apart(first: PoolSettings, pool: PoolSettings): RequestRefusal | null {
  if (pool.domain === first.domain && pool.durability === first.durability) return null;
  return { kind: "apart", pools: [first.name, pool.name] };
}
