import { decodeCursor, encodeCursor } from "./cursor.ts";
import { type Executor, storable } from "./db.ts";

export type Durability = "LEDGER" | "REDIS";

export type PoolSettings = {
  readonly name: string;
  /** Null: as large as the queues make it. */
  readonly quota: number | null;
  /** What each project, and each namespace, may use where a call does not say less; null: no limit. */
  readonly projectDefault: number | null;
  readonly namespaceDefault: number | null;
  /** Charged where a call names no queue; null: none. */
  readonly queue: string | null;
  readonly domain: string;
  /** Null: its tokens do not lapse unless a call asks for a lease. */
  readonly defaultLeaseMs: number | null;
  readonly maxLeaseMs: number | null;
  readonly durability: Durability;
};

export type PoolRecord = PoolSettings & {
  readonly version: number;
  readonly createTimeMs: number;
  readonly updateTimeMs: number;
  /** By the ledger, which knows nothing of pools of durability REDIS. */
  readonly used: number;
  readonly tokens: number;
};

export type PoolPage = { readonly pools: readonly PoolRecord[]; readonly next: string | null };

export async function getPool(executor: Executor, name: string): Promise<PoolRecord | null> {
  const [record] = await executor.query<PoolRecord>(`${SELECT_POOLS} where p.name = $1`, [storable(name)]);
  return record ?? null;
}

const SELECT_POOLS = `
select p.name, p.quota, p.project_default as "projectDefault", p.namespace_default as "namespaceDefault", p.queue, p.domain,
       p.default_lease_ms as "defaultLeaseMs", p.max_lease_ms as "maxLeaseMs", p.durability, p.version,
       p.create_ms as "createTimeMs", p.update_ms as "updateTimeMs",
       coalesce((select used from allocation_sums where pool = p.name and scope = 'pool'), 0) as used,
       (select count(*) from allocations where pool = p.name and released_ms is null) as tokens
  from pools p`;

/** The pools among these names, in no order: one read for all that a call names. */
export function findPools(executor: Executor, names: readonly string[]): Promise<readonly PoolSettings[]> {
  if (names.length === 0) return Promise.resolve([]);
  return executor.query<PoolSettings>(FIND_POOLS, [names.map(storable)]);
}

const FIND_POOLS = `
select name, quota, project_default as "projectDefault", namespace_default as "namespaceDefault", queue, domain,
       default_lease_ms as "defaultLeaseMs", max_lease_ms as "maxLeaseMs", durability
  from pools where name = any($1::text[])`;

/** The domains that have pools, with how many of each durability. */
export function listDomains(
  executor: Executor,
): Promise<readonly { readonly domain: string; readonly durability: Durability; readonly pools: number }[]> {
  return executor.query("select domain, durability, count(*) as pools from pools group by 1, 2 order by 1, 2");
}

const ORDER = "pools";

/** By name, those that begin with `prefix`. */
export async function listPools(
  executor: Executor,
  query: { readonly prefix: string; readonly pageSize: number; readonly after: string | null },
): Promise<PoolPage | "badCursor"> {
  const key = query.after === null ? [""] : decodeCursor(query.after, ORDER, ["string"]);
  if (key === null) return "badCursor";
  const rows = await executor.query<PoolRecord>(LIST_POOLS, [storable(query.prefix), key[0], query.pageSize + 1]);
  const pools = rows.slice(0, query.pageSize);
  const last = pools.at(-1);
  return { pools, next: rows.length > pools.length && last !== undefined ? encodeCursor(ORDER, [last.name]) : null };
}

const LIST_POOLS = `
${SELECT_POOLS}
 where starts_with(p.name, $1) and p.name > $2
 order by p.name limit $3`;
