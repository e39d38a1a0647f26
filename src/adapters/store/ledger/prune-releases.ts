import { type Db, onlyRow } from "../db/db.ts";

/** The time for which released rows are kept. A commit that arrives within this time still finds its own row. */
const KEPT_MS = 86_400_000;
/** The number of rows in one transaction. It is bounded because grants wait for the transaction. */
const PAGE = 1_000;

/**
 * Deletes one page of allocations that were released long ago and that the counters have freed. Returns the number of
 * deleted rows. The domain keeps their highest fence, so that no grant with such an old fence is ever committed.
 */
export function pruneReleases(db: Db, nowMs: number): Promise<number> {
  return db.tx(async (tx) => {
    const old = await tx.query<{ id: number; pool: string }>(OLD_RELEASES, [nowMs - KEPT_MS, PAGE]);
    if (old.length === 0) return 0;
    const ids = old.map(({ id }) => id);
    await tx.query(TAKE_DOMAINS, [ids]);
    await tx.query(RAISE_PRUNED, [ids]);
    const pruned = await tx.query<{ count: number }>(PRUNE, [ids]);
    return onlyRow(pruned).count;
  });
}

const OLD_RELEASES = `
select id, pool from allocations
 where confirmed and released_ms < $1
 order by released_ms, id limit $2`;

const TAKE_DOMAINS = `
select 1 from quota_domains
 where name in (select p.domain from allocations a join pools p on p.name = a.pool where a.id = any($1::bigint[]))
 order by name <> 'default', name for no key update`;

const RAISE_PRUNED = `
update quota_domains d set pruned_fence = greatest(d.pruned_fence, old.fence)
  from (
    select p.domain, max(a.fence) as fence
      from allocations a join pools p on p.name = a.pool
     where a.id = any($1::bigint[]) group by p.domain
  ) old
 where d.name = old.domain`;

const PRUNE = `
with pruned as (delete from allocations where id = any($1::bigint[]) and confirmed returning 1)
select count(*) as count from pruned`;
