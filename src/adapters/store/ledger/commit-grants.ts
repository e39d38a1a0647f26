/** Serves users and callers who were granted tokens: records each grant once, and only within the limits in force. */

import { FENCES_PER_EPOCH, sameHolder, tokenKey } from "../../../core/quota/allocations.ts";
import type { Allocation, LedgerRow, Limits } from "../../../core/quota/counters.ts";
import { GrantBook, type RecordedSum } from "../../../core/quota/grant-book.ts";
import type { CommitOutcome, LedgerGrant, Tombstone } from "../../../core/quota/ledger.ts";
import { type Db, type Executor, json } from "../db/db.ts";
import { holderColumns, LEDGER_COLUMNS, type LedgerColumns, ledgerRow, refText } from "./ledger-row.ts";
import { type TakenDomain, takeDomain } from "./quota-domains.ts";
import { type LimitBounds, readLimits } from "./quota-limits.ts";
import { recordedScopes, type SumKey, scopeOfSum, sharesOf, sumKey, takePools } from "./sums.ts";
import { takeLeases } from "./take-leases.ts";
import { forgetTombstonesIn, tombstonesFor, tombstonesOn } from "./tombstones.ts";
import { writeVoided } from "./void-grants.ts";

export type CommitRequest = {
  readonly domain: string;
  readonly epoch: number;
  readonly grants: readonly LedgerGrant[];
  readonly nowMs: number;
};

/**
 * Records grants in order in one transaction. Each grant is recorded with all of its allocations or not at all. Returns
 * the outcomes in the same order.
 */
export function commitGrants(db: Db, request: CommitRequest, bounds: LimitBounds): Promise<readonly CommitOutcome[]> {
  return request.grants.length === 0 ? Promise.resolve([]) : db.tx((tx) => commitGrantsIn(tx, request, bounds));
}

/**
 * Locks leases, then the domain, then pools. Writes nothing for a grant that the limits in force refuse, or that is
 * already recorded.
 */
export async function commitGrantsIn(
  tx: Executor,
  { domain, epoch, grants, nowMs }: CommitRequest,
  bounds: LimitBounds,
): Promise<readonly CommitOutcome[]> {
  const counts = await takeLeases(tx, grants);
  const taken = await takeDomain(tx, domain);
  if (taken.epoch !== epoch) return grants.map(() => ({ kind: "epochMoved" }));
  const allocations = grants.flatMap((grant) => grant.allocations);
  const pools = [...new Set(allocations.map(({ pool }) => pool))];
  await takePools(tx, pools);
  const rows = new RowBook(await readRows(tx, grants));
  const limits = await readLimits(tx, domain, bounds, pools);
  const book = new GrantBook(limits, await readSums(tx, allocations, limits));
  const graves = new Graves(taken.buried ? await tombstonesFor(tx, domain, grants) : []);
  const written: LedgerGrant[] = [];
  const outcomes = grants.map((grant) => {
    const known = rows.outcomeOf(grant, taken);
    if (known !== null) return known;
    if (!counts(grant)) return { kind: "gone" as const };
    if (graves.take(grant)) {
      rows.add(grant, false);
      return { kind: "gone" as const };
    }
    const violation = book.take(grant.allocations);
    if (violation !== null) return { kind: "over" as const, violation };
    rows.add(grant, true);
    written.push(grant);
    return { kind: "committed" as const };
  });
  await writeAllocations(tx, written, nowMs);
  await writeVoided(tx, graves.voided, nowMs);
  await forgetTombstonesIn(tx, domain, graves.used);
  return outcomes;
}

/** The tombstones of the grants' tokens. Each refuses one grant. */
class Graves {
  #left: readonly Tombstone[];
  readonly used: Tombstone[] = [];
  readonly voided: LedgerRow[] = [];

  constructor(tombstones: readonly Tombstone[]) {
    this.#left = tombstones;
  }

  /** Returns true if the grant was released before it arrived. Its allocations are then voided. */
  take(grant: LedgerGrant): boolean {
    const { allocations, holder, fence } = grant;
    const found = tombstonesOn(grant, this.#left);
    if (found.length === 0) return false;
    this.#left = this.#left.filter((one) => !found.includes(one));
    this.used.push(...found);
    this.voided.push(...allocations.map(({ caps: _caps, ...allocation }) => ({ ...allocation, holder, fence })));
    return true;
  }
}

type KnownRow = LedgerRow & { readonly live: boolean };

/** The ledger's rows of the grants' tokens, plus the rows that these grants add. */
class RowBook {
  readonly #byToken = new Map<string, KnownRow[]>();

  constructor(rows: readonly KnownRow[]) {
    for (const row of rows) this.#rowsOf(row).push(row);
  }

  add({ allocations, holder, fence }: LedgerGrant, live: boolean): void {
    for (const allocation of allocations) this.#rowsOf(allocation).push({ ...allocation, holder, fence, live });
  }

