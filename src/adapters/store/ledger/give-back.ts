/** Serves records of jobs: gives back the tokens of admissions that have ended or lost members, and unused holds. */

import { holdingMembers } from "../../../core/job/roles.ts";
import type { JobSpec } from "../../../core/job/spec.ts";
import type { Admission } from "../../../core/job/status.ts";
import { askMembers } from "../../../core/plan/model/ask.ts";
import { amountsOfMembers } from "../../../core/plan/model/flavors.ts";
import { memberGroups } from "../../../core/plan/model/gang.ts";
import { cutsOf, holdPrefix } from "../../../core/quota/heirs.ts";
import type { Executor } from "../db/db.ts";
import { IS_NOMINEE, type JobAdmission, type NamedHeir, nameHeirs } from "./name-heirs.ts";
import { type Reducible, type Reduction, reduceAllocations, reducible } from "./reduce-allocations.ts";
import { takePools } from "./sums.ts";

/** An admission that keeps only the tokens of the members that still hold some. */
export type ShrunkAdmission = { readonly jobUid: string; readonly spec: JobSpec; readonly admission: Admission };

/** Changes of nominations. */
export type HeirChanges = {
  /** Nominees. What their victims hold is turned over to them once it is released, up to what they lack. */
  readonly named: readonly NamedHeir[];
  /** Jobs that are nominees no more: their holds are released, and nothing is turned over to them any more. */
  readonly withdrawn: readonly string[];
  /** Nominees whose holds are turned over at once to those among `named` that are heirs of them. Omitted: none. */
  readonly ceding?: readonly string[];
};

/** Locks pools, and what its caller must lock right before them. There may be none. */
export type LockPools = (tx: Executor, pools: readonly string[]) => Promise<void>;

type GivenBack = {
  readonly released: readonly JobAdmission[];
  readonly shrunk: readonly ShrunkAdmission[];
  readonly withdrawn: readonly string[];
};

/**
 * Releases all tokens of some admissions and the holds of some jobs, and reduces the tokens of other admissions to what
 * their members need. What ends for heirs is turned over to them. The caller has locked the jobs' rows, so that the
 * admissions get no new tokens meanwhile. It locks pools, for which grants wait, so it is the last part of its
 * transaction. The counters learn of all this later, with retries. Meanwhile they count too much, never too little.
 */
export async function giveBack(tx: Executor, given: GivenBack, nowMs: number): Promise<void> {
  await change(tx, { ...given, named: [] }, nowMs);
}

/**
 * Names nominees as heirs, then withdraws other nominations: releases their holds, visible in the ledger like every
 * release, or turns them over to nominees that were named as their heirs. Naming a nominee again replaces what it needs
 * and adds victims. A job that is no nominee is withdrawn without effect.
 *
 * The caller has locked the nominees and the victims. It locks pools, for which grants wait, so it is the last part of
 * its transaction, and is called once. At most three of its statements follow `lock`.
 */
export async function changeHeirs(tx: Executor, changes: HeirChanges, nowMs: number, lock = lockPools): Promise<void> {
  await change(tx, { released: [], shrunk: [], ...changes }, nowMs, lock);
}

/** Locks nothing but pools. */
export const lockPools: LockPools = async (tx, pools) => {
  if (pools.length > 0) await takePools(tx, pools);
};

async function change(
  tx: Executor,
  { released, shrunk, named, withdrawn, ceding = [] }: GivenBack & HeirChanges,
  nowMs: number,
  lock = lockPools,
): Promise<void> {
  const admissions = [...released, ...shrunk.map(({ jobUid, admission }) => ({ jobUid, admission: admission.number }))];
  const held = await poolsHeld(tx, admissions, withdrawn);
  const pools = [...new Set([...held, ...named.flatMap(({ needs }) => needs.map(({ pool }) => pool))])];
  await lock(tx, pools);
  if (pools.length === 0) return;
  if (named.length > 0) await nameHeirs(tx, named);
  if (held.length + withdrawn.length + ceding.length === 0) return;
  const rows = await tx.query<HeldRow>(FORGET_AND_READ_HELD, [...columnsOf(admissions), withdrawn, ceding]);
  const all = new Set(released.map(keyOf));
  const ended = rows
    .filter((row) => row.isWithdrawn || all.has(keyOf(row)))
    .map((row): Reduction => ({ row, kept: 0, reason: "released" }));
  const reduced = shrunk.flatMap((one) => (all.has(keyOf(nameOf(one))) ? [] : reductionsOf(one, rows)));
  const ceded = cededOf(
    rows.filter(({ jobUid }) => ceding.includes(jobUid)),
    named,
  );
  await reduceAllocations(tx, [...ended, ...reduced, ...ceded], { nowMs });
}

