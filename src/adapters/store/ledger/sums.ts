import type { LedgerRow, Scope } from "../../../core/quota/counters.ts";
import { type Executor, json } from "../db/db.ts";

/** The key of one sum. */
export type SumKey = { readonly pool: string; readonly scope: Scope["kind"]; readonly name: string };

type Counted = Pick<LedgerRow, "pool" | "project" | "namespace" | "queue" | "amount">;

/**
 * Locks pools by their sums. Every change of a pool's live rows holds this lock, so later reads of these pools stay
 * valid until the transaction ends.
 */
export async function takePools(tx: Executor, pools: Iterable<string>): Promise<void> {
  await tx.query(TAKE_POOLS, [[...new Set(pools)]]);
}

const TAKE_POOLS = `
select 1 from allocation_sums
 where pool = any($1::text[]) and scope = 'pool'
 order by pool for no key update`;

export function sumKey(scope: Scope): SumKey {
  switch (scope.kind) {
    case "pool":
      return { pool: scope.pool, scope: scope.kind, name: "" };
    case "queue":
      return { pool: scope.pool, scope: scope.kind, name: scope.queue };
    case "project":
      return { pool: scope.pool, scope: scope.kind, name: scope.project };
    case "namespace":
      return { pool: scope.pool, scope: scope.kind, name: JSON.stringify([scope.project, scope.namespace]) };
  }
}

export function scopeOfSum({ pool, scope, name }: SumKey): Scope {
  switch (scope) {
    case "pool":
      return { kind: scope, pool };
    case "queue":
      return { kind: scope, pool, queue: name };
    case "project":
      return { kind: scope, pool, project: name };
    case "namespace": {
      const [project = "", namespace = ""] = JSON.parse(name) as readonly string[];
      return { kind: scope, pool, project, namespace };
    }
  }
}

/** Returns the scopes whose recorded sums include an allocation: of the queues, only its own. */
export function recordedScopes({ pool, project, namespace, queue }: Omit<Counted, "amount">): readonly Scope[] {
  const scopes: Scope[] = [
    { kind: "pool", pool },
    { kind: "project", pool, project },
    { kind: "namespace", pool, project, namespace },
  ];
  if (queue !== null) scopes.push({ kind: "queue", pool, queue });
  return scopes;
}

/** Returns the amounts that allocations add to the recorded sums. */
export function sharesOf(allocations: readonly Counted[]): readonly (SumKey & { readonly amount: number })[] {
  const shares = new Map<string, SumKey & { amount: number }>();
  for (const allocation of allocations) {
    for (const key of recordedScopes(allocation).map(sumKey)) {
      const text = JSON.stringify([key.pool, key.scope, key.name]);
      const share = shares.get(text);
      if (share === undefined) shares.set(text, { ...key, amount: allocation.amount });
      else share.amount += allocation.amount;
    }
  }
  return [...shares.values()];
}

/**
 * Subtracts ended allocations from the sums of their pools, which the caller has locked. If a sum is too small for
 * that, it recomputes the pool: a program that keeps fewer sums wrote those rows.
 */
export async function discharge(tx: Executor, allocations: readonly Counted[]): Promise<void> {
  if (allocations.length === 0) return;
  const shares = sharesOf(allocations);
  const changed = await tx.query(DISCHARGE, [json(shares)]);
  if (changed.length < shares.length) await sumAnew(tx, [...new Set(allocations.map(({ pool }) => pool))]);
}

const DISCHARGE = `
update allocation_sums s set used = s.used - c.amount
  from json_to_recordset($1::json) as c (pool text, scope text, name text, amount bigint)
 where s.pool = c.pool and s.scope = c.scope and s.name = c.name and s.used >= c.amount
returning 1`;

/** Computes the sums of live rows. */
export const LIVE_SUMS = `
select a.pool, s.scope, s.name, sum(a.amount)::bigint as used
  from allocations a
 cross join lateral (values
         ('pool', ''), ('project', a.project), ('queue', a.queue),
         ('namespace', '[' || to_json(a.project)::text || ',' || to_json(a.namespace)::text || ']')
       ) as s (scope, name)
 where a.released_ms is null and s.name is not null and ($1::text[] is null or a.pool = any($1))
 group by a.pool, s.scope, s.name`;

/** Recomputes the sums of these pools from their live rows. The caller has locked the pools. */
export async function sumAnew(tx: Executor, pools: readonly string[]): Promise<void> {
  await tx.query(SUM_ANEW, [pools]);
  await tx.query(CLEAR_SUMS, [pools]);
}

const SUM_ANEW = `
insert into allocation_sums as s (pool, scope, name, used) ${LIVE_SUMS}
on conflict (pool, scope, name) do update set used = excluded.used where s.used <> excluded.used`;

const CLEAR_SUMS = `
with live as (${LIVE_SUMS})
update allocation_sums s set used = 0
 where s.pool = any($1::text[]) and s.used <> 0
   and not exists (select from live l where l.pool = s.pool and l.scope = s.scope and l.name = s.name)`;
