import type { PoolApart } from "../../../core/admin/queue.ts";
import type { TooManyPools } from "../../../core/quota/pools.ts";
import { type Executor, json, onlyRow } from "../db/db.ts";
import { QUEUES_DOMAIN, raiseLimitsVersion, takeDomain } from "../ledger/quota-domains.ts";

/** The time of a change that may make pools, and the number of pools that there may be. */
export type PoolBounds = { readonly nowMs: number; readonly poolsMax: number };

/**
 * Makes the pools that do not exist, without a quota of their own, in the domain in which queues are counted. Returns
 * why a flavor cannot be one of these pools: there would be too many, or a pool that exists is counted otherwise. Locks
 * that domain, so that no pool is deleted meanwhile.
 */
export async function ensurePools(
  tx: Executor,
  names: readonly string[],
  { nowMs, poolsMax }: PoolBounds,
): Promise<TooManyPools | ({ readonly kind: "apart" } & PoolApart) | null> {
  if (names.length === 0) return null;
  await takeDomain(tx, QUEUES_DOMAIN);
  const { missing, pools } = onlyRow(await tx.query<{ missing: number; pools: number }>(COUNT_POOLS, [json(names)]));
  if (missing > 0 && pools + missing > poolsMax) return { kind: "tooManyPools", poolsMax };
  if (missing > 0) {
    await raiseLimitsVersion(tx, QUEUES_DOMAIN);
    await tx.query(ENSURE_POOLS, [json(names), nowMs]);
  }
  const [apart] = await tx.query<PoolApart>(POOL_APART, [json(names)]);
  return apart === undefined ? null : { kind: "apart", ...apart };
}

const COUNT_POOLS = `
select (select count(distinct name)::int from json_array_elements_text($1::json) name
         where name not in (select name from pools)) as missing,
       (select count(*)::int from pools) as pools`;

const ENSURE_POOLS = `
insert into pools (name, domain, create_ms, update_ms)
select distinct name, 'default', $2::bigint, $2::bigint from json_array_elements_text($1::json) name order by name
on conflict (name) do nothing`;

const POOL_APART = `
select name as pool, domain, durability from pools
 where name in (select json_array_elements_text($1::json)) and (domain <> 'default' or durability <> 'LEDGER')
 order by name limit 1`;
