/** Serves admins who clear away pools that nothing uses: what is in the way, and what goes with the pool. */
import type { ChangeOutcome } from "../../../core/admin/change-outcome.ts";
import type { PoolRecord } from "../../../core/quota/pools.ts";
import { type Db, storable } from "../db/db.ts";
import { QUEUES_DOMAIN, takeDomain, takeDomainsOf } from "../ledger/quota-domains.ts";
import { takePools } from "../ledger/sums.ts";
import { auditParams, INSERT_AUDIT } from "./audit.ts";
import { SELECT_POOLS } from "./list-pools.ts";

/**
 * Deletes a pool, unless tokens, a queue or a cluster use it. Version 0: any version. A grant of the pool commits
 * before this transaction, which then finds it, or after it, and is refused: a pool without a row has the limit 0.
 */
export function deletePool(
  db: Db,
  name: string,
  by: { readonly version: number; readonly actor: string; readonly nowMs: number },
): Promise<ChangeOutcome<PoolRecord>> {
  const { version, actor, nowMs } = by;
  return db.tx(async (tx) => {
    // Every transaction that registers a pool, or names it as a flavor, locks this domain.
    await takeDomain(tx, QUEUES_DOMAIN);
    await takeDomainsOf(tx, [storable(name)]);
    await takePools(tx, [storable(name)]);
    const [found] = await tx.query<PoolRecord & { readonly user: string | null }>(FIND_POOL, [storable(name)]);
    if (found === undefined) return { kind: "notFound" };
    const { user, ...record } = found;
    if (version !== 0 && version !== record.version) return { kind: "stale" };
    if (user !== null) return { kind: "inUse", by: user };
    const { used: _used, tokens: _tokens, ...before } = record;
    await tx.query(DELETE_POOL, [
      ...auditParams(tx, { timeMs: nowMs, actor, action: "DeletePool", subject: name, details: { before } }),
      name,
      record.domain,
    ]);
    return { kind: "done", record };
  });
}

const POOL_USER = `
(select case when count(*) = 1 then '1 token that is held' else count(*) || ' tokens that are held' end as by
   from allocations where pool = $1 and released_ms is null having count(*) > 0)
union all
(select 'tokens that are being released: repeat the call in a moment'
   from allocations where pool = $1 and released_ms is not null and not confirmed limit 1)
union all
(select 'queue ' || queue || ', which has a quota for it' from queue_quotas where flavor = $1 order by queue limit 1)
union all
(select 'cluster ' || name || ', which has it as a flavor'
   from clusters c
  where forgotten_ms is null and exists (select from json_array_elements(c.flavors) f where f ->> 'name' = $1)
  order by name limit 1)
limit 1`;

const FIND_POOL = `
select p.*, (${POOL_USER}) as "user" from (${SELECT_POOLS} where p.name = $1) p`;

const DELETE_POOL = `
with raised as (
  update quota_domains set limits_version = limits_version + 1 where name = $13
), cleared as (
  delete from allocation_sums where pool = $12
), noted as (${INSERT_AUDIT}
)
delete from pools where name = $12`;
