import type { PoolApart } from "../../../core/admin/queue.ts";
import { type Executor, json } from "../db/db.ts";
import { QUEUES_DOMAIN, raiseLimitsVersion } from "../ledger/quota-domains.ts";

/**
 * Makes the pools that are not there yet, without a quota of their own, in the domain that queues are counted in.
 * Returns one that is there and is counted otherwise; null if there is none. Takes the domain where one is missing.
 */
export async function ensurePools(
  executor: Executor,
  names: readonly string[],
  nowMs: number,
): Promise<PoolApart | null> {
  if (names.length === 0) return null;
  const missing = await executor.query(MISSING_POOLS, [json(names)]);
  if (missing.length > 0) {
    await raiseLimitsVersion(executor, QUEUES_DOMAIN);
    await executor.query(ENSURE_POOLS, [json(names), nowMs]);
  }
  const [apart] = await executor.query<PoolApart>(POOL_APART, [json(names)]);
  return apart ?? null;
}

const MISSING_POOLS = `
select 1 from json_array_elements_text($1::json) name where name not in (select name from pools) limit 1`;

const ENSURE_POOLS = `
insert into pools (name, domain, create_ms, update_ms)
select distinct name, 'default', $2::bigint, $2::bigint from json_array_elements_text($1::json) name order by name
on conflict (name) do nothing`;

const POOL_APART = `
select name as pool, domain, durability from pools
 where name in (select json_array_elements_text($1::json)) and (domain <> 'default' or durability <> 'LEDGER')
 order by name limit 1`;