/** What nominees give up for others that are heirs of their holds: as much as these lack. */
function cededOf(rows: readonly HeldRow[], named: readonly NamedHeir[]): readonly Reduction[] {
  const uids = new Set(named.map(({ jobUid }) => jobUid));
  const lines = rows.map((row) => {
    return { row, amount: row.amount, kept: 0, heirs: row.heirs.filter(({ jobUid }) => uids.has(jobUid)) };
  });
  // The last cut of a hold says what is left of it.
  const left = new Map(cutsOf(lines).map(({ line, kept }) => [line.row, kept]));
  return [...left].map(([row, kept]) => ({ row, kept, reason: "released", isCeded: true }));
}

/** The pools whose tokens these admissions hold, or that these nominees lack. */
async function poolsHeld(
  tx: Executor,
  admissions: readonly JobAdmission[],
  withdrawn: readonly string[],
): Promise<readonly string[]> {
  if (admissions.length + withdrawn.length === 0) return [];
  const rows = await tx.query<{ pool: string }>(POOLS_HELD, [...columnsOf(admissions), withdrawn]);
  return rows.map(({ pool }) => pool);
}

/** A nominee has holds only in pools that it lacks. */
const POOLS_HELD = `
select a.pool
  from unnest($1::uuid[], $2::int[]) as h (job_uid, admission)
  join allocations a on a.job_uid = h.job_uid and a.admission = h.admission and a.released_ms is null
 union
select pool from token_heirs where job_uid = any($3::uuid[])`;

type HeldRow = JobAdmission & Reducible & { readonly isWithdrawn: boolean };

/**
 * Forgets jobs that are nominees no more, and reads what is held. It does not see its own deletions, so it leaves out
 * these jobs as heirs.
 */
const FORGET_AND_READ_HELD = `
with forgotten as (
  delete from token_heirs where job_uid = any($3::uuid[])
), held as (
  select a.id, false as withdrawn
    from (select distinct job_uid, admission from unnest($1::uuid[], $2::int[]) as h (job_uid, admission)) h
    join allocations a on a.job_uid = h.job_uid and a.admission = h.admission and a.released_ms is null
   where not a.hold
  union all
  select id, job_uid = any($3::uuid[]) from allocations
   where job_uid = any($3::uuid[] || $4::uuid[]) and hold and released_ms is null
)
select ${reducible(`h.job_uid <> all($3::uuid[]) and ${IS_NOMINEE}`)},
       a.job_uid as "jobUid", a.admission, h.withdrawn as "isWithdrawn"
  from held h join allocations a on a.id = h.id
 order by a.id`;

function columnsOf(admissions: readonly JobAdmission[]) {
  return [admissions.map(({ jobUid }) => jobUid), admissions.map(({ admission }) => admission)] as const;
}

function nameOf({ jobUid, admission }: ShrunkAdmission): JobAdmission {
  return { jobUid, admission: admission.number };
}

function keyOf({ jobUid, admission }: JobAdmission): string {
  return `${jobUid}/${admission}`;
}

/**
 * The reductions of an admission's allocations, the newest first to go: those that keep nothing are released, and at
 * most one of each pool is reduced under the same fence.
 */
function reductionsOf(shrunk: ShrunkAdmission, rows: readonly HeldRow[]): readonly Reduction[] {
  const { jobUid, admission } = shrunk;
  // Excludes tokens that plugins requested while the job runs. They have other names and do not belong to members.
  const prefixes = [`job/${jobUid}/admission/${admission.number}/`, holdPrefix(jobUid)];
  const pools = new Set(Object.values(admission.flavors));
  const own = rows.filter((row) => keyOf(row) === keyOf(nameOf(shrunk)));
  const left = new Map(keptAmounts(shrunk));
  return own.flatMap((row): readonly Reduction[] => {
    const { pool, token, amount } = row;
    if (!pools.has(pool) || !prefixes.some((prefix) => token.startsWith(prefix))) return [];
    const kept = Math.min(amount, left.get(pool) ?? 0);
    left.set(pool, (left.get(pool) ?? 0) - kept);
    return kept < amount ? [{ row, kept, reason: "released" }] : [];
  });
}

/** Returns the amounts of each of its pools that the members of an admission hold which gave back nothing. */
function keptAmounts({ spec, admission }: ShrunkAdmission): ReadonlyMap<string, number> {
  return amountsOfMembers(memberGroups(askMembers(spec), holdingMembers(admission)), admission.flavors);
}
