/** Serves records of steps: gives back the tokens of admissions that have ended or that lost members. */
import type { JobSpec } from "../../../core/job/spec.ts";
import type { Admission } from "../../../core/job/status.ts";
import { askMembers } from "../../../core/plan/ask.ts";
import { flavoredAmounts } from "../../../core/plan/flavors.ts";
import { memberGroups } from "../../../core/plan/gang.ts";
import type { Executor } from "../db/db.ts";
import { type Reduction, reduceAllocations } from "./reduce-allocations.ts";
import { takePools } from "./sums.ts";

/** An admission of a job. */
export type JobAdmission = { readonly jobUid: string; readonly admission: number };

/** An admission that keeps only the tokens of its remaining members. */
export type ShrunkAdmission = { readonly jobUid: string; readonly spec: JobSpec; readonly admission: Admission };

/**
 * Releases all tokens of some admissions and reduces those of others to what their members need. The caller has locked
 * the jobs' rows, so that the admissions get no new tokens meanwhile. It locks pools, for which grants wait, so it is
 * the last part of its transaction. The counters learn of all this later, with retries. Meanwhile they count too much,
 * never too little.
 */
export async function giveBack(
  tx: Executor,
  { released, shrunk }: { readonly released: readonly JobAdmission[]; readonly shrunk: readonly ShrunkAdmission[] },
  nowMs: number,
): Promise<void> {
  const admissions = [...released, ...shrunk.map(({ jobUid, admission }) => ({ jobUid, admission: admission.number }))];
  const pools = await poolsHeld(tx, admissions);
  if (pools.length === 0) return;
  await takePools(tx, pools);
  const rows = await tx.query<HeldRow>(HELD, columnsOf(admissions));
  const all = new Set(released.map(keyOf));
  const ended = rows
    .filter((row) => all.has(keyOf(row)))
    .map(({ id }): Reduction => ({ id, kept: 0, reason: "released" }));
  const reduced = shrunk.flatMap((one) => (all.has(keyOf(nameOf(one))) ? [] : reductionsOf(one, rows)));
  await reduceAllocations(tx, [...ended, ...reduced], { nowMs });
}

/** The pools whose tokens these admissions hold. */
async function poolsHeld(tx: Executor, admissions: readonly JobAdmission[]): Promise<readonly string[]> {
  if (admissions.length === 0) return [];
  const rows = await tx.query<{ pool: string }>(POOLS_HELD, columnsOf(admissions));
  return rows.map(({ pool }) => pool);
}

const POOLS_HELD = `
select distinct a.pool
  from unnest($1::uuid[], $2::int[]) as h (job_uid, admission)
  join allocations a on a.job_uid = h.job_uid and a.admission = h.admission and a.released_ms is null`;

type HeldRow = JobAdmission & {
  readonly id: number;
  readonly pool: string;
  readonly token: string;
  readonly amount: number;
};

const HELD = `
select a.id, a.job_uid as "jobUid", a.admission, a.pool, a.token, a.amount
  from (select distinct job_uid, admission from unnest($1::uuid[], $2::int[]) as h (job_uid, admission)) h
  join allocations a on a.job_uid = h.job_uid and a.admission = h.admission and a.released_ms is null
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
  const prefix = `job/${jobUid}/admission/${admission.number}/`;
  const pools = new Set(Object.values(admission.flavors));
  const own = rows.filter((row) => keyOf(row) === keyOf(nameOf(shrunk)));
  const left = new Map(Object.entries(keptAmounts(shrunk)));
  return own.flatMap(({ id, pool, token, amount }): readonly Reduction[] => {
    if (!pools.has(pool) || !token.startsWith(prefix)) return [];
    const kept = Math.min(amount, left.get(pool) ?? 0);
    left.set(pool, (left.get(pool) ?? 0) - kept);
    return kept < amount ? [{ id, kept, reason: "released" }] : [];
  });
}

/** Returns the amounts that the members of an admission need from each of its pools. */
function keptAmounts({ spec, admission }: ShrunkAdmission): Readonly<Record<string, number>> {
  const amounts: Record<string, number> = {};
  const groups = memberGroups(askMembers(spec), admission.members);
  for (const [resource, amount] of Object.entries(flavoredAmounts(groups, Object.keys(admission.flavors)))) {
    const pool = admission.flavors[resource] ?? "";
    amounts[pool] = (amounts[pool] ?? 0) + amount;
  }
  return amounts;
}
