import { tokenKey } from "../../core/quota/allocations.ts";
import type { HeldToken } from "../../core/quota/counters.ts";
import type { PoolRecord, ShownPool } from "../../core/quota/pools.ts";
import { getOrCreate } from "../../runtime/get-or-create.ts";
import type { QuotaDomain } from "../domain/domain.ts";
import { allHeld, countByPool, usedByPool } from "../read-counters.ts";
import type { AdminPorts } from "./admin-ports.ts";

/** How long a listing waits for a domain of durability REDIS, which may be new and about to open. */
const NEW_DOMAIN_MS = 500;

/** Adds the facts that only the counters know: waiters, and the use of pools of durability REDIS. */
export async function withUse(
  { domains, events }: AdminPorts,
  pools: readonly PoolRecord[],
): Promise<readonly ShownPool[]> {
  const reads = new Map<QuotaDomain, Promise<PoolUse>>();
  return Promise.all(
    pools.map(async (pool) => {
      const domain = await domains.domain(pool);
      const read = getOrCreate(reads, domain, () => readUse(domain, pool.durability === "REDIS"));
      const use = await read.catch((error: unknown) => {
        // The ledger knows the use of its own pools. The use of a pool of durability REDIS would be a guess.
        if (pool.durability === "REDIS") throw error;
        events.loopFailed({ loop: "quota listing", error });
        return NO_USE;
      });
      const waiters = use.waiters.get(pool.name) ?? 0;
      if (pool.durability === "LEDGER") return { ...pool, waiters };
      return { ...pool, waiters, used: use.used.get(pool.name) ?? 0, tokens: use.tokens.get(pool.name) ?? 0 };
    }),
  );
}

/** Each number by pool. */
type PoolUse = Record<"waiters" | "used" | "tokens", ReadonlyMap<string, number>>;

const NO_USE: PoolUse = { waiters: new Map(), used: new Map(), tokens: new Map() };

async function readUse(domain: QuotaDomain, isRedisOnly: boolean): Promise<PoolUse> {
  await domain.epochs.openEpoch(isRedisOnly ? NEW_DOMAIN_MS : 0);
  const waiters = countByPool(await domain.counters.waiting());
  if (!isRedisOnly) return { ...NO_USE, waiters };
  const used = await usedByPool(domain.counters);
  const held = new Map<string, HeldToken>();
  for await (const token of allHeld(domain)) held.set(tokenKey(token), token);
  return { waiters, used, tokens: countByPool(held.values()) };
}
