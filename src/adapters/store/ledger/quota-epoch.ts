import type { AllocationRef } from "../../../core/quota/counters.ts";
import { type RaisedEpoch, registeredDomain } from "../../../core/quota/ledger.ts";
import { UnavailableError } from "../../../runtime/unavailable-error.ts";
import { type Db, type Executor, onlyRow } from "../db/db.ts";
import { prepared } from "../db/prepared.ts";
import { IS_TELLABLE } from "./confirm-turn-overs.ts";
import { LEDGER_COLUMNS, type LedgerColumns, ledgerRow, REFS, refColumns } from "./ledger-row.ts";
import { type LimitBounds, readLimits } from "./quota-limits.ts";
import { reduceAllocations } from "./reduce-allocations.ts";
import { takePools } from "./sums.ts";

/**
 * Raises a domain's epoch, by one or to the first of the server's timeline, if it equals `expected` (null: always).
 * Reads the state to rebuild the counters from. The raise waits for grants that began under the old epoch, so the rows
 * include them. It confirms all earlier releases, since the new counters never held those tokens. It also recomputes
 * the sums, because a program of the previous version keeps fewer of them and may have granted until now.
 */
export async function raiseEpoch(
  db: Db,
  domain: string,
  expected: number | null,
  bounds: LimitBounds,
): Promise<RaisedEpoch> {
  const { durability } = registeredDomain(domain);
  if (durability === "REDIS") await db.query(ENSURE_EPOCH, [domain]);
  const epochMin = await firstEpochOfTimeline(db);
  return db.tx(async (tx) => {
    const [raised] = await tx.query<{ epoch: number }>(RAISE_EPOCH, [domain, expected, epochMin]);
    if (raised === undefined) {
      const present = await tx.query<{ epoch: number }>("select epoch from quota_domains where name = $1", [domain]);
      return { kind: "moved", epoch: onlyRow(present).epoch };
    }
    const limits = await readLimits(tx, domain, bounds);
    if (durability === "REDIS") return { kind: "raised", epoch: raised.epoch, rows: [], limits };
    const pools = limits.pools.map(({ pool }) => pool);
    await takePools(tx, pools);
    await reduceAllocations(tx, [], { nowMs: 0, anew: pools });
    const rows = (await tx.query<LedgerColumns>(CONFIRM_AND_READ, [domain])).map(ledgerRow);
    return { kind: "raised", epoch: raised.epoch, rows, limits };
  });
}

/**
 * The ledger has no rows for counters of durability REDIS, only their epoch. It ensures that one process opens them.
 */
const ENSURE_EPOCH = "insert into quota_domains (name, epoch) values ($1, 0) on conflict (name) do nothing";

/** More than a domain's epochs are raised between two fail-overs. */
const EPOCHS_PER_TIMELINE = 65_536;

/**
 * A replica that is promoted may lack the last raises. It starts a new timeline, and epochs of a later timeline are
 * higher than those of the timelines before: so no fence is given twice, even if the counters are lost too. 0 where the
 * timeline is not known, because the role may not ask for it.
 */
async function firstEpochOfTimeline(db: Db): Promise<number> {
  try {
    const rows = await db.query<{ timeline: number }>(TIMELINE);
    return (onlyRow(rows).timeline - 1) * EPOCHS_PER_TIMELINE;
  } catch (error) {
    if (error instanceof UnavailableError) throw error;
    return 0;
  }
}

/** The name of the file of changes that is written now begins with the timeline, as 8 hexadecimal digits. */
const TIMELINE = `
select ('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::int as timeline`;

const RAISE_EPOCH = `
update quota_domains set epoch = greatest(epoch + 1, $3::bigint)
 where name = $1 and ($2::bigint is null or epoch = $2)
returning epoch`;

/**
 * Confirms releases, reductions and turn-overs, and reads the live rows. Locks released rows in the order of ids, as
 * every statement does. Live rows need no lock: a change of one locks its pool, which is locked here.
 */
const CONFIRM_AND_READ = `
with pool as (
  select name from pools where domain = $1
), released as (
  select id from allocations
   where released_ms is not null and not confirmed and pool in (select name from pool)
   order by id for no key update
), confirmed as (
  update allocations set confirmed = true, untold = false where id in (select id from released)
), known as (
  update allocations set shrunk = false, untold = false
   where (shrunk or untold) and released_ms is null and pool in (select name from pool)
)
select ${LEDGER_COLUMNS}
  from allocations a
 where a.released_ms is null and a.pool in (select name from pool)
 order by a.id`;

/**
 * Reads released allocations that the counters are to free now, oldest first. A grant that was voided after its pool
 * was deleted counts in the domain of queues, so that it is not kept for ever.
 */
export async function unconfirmedReleases(
  executor: Executor,
  domain: string,
  limit: number,
): Promise<readonly AllocationRef[]> {
  const rows = await executor.query<{ pool: string; token: string; fence: string }>(UNCONFIRMED_RELEASES, [
    domain,
    limit,
  ]);
  return rows.map((row) => ({ ...row, fence: BigInt(row.fence) }));
}

const UNCONFIRMED_RELEASES = `
select a.pool, a.token, a.fence::text
  from allocations a left join pools p on p.name = a.pool
 where coalesce(p.domain, 'default') = $1 and a.released_ms is not null and not a.confirmed and ${IS_TELLABLE}
 order by a.fence, a.pool, a.token limit $2`;

/** Records that the counters have freed these allocations. */
export async function confirmReleases(executor: Executor, refs: readonly AllocationRef[]): Promise<void> {
  if (refs.length === 0) return;
  await executor.query(CONFIRM, refColumns(refs));
}

const CONFIRM = prepared(`
with released as (
  select a.id
    from ${REFS}
    join allocations a on a.pool = l.pool and a.token = l.token and a.fence = l.fence
   where a.released_ms is not null and not a.confirmed
   order by a.id for no key update of a
)
update allocations set confirmed = true where id in (select id from released)`);
