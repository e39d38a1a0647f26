import type { AllocateLine, LineRefusal } from "../core/quota/calls.ts";
import type { AllocationLine } from "../core/quota/counters.ts";
import type { PoolSettings, RegisteredDomain } from "../core/quota/pools.ts";
import { QUEUES_DOMAIN } from "./limit-changes.ts";
import type { PoolCache } from "./pool-cache.ts";

type BuiltLines = {
  readonly kind: "built";
  readonly registered: RegisteredDomain;
  readonly lines: readonly AllocationLine[];
};

/** Completes the lines of a request with the settings of their pools. Needs at least one line. */
export async function buildLines(cache: PoolCache, lines: readonly AllocateLine[]): Promise<BuiltLines | LineRefusal> {
  const pools = await Promise.all(lines.map((line) => cache.pool(line.pool)));
  const built: AllocationLine[] = [];
  for (const [at, line] of lines.entries()) {
    const pool = pools[at];
    if (!pool) return { kind: "unknownPool", name: line.pool, line: at };
    const refused = (await lineRefusal(cache, pool, { ...line, at })) ?? apart(pools[0] ?? pool, pool);
    if (refused !== null) return refused;
    const { token, amount, project, namespace, caps } = line;
    const queue = line.queue ?? pool.queue;
    const leaseMs = line.lease.kind === "asked" ? line.lease.ms : pool.defaultLeaseMs;
    built.push({ pool: pool.name, token, amount, project, namespace, caps, queue, leaseMs });
  }
  const [first] = pools;
  if (!first) throw new Error("a request has at least one line");
  return { kind: "built", registered: { domain: first.domain, durability: first.durability }, lines: built };
}

async function lineRefusal(
  cache: PoolCache,
  { name, domain, durability, maxLeaseMs }: PoolSettings,
  { queue, lease, at }: AllocateLine & { readonly at: number },
): Promise<LineRefusal | null> {
  if (queue !== null && !(await cache.queueExists(queue))) return { kind: "unknownQueue", name: queue, line: at };
  if (queue !== null && (domain !== QUEUES_DOMAIN.domain || durability !== QUEUES_DOMAIN.durability)) {
    return { kind: "queueApart", pool: name, queue };
  }
  const isTooLong = lease.kind === "asked" && maxLeaseMs !== null && lease.ms > maxLeaseMs;
  return isTooLong ? { kind: "leaseTooLong", line: at, maxLeaseMs } : null;
}

function apart(first: PoolSettings, pool: PoolSettings): LineRefusal | null {
  if (pool.domain === first.domain && pool.durability === first.durability) return null;
  return { kind: "apart", pools: [first.name, pool.name] };
}
