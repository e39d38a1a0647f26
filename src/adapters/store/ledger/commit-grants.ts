/** Serves users and callers who were granted tokens: records each grant once, and only within the limits in force. */

import { FENCES_PER_EPOCH, holderKey, sameHolder, tokenKey } from "../../../core/quota/allocations.ts";
import type { LedgerRow } from "../../../core/quota/counters.ts";
import { GrantBook } from "../../../core/quota/grant-book.ts";
import type { CommitOutcome, LedgerGrant, Tombstone } from "../../../core/quota/ledger.ts";
import { getOrCreate } from "../../../runtime/get-or-create.ts";
import { append } from "../../../runtime/lists.ts";
import { type Db, type Executor, json, leaveToCommit } from "../db/db.ts";
import { prepared } from "../db/prepared.ts";
import { NEW_ROW, NEW_ROW_TYPES, newRow } from "./ledger-row.ts";
import { type TakenDomain, takeDomain } from "./quota-domains.ts";
import type { LimitBounds } from "./quota-limits.ts";
import { type HoldRow, type KnownRow, readGrantFacts } from "./read-grants.ts";
import { type Reduction, reduceAllocations } from "./reduce-allocations.ts";
import { sharesOf, takePools } from "./sums.ts";
import { takeLeases } from "./take-leases.ts";
import { forgetTombstonesIn, tombstonesOn } from "./tombstones.ts";

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
  if (request.grants.length === 0) return Promise.resolve([]);
  return db.tx(async (tx) => {
    const { outcomes, written } = await decideGrants(tx, request, bounds);
    leaveToCommit(written);
    return outcomes;
  });
}

/**
 * Locks leases, then the domain, then pools. Writes nothing for a grant that the limits in force refuse, or that is
 * already recorded. After the lock of the domain, for which all other grants wait, at most four statements follow.
 */
export async function commitGrantsIn(
  tx: Executor,
  request: CommitRequest,
  bounds: LimitBounds,
): Promise<readonly CommitOutcome[]> {
  const { outcomes, written } = await decideGrants(tx, request, bounds);
  await written;
  return outcomes;
}

/** Returns before the grants are written. */
async function decideGrants(
  tx: Executor,
  { domain, epoch, grants, nowMs }: CommitRequest,
  bounds: LimitBounds,
): Promise<{ readonly outcomes: readonly CommitOutcome[]; readonly written: Promise<unknown> }> {
  const left = await poolsLeft(tx, grants);
  const counts = await takeLeases(tx, grants);
  const asked = grants.flatMap(({ allocations, needs = [] }) => [...allocations, ...needs]).map(poolOf);
  const pools = [...new Set([...asked, ...left])];
  const [taken, , facts] = await Promise.all([
    takeDomain(tx, domain),
    takePools(tx, pools),
    readGrantFacts(tx, { domain, grants, pools, nowMs }, bounds),
  ]);
  if (taken.epoch !== epoch) {
    return { outcomes: grants.map(() => ({ kind: "epochMoved" })), written: Promise.resolve() };
  }
  const rows = new RowBook(facts.rows);
  const book = new GrantBook(facts.limits, facts.sums);
  const graves = new Graves(facts.tombstones);
  const holds = new HoldBook(facts.holds);
  const granted: LedgerGrant[] = [];
  const outcomes = grants.map((grant) => {
    const known = rows.outcomeOf(grant, taken);
    if (known !== null) return known;
    if (!counts(grant)) return { kind: "gone" as const };
    if (graves.take(grant)) {
      rows.add(grant, false);
      return { kind: "gone" as const };
    }
    const own = holds.of(grant);
    if (!coversNeeds(grant, own)) return { kind: "lacksHolds" as const };
    const violation = violationOf(book, grant, own);
    if (violation !== null) return { kind: "over" as const, violation };
    holds.board(grant);
    rows.add(grant, true);
    granted.push(grant);
    return { kind: "committed" as const };
  });
  const written = Promise.all([
    writeAllocations(tx, { granted, voided: graves.voided, boarded: holds.boarded }, nowMs),
    // A tombstone that is kept refuses once more, and the reaper deletes it: only so many statements may follow the
    // lock.
    holds.unused.length > 0
      ? reduceAllocations(tx, holds.unused, { nowMs })
      : forgetTombstonesIn(tx, domain, graves.used),
  ]);
  return { outcomes, written };
}

