import type { Limits, PoolLimit } from "../../../core/quota/counters.ts";
import type { Freeze } from "../../../core/quota/freeze.ts";
import { registeredDomain } from "../../../core/quota/ledger.ts";
import { queueLimitsOf, type TreeQueue } from "../../../core/quota/tree.ts";
import { type Executor, onlyRow } from "../db/db.ts";

/** The maximum numbers of tokens and waiters in a domain. */
export type LimitBounds = Pick<Limits, "tokensMax" | "waitersMax">;

/** The maximum numbers of tokens, waiters and pools in a domain. */
export type QuotaBounds = LimitBounds & { readonly poolsMax: number };

/** Reads the limits in force in a domain in one statement, of all its pools or of the named ones. */
export async function readLimits(
  executor: Executor,
  name: string,
  bounds: LimitBounds,
  pools: readonly string[] | null = null,
): Promise<Limits> {
  return limitsOf(onlyRow(await executor.query<LimitsRow>(READ_LIMITS, limitsParams(name, pools))), bounds);
}

/** The first parameters of every statement that contains READ_LIMITS. Null: all pools of the domain. */
export function limitsParams(name: string, pools: readonly string[] | null): readonly unknown[] {
  const { domain, durability } = registeredDomain(name);
  return [domain, durability, pools];
}

export function limitsOf(row: LimitsRow, bounds: LimitBounds): Limits {
  return {
    version: row.version,
    pools: row.pools.map(({ freeze, ...limit }) => (freeze === null ? limit : { ...limit, freeze })),
    queues: queueLimitsOf(row.queues),
    tokensMax: bounds.tokensMax,
    waitersMax: bounds.waitersMax,
  };
}

export type LimitsRow = {
  readonly version: number;
  readonly pools: readonly (Omit<PoolLimit, "freeze"> & { readonly freeze: Freeze | null })[];
  readonly queues: readonly TreeQueue[];
};

/**
 * Returns version 0 and no limits for a domain without pools. Returns all queues, since any queue may lend. Grants of
 * quota count while their rows are there: counters and planners agree on them by the version.
 */
const READ_LIMITS = readLimitsSql("null::bigint", "($3::text[] is null or name = any($3))");

/**
 * The same at the time that a parameter has: a grant whose time has come does not count, whoever ends it later.
 * `isAsked` selects pools by the third parameter.
 */
export function readLimitsSql(now: string, isAsked: string): string {
  return `
with counted as (
  select name, quota, project_default, namespace_default, frozen from pools
   where domain = $1 and durability = $2 and ${isAsked}
)
select coalesce((select limits_version from quota_domains where name = $1), 0) as version,
       coalesce((
         select json_agg(json_build_object(
                  'pool', name, 'quota', quota, 'projectDefault', project_default,
                  'namespaceDefault', namespace_default, 'freeze', frozen
                ) order by name)
           from counted
       ), '[]') as pools,
       coalesce((
         select json_agg(json_build_object('name', name, 'parent', parent, 'freeze', frozen, 'quotas', coalesce((
                  select json_agg(json_build_object(
                           'pool', flavor, 'nominal', least(nominal + coalesce(amount, 0), 9007199254740991),
                           'borrowingLimit', borrowing_limit, 'lendingLimit', lending_limit
                         ) order by position)
                    from queue_quotas
                    left join (select * from quota_grants where ${now} is null or until_ms > ${now}) g
                   using (queue, flavor)
                   where queue = q.name and flavor in (select name from counted)
                ), '[]')) order by name)
           from queues q
       ), '[]') as queues`;
}
