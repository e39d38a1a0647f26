import type { LedgerRow, Scope } from "../../../core/quota/counters.ts";
import { getOrCreate } from "../../../runtime/get-or-create.ts";
import type { Executor } from "../db/db.ts";
import { prepared, unseenArray } from "../db/prepared.ts";

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

const TAKE_POOLS = prepared(`
select 1 from allocation_sums
 where pool = any(${unseenArray("$1", "text")}) and scope = 'pool'
 order by pool for no key update`);

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
      getOrCreate(shares, text, () => ({ ...key, amount: 0 })).amount += allocation.amount;
    }
  }
  return [...shares.values()];
}

/** The scopes, beside its row `a` of allocations, in whose recorded sums a line is counted. A null name: in none. */
export const COUNTED_IN = `
(values ('pool', ''), ('project', a.project), ('queue', a.queue),
        ('namespace', '[' || to_json(a.project)::text || ',' || to_json(a.namespace)::text || ']')
) as s (scope, name)`;

/** Computes the sums of live rows. */
export const LIVE_SUMS = `
select a.pool, s.scope, s.name, sum(a.amount)::bigint as used
  from allocations a
 cross join lateral ${COUNTED_IN}
 where a.released_ms is null and s.name is not null and ($1::text[] is null or a.pool = any($1))
 group by a.pool, s.scope, s.name`;