/** A gang that moves keeps what it holds, also where limits were lowered below that. */
function violationOf(book: GrantBook, { allocations, needs, movesFrom }: LedgerGrant, own: readonly HoldRow[]) {
  return movesFrom === undefined ? book.take(needs ?? allocations, own) : book.take(allocations);
}

/** The rows that a grant has in the ledger. */
function rowsOf({ allocations, holder, fence }: LedgerGrant): readonly LedgerRow[] {
  return allocations.map(({ caps: _caps, ...allocation }) => ({ ...allocation, holder, fence }));
}

function poolOf({ pool }: { readonly pool: string }): string {
  return pool;
}

/** True if a grant and the holds of its job have all that its admission needs. */
function coversNeeds({ allocations, needs = [] }: LedgerGrant, holds: readonly HoldRow[]): boolean {
  const has = (pool: string) =>
    [...allocations, ...holds].reduce((sum, one) => (one.pool === pool ? sum + one.amount : sum), 0);
  return needs.every(({ pool, amount }) => has(pool) >= amount);
}

/** The pools of which gangs that move hold something. */
async function poolsLeft(tx: Executor, grants: readonly LedgerGrant[]): Promise<readonly string[]> {
  const moving = grants.flatMap(({ holder, movesFrom }) =>
    holder.kind === "admission" && movesFrom !== undefined ? [{ jobUid: holder.jobUid, movesFrom }] : [],
  );
  if (moving.length === 0) return [];
  const rows = await tx.query<{ pool: string }>(POOLS_LEFT, [
    moving.map(({ jobUid }) => jobUid),
    moving.map(({ movesFrom }) => movesFrom),
  ]);
  return rows.map(poolOf);
}

const POOLS_LEFT = `
select distinct a.pool
  from unnest($1::uuid[], $2::int[]) as m (job_uid, admission)
  join allocations a on a.job_uid = m.job_uid and a.admission = m.admission and a.released_ms is null`;

/**
 * The holds of nominees, and what gangs that move hold in the place that they leave. With its admission, a nominee is
 * none any more: its holds are allocations like others.
 */
class HoldBook {
  readonly #byJob = new Map<string, HoldRow[]>();
  readonly boarded: HoldRow[] = [];
  /** What admissions do not need of the holds of their jobs. */
  readonly unused: Reduction[] = [];

  constructor(holds: readonly HoldRow[]) {
    for (const hold of holds) {
      const key = holderKey(hold.holder);
      this.#byJob.set(key, [...(this.#byJob.get(key) ?? []), hold]);
    }
  }

  /** The holds of a new admission. They are its own from the beginning. */
  of(grant: LedgerGrant): readonly HoldRow[] {
    const members = this.#left(grant).filter((token) => isOfMembers(grant, token));
    return [...this.#holds(grant), ...members];
  }

  #holds({ holder, needs }: LedgerGrant): readonly HoldRow[] {
    return needs === undefined ? [] : (this.#byJob.get(holderKey(holder)) ?? []);
  }

  /** Everything that a gang holds in the place that it leaves, also what its plugin has requested. */
  #left({ holder, movesFrom }: LedgerGrant): readonly HoldRow[] {
    if (holder.kind !== "admission" || movesFrom === undefined) return [];
    return this.#byJob.get(holderKey({ ...holder, admission: movesFrom })) ?? [];
  }

  /** Gives the holds to their admission, the oldest first, up to what its grant leaves out. */
  board(grant: LedgerGrant): void {
    const left = new Map(grant.needs?.map(({ pool, amount }) => [pool, amount]));
    for (const { pool, amount } of grant.allocations) left.set(pool, (left.get(pool) ?? 0) - amount);
    const take = ({ pool, amount }: HoldRow) => {
      const kept = Math.max(0, Math.min(amount, left.get(pool) ?? 0));
      left.set(pool, (left.get(pool) ?? 0) - kept);
      return kept;
    };
    for (const hold of this.#holds(grant)) {
      const kept = take(hold);
      this.boarded.push(hold);
      if (kept < hold.amount) this.unused.push({ row: hold.row, kept, reason: "released" });
    }
    for (const token of this.#left(grant)) {
      this.unused.push(turnedOver(grant, token, isOfMembers(grant, token) ? take(token) : 0));
    }
  }
}

