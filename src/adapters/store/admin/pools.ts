import type { PoolApart } from "../../../core/admin/queue.ts";
import type { TooManyPools } from "../../../core/quota/pools.ts";
import { type Executor, onlyRow } from "../db/db.ts";
import { QUEUES_DOMAIN, takeDomain } from "../ledger/quota-domains.ts";

/** The time of a change that may make pools, and the number of pools that there may be. */
export type PoolBounds = { readonly nowMs: number; readonly poolsMax: number };

/** Why flavors cannot be pools of the domain in which queues are counted. */
export type PoolRefusal = TooManyPools | ({ readonly kind: "apart" } & PoolApart);

/**
 * Makes the pools that do not exist, without a quota of their own, in the domain in which queues are counted. Returns
 * why a flavor cannot be one of these pools: there would be too many, or a pool that exists is counted otherwise. Locks
 * that domain, so that no pool is deleted meanwhile.
 */
export async function ensurePools(
  tx: Executor,
  names: readonly string[],
  bounds: PoolBounds,
): Promise<PoolRefusal | null> {
  if (names.length === 0) return null;
  await takeDomain(tx, QUEUES_DOMAIN);
  const facts = onlyRow(await tx.query<PoolFacts>(`select ${POOL_FACTS}`, [names]));
  const refused = poolRefusal(facts, bounds);
  if (refused?.kind !== "tooManyPools" && facts.missing > 0) await tx.query(MAKE_POOLS, [names, bounds.nowMs]);
  return refused;
}

/** How many of some pools are missing, how many pools there are, and the first of these that is counted elsewhere. */
export type PoolFacts = { readonly missing: number; readonly pools: number; readonly apart: PoolApart | null };

/** Why pools cannot all be there. Null: they can. */
export function poolRefusal({ missing, pools, apart }: PoolFacts, { poolsMax }: PoolBounds): PoolRefusal | null {
  if (missing > 0 && pools + missing > poolsMax) return { kind: "tooManyPools", poolsMax };
  return apart === null ? null : { kind: "apart", ...apart };
}

/** Columns that read the facts about the pools with these names ($1). The caller has locked the domain of queues. */
export const POOL_FACTS = `
(select count(distinct name)::int from unnest($1::text[]) name where name not in (select name from pools)) as missing,
(select count(*)::int from pools) as pools,
(select row_to_json(a) from (
   select name as pool, domain, durability from pools
    where name = any($1::text[]) and (domain <> 'default' or durability <> 'LEDGER')
    order by name limit 1
 ) a) as apart`;

/** Inserts the pools with these names ($1) that are missing, at this time ($2). */
export const INSERT_POOLS = `
  insert into pools (name, domain, create_ms, update_ms)
  select distinct name, 'default', $2::bigint, $2::bigint from unnest($1::text[]) name order by name
  on conflict (name) do nothing`;

const MAKE_POOLS = `
with made as (${INSERT_POOLS}
)
update quota_domains set limits_version = limits_version + 1 where name = 'default'`;
