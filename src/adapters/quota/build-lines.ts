import type { AllocationLine, Caps, Holder } from "../../core/quota/counters.ts";
import type { Whereabouts } from "./domains.ts";
import type { PoolFacts } from "./pool-facts.ts";
import type { PoolSettings } from "./ports.ts";

export type AllocateLine = {
  readonly pool: string;
  readonly token: string;
  readonly project: string;
  readonly namespace: string;
  readonly amount: number;
  readonly caps: Caps;
  /** Null: the pool's own. */
  readonly queue: string | null;
  readonly lease: { readonly kind: "default" } | { readonly kind: "asked"; readonly ms: number };
};

export type AllocateRequest = {
  readonly lines: readonly AllocateLine[];
  /** A caller's name. */
  readonly holder: string;
  readonly priority: number;
};

/** Why a request is refused before anything is counted. `line` is counted from 0. */
export type LineRefusal =
  | { readonly kind: "unknownPool" | "unknownQueue"; readonly name: string; readonly line: number }
  /** Their domains or durabilities differ: they cannot be granted together. */
  | { readonly kind: "apart"; readonly pools: readonly [string, string] }
  /** Queues are counted in one domain, in the ledger: a pool that is counted elsewhere is not charged to one. */
  | { readonly kind: "queueApart"; readonly pool: string; readonly queue: string }
  | { readonly kind: "leaseTooLong"; readonly line: number; readonly maxLeaseMs: number };

export type BuiltLines = {
  readonly kind: "built";
  readonly where: Whereabouts;
  readonly lines: readonly AllocationLine[];
};

export function callerHolder(name: string): Holder {
  return { kind: "caller", name };
}

/** Turns what a caller asks for into lines, with what their pools say where the caller does not. At least one line. */
export async function buildLines(facts: PoolFacts, lines: readonly AllocateLine[]): Promise<BuiltLines | LineRefusal> {
  const pools = await Promise.all(lines.map((line) => facts.pool(line.pool)));
  const built: AllocationLine[] = [];
  for (const [at, line] of lines.entries()) {
    const pool = pools[at];
    if (!pool) return { kind: "unknownPool", name: line.pool, line: at };
    const refused = (await lineRefusal(facts, pool, { ...line, at })) ?? apart(pools[0] ?? pool, pool);
    if (refused !== null) return refused;
    const { token, amount, project, namespace, caps } = line;
    const queue = line.queue ?? pool.queue;
    const leaseMs = line.lease.kind === "asked" ? line.lease.ms : pool.defaultLeaseMs;
    built.push({ pool: pool.name, token, amount, project, namespace, caps, queue, leaseMs });
  }
  const [first] = pools;
  if (!first) throw new Error("a request has at least one line");
  return { kind: "built", where: { domain: first.domain, durability: first.durability }, lines: built };
}

async function lineRefusal(
  facts: PoolFacts,
  { name, domain, durability, maxLeaseMs }: PoolSettings,
  { queue, lease, at }: AllocateLine & { readonly at: number },
): Promise<LineRefusal | null> {
  if (queue !== null && !(await facts.queueExists(queue))) return { kind: "unknownQueue", name: queue, line: at };
  if (queue !== null && (domain !== "default" || durability === "REDIS")) {
    return { kind: "queueApart", pool: name, queue };
  }
  const isTooLong = lease.kind === "asked" && maxLeaseMs !== null && lease.ms > maxLeaseMs;
  return isTooLong ? { kind: "leaseTooLong", line: at, maxLeaseMs } : null;
}

function apart(first: PoolSettings, pool: PoolSettings): LineRefusal | null {
  if (pool.domain === first.domain && pool.durability === first.durability) return null;
  return { kind: "apart", pools: [first.name, pool.name] };
}