/** True for a token that the members of a grant's job hold: others are of its plugin. */
function isOfMembers({ holder }: LedgerGrant, { token }: HoldRow): boolean {
  return holder.kind === "admission" && token.startsWith(`job/${holder.jobUid}/`);
}

/**
 * The end of a token of the admission that a gang moves from. Its new one gets some of it; the rest is for heirs that
 * the token has, or goes free.
 */
function turnedOver({ holder, needs = [] }: LedgerGrant, { row }: HoldRow, amount: number): Reduction {
  const of = needs.find(({ pool }) => pool === row.pool);
  if (holder.kind !== "admission" || of === undefined || amount === 0) return { row, kept: 0, reason: "released" };
  const { pool, queue, project, namespace } = of;
  const { jobUid, admission } = holder;
  const account = { pool, queue: queue ?? "", project, namespace };
  const own = { id: -row.id, jobUid, admission, ...account, lacks: amount, boards: true } as const;
  return { row: { ...row, heirs: [own, ...row.heirs] }, kept: 0, reason: "released" };
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
    const found = tombstonesOn(grant, this.#left);
    if (found.length === 0) return false;
    this.#left = this.#left.filter((one) => !found.includes(one));
    append(this.used, found);
    append(this.voided, rowsOf(grant));
    return true;
  }
}

/** The ledger's rows of the grants' tokens, plus the rows that these grants add. */
class RowBook {
  readonly #byToken = new Map<string, KnownRow[]>();

  constructor(rows: readonly KnownRow[]) {
    for (const row of rows) this.#rowsOf(row).push(row);
  }

  add(grant: LedgerGrant, live: boolean): void {
    for (const row of rowsOf(grant)) this.#rowsOf(row).push({ ...row, live });
  }

  /** Returns the outcome of a grant that is recorded, in conflict or too old. Null: a new grant. */
  outcomeOf(grant: LedgerGrant, domain: TakenDomain): CommitOutcome | null {
    const own = grant.allocations.map((allocation) =>
      this.#rowsOf(allocation).find(({ fence }) => fence === grant.fence),
    );
    // Of the ledger's own holds alone. Their records tell whether they count.
    if (own.length === 0) return null;
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
    const known = getOrCreate(this.#byToken, key, () => []);
    return known;
  }
}

function takenBy({ pool, token, holder, amount, fence }: LedgerRow): CommitOutcome {
  return { kind: "taken", pool, token, holder, amount, fence };
}

type WrittenAllocations = {
  readonly granted: readonly LedgerGrant[];
  readonly voided: readonly LedgerRow[];
  readonly boarded: readonly HoldRow[];
};

/** Writes new grants with their sums, and voided allocations. Makes holds allocations of their admissions. */
async function writeAllocations(
  tx: Executor,
  { granted, voided, boarded }: WrittenAllocations,
  nowMs: number,
): Promise<void> {
  const rows = granted.flatMap(rowsOf);
  if (rows.length + voided.length + boarded.length === 0) return;
  await tx.query(WRITE_ALLOCATIONS, [
    json([...rows.map(newRow), ...voided.map((row) => ({ ...newRow(row), voided: true }))]),
    json(sharesOf(rows)),
    nowMs,
    boarded.map(({ row }) => row.id),
  ]);
}

/** Voided rows start unconfirmed, so that the counters free them like released ones. */
const WRITE_ALLOCATIONS = prepared(`
with charged as (
  insert into allocation_sums as s (pool, scope, name, used)
  select pool, scope, name, amount
    from json_to_recordset($2::json) as c (pool text, scope text, name text, amount bigint)
   order by pool, scope, name
  on conflict (pool, scope, name) do update set used = s.used + excluded.used
), boarded as (
  update allocations set hold = false where id = any($4::bigint[])
), written as (
  insert into allocations (${NEW_ROW}, granted_ms, released_ms, release_reason)
  select ${NEW_ROW}, $3::bigint, case when voided then $3::bigint end, case when voided then 'voided' end
    from json_to_recordset($1::json) as l (${NEW_ROW_TYPES}, voided boolean)
)
delete from token_heirs
 where (job_uid, pool) in (select job_uid, pool from allocations where id = any($4::bigint[]))`);