  /** Returns the outcome of a grant that is recorded, in conflict or too old. Null: a new grant. */
  outcomeOf(grant: LedgerGrant, domain: TakenDomain): CommitOutcome | null {
    const own = grant.allocations.map((allocation) =>
      this.#rowsOf(allocation).find(({ fence }) => fence === grant.fence),
    );
    if (own.some((row) => row?.live === false)) return { kind: "gone" };
    const other = this.#otherOf(grant);
    if (other !== null) return takenBy(other);
    if (own.every((row) => row !== undefined)) return { kind: "committed" };
    if (own.some((row) => row !== undefined) || grant.fence <= domain.prunedFence) return { kind: "gone" };
    return grant.fence / FENCES_PER_EPOCH === BigInt(domain.epoch) ? null : { kind: "epochMoved" };
  }

  /** Returns a live row of one of the grant's tokens that belongs to another grant. */
  #otherOf({ allocations, holder, fence }: LedgerGrant): KnownRow | null {
    for (const allocation of allocations) {
      const live = this.#rowsOf(allocation).find((row) => row.live);
      if (live === undefined) continue;
      if (live.fence !== fence || live.amount !== allocation.amount || !sameHolder(live.holder, holder)) return live;
    }
    return null;
  }

  #rowsOf(allocation: { readonly pool: string; readonly token: string }): KnownRow[] {
    const key = tokenKey(allocation);
    const known = this.#byToken.get(key) ?? [];
    this.#byToken.set(key, known);
    return known;
  }
}

function takenBy({ pool, token, holder, amount, fence }: LedgerRow): CommitOutcome {
  return { kind: "taken", pool, token, holder, amount, fence };
}

/** Reads the rows of these tokens that are live or have the grants' fences. */
async function readRows(tx: Executor, grants: readonly LedgerGrant[]): Promise<readonly KnownRow[]> {
  const refs = grants.flatMap(({ allocations, fence }) =>
    allocations.map(({ pool, token }) => refText({ pool, token, fence })),
  );
  const rows = await tx.query<LedgerColumns & { live: boolean }>(READ_ROWS, [json(refs)]);
  return rows.map((row) => ({ ...ledgerRow(row), live: row.live }));
}

const READ_ROWS = `
select distinct ${LEDGER_COLUMNS}, a.released_ms is null as live
  from json_to_recordset($1::json) as w (pool text, token text, fence bigint)
 cross join lateral (
         select * from allocations where pool = w.pool and token = w.token and released_ms is null
         union
         select * from allocations where pool = w.pool and token = w.token and fence = w.fence
       ) a`;

/**
 * Reads the sums that limit these allocations. It reads all queues of their pools, since a queue's use also counts in
 * the queues above it.
 */
async function readSums(
  tx: Executor,
  allocations: readonly Allocation[],
  limits: Limits,
): Promise<readonly RecordedSum[]> {
  const wanted = [
    ...allocations.flatMap(recordedScopes),
    ...limits.queues.map((queue) => ({ kind: "queue" as const, ...queue })),
  ];
  const rows = await tx.query<SumKey & { used: number }>(READ_SUMS, [json(wanted.map(sumKey))]);
  return rows.map(({ used, ...key }) => ({ scope: scopeOfSum(key), used }));
}

const READ_SUMS = `
select pool, scope, name, used
  from allocation_sums
 where used > 0 and (pool, scope, name) in (
   select pool, scope, name from json_to_recordset($1::json) as w (pool text, scope text, name text)
 )`;

async function writeAllocations(tx: Executor, grants: readonly LedgerGrant[], nowMs: number): Promise<void> {
  if (grants.length === 0) return;
  const allocations = grants.flatMap(({ allocations, holder, fence }) =>
    allocations.map((allocation) => ({ ...allocation, ...holderColumns(holder), fence: fence.toString() })),
  );
  await tx.query(WRITE_ALLOCATIONS, [json(allocations), json(sharesOf(allocations)), nowMs]);
}

const WRITE_ALLOCATIONS = `
with charged as (
  insert into allocation_sums as s (pool, scope, name, used)
  select pool, scope, name, amount
    from json_to_recordset($2::json) as c (pool text, scope text, name text, amount bigint)
   order by pool, scope, name
  on conflict (pool, scope, name) do update set used = s.used + excluded.used
)
insert into allocations (
  pool, token, queue, project, namespace, amount, fence, job_uid, admission, caller, lease_ms, granted_ms
)
select pool, token, queue, project, namespace, amount, fence, job_uid, admission, caller, "leaseMs", $3
  from json_to_recordset($1::json) as l (
    pool text, token text, queue text, project text, namespace text, amount bigint, fence bigint,
    job_uid uuid, admission int, caller text, "leaseMs" bigint
  )`;
