import type { PoolQuery } from "../../../core/quota/admin.ts";
import type { PoolRecord, PoolSettings, RegisteredDomain } from "../../../core/quota/pools.ts";
import { decodeCursor, encodeCursor } from "../db/cursor.ts";
import { type Executor, storable } from "../db/db.ts";

type PoolPage = { readonly pools: readonly PoolRecord[]; readonly next: string | null };

export async function getPool(executor: Executor, name: string): Promise<PoolRecord | null> {
  const [record] = await executor.query<PoolRecord>(`${SELECT_POOLS} where p.name = $1`, [storable(name)]);
  return record ?? null;
}

/** Selects pools as records, from `pools p`. */
export const SELECT_POOLS = `
select p.name, p.quota, p.project_default as "projectDefault", p.namespace_default as "namespaceDefault", p.queue,
       p.domain, p.default_lease_ms as "defaultLeaseMs", p.max_lease_ms as "maxLeaseMs", p.durability,
       p.frozen as "freeze", p.version, p.create_ms as "createTimeMs", p.update_ms as "updateTimeMs",
       coalesce((select used from allocation_sums where pool = p.name and scope = 'pool'), 0) as used,
       (select count(*) from allocations where pool = p.name and released_ms is null) as tokens
  from pools p`;

/** Finds the pools with these names in one read. Their order is undefined. */
export function findPools(executor: Executor, names: readonly string[]): Promise<readonly PoolSettings[]> {
  if (names.length === 0) return Promise.resolve([]);
  return executor.query<PoolSettings>(FIND_POOLS, [names.map(storable)]);
}

const FIND_POOLS = `
select name, quota, project_default as "projectDefault", namespace_default as "namespaceDefault", queue, domain,
       default_lease_ms as "defaultLeaseMs", max_lease_ms as "maxLeaseMs", durability
  from pools where name = any($1::text[])`;

/** Lists the domains that have pools, once for each durability, with the number of pools. */
export function listDomains(executor: Executor): Promise<readonly (RegisteredDomain & { readonly pools: number })[]> {
  return executor.query("select domain, durability, count(*) as pools from pools group by 1, 2 order by 1, 2");
}

const ORDER = "pools";

/** Lists the pools whose names begin with `prefix`, by name. */
export async function listPools(executor: Executor, query: PoolQuery): Promise<PoolPage | "badCursor"> {
  const key = query.after === null ? [""] : decodeCursor(query.after, ORDER, ["string"]);
  if (key === null) return "badCursor";
  const params = [storable(query.prefix), key[0], query.pageSize + 1, query.within ?? null];
  const rows = await executor.query<PoolRecord>(LIST_POOLS, params);
  const pools = rows.slice(0, query.pageSize);
  const last = pools.at(-1);
  return { pools, next: rows.length > pools.length && last !== undefined ? encodeCursor(ORDER, [last.name]) : null };
}

/** Whether a pool is one that these prefixes name; it must agree with core's `isPoolShown`. */
export function poolWithin(pool: string, prefixes: string): string {
  return `exists (
    select from unnest(${prefixes}::text[]) prefix
     where ${pool} = prefix or starts_with(${pool}, prefix || ':') or starts_with(${pool}, prefix || '/'))`;
}

/** The pools whose names begin with `prefix`, and of these only those that `within` names. Null: all. */
const LIST_POOLS = `
${SELECT_POOLS}
 where starts_with(p.name, $1) and p.name > $2
   and ($4::text[] is null or ${poolWithin("p.name", "$4")})
 order by p.name limit $3`;
