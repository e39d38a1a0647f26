import { sameHolder, tokenKey } from "../../../core/quota/allocations.ts";
import type { LedgerRow } from "../../../core/quota/counters.ts";
import type { ReleaseOutcome, ReleaseRequest } from "../../../core/quota/ledger.ts";
import { type Db, type Executor, json } from "../db/db.ts";
import { LEDGER_COLUMNS, type LedgerColumns, ledgerRow } from "./ledger-row.ts";
import { discharge, takePools } from "./sums.ts";
import { takeLeases } from "./take-leases.ts";

/**
 * Releases tokens in one transaction, each independently. Repeated requests release a token only once. Returns the
 * outcomes in the order of the requests.
 */
export function releaseTokens(
  db: Db,
  requests: readonly ReleaseRequest[],
  nowMs: number,
): Promise<readonly ReleaseOutcome[]> {
  return requests.length === 0 ? Promise.resolve([]) : db.tx((tx) => releaseTokensIn(tx, requests, nowMs));
}

export async function releaseTokensIn(
  tx: Executor,
  requests: readonly ReleaseRequest[],
  nowMs: number,
): Promise<readonly ReleaseOutcome[]> {
  const counts = await takeLeases(tx, requests);
  await takePools(
    tx,
    requests.map(({ pool }) => pool),
  );
  const rows = await tx.query<HeldRow>(HELD, [json(requests.map(({ pool, token }) => ({ pool, token })))]);
  const held = new Map(rows.map((row) => [tokenKey(row), row]));
  const ended: EndedAllocation[] = [];
  const outcomes = requests.map((request): ReleaseOutcome => {
    const row = held.get(tokenKey(request));
    if (row === undefined || !counts(request)) return { kind: "notHeld" };
    const allocation = ledgerRow(row);
    const refused = refusal(request, allocation, row.live_admission);
    if (refused !== null) return refused;
    held.delete(tokenKey(request));
    ended.push({ id: row.id, reason: request.reason, allocation });
    return {
      kind: "released",
      ref: { pool: allocation.pool, token: allocation.token, fence: allocation.fence },
      allocation,
    };
  });
  await endAllocations(tx, ended, nowMs);
  return outcomes;
}

type EndedAllocation = {
  readonly id: number;
  readonly reason: ReleaseRequest["reason"];
  readonly allocation: LedgerRow;
};

/** Ends live rows. The caller has locked their pools. */
export async function endAllocations(tx: Executor, ended: readonly EndedAllocation[], nowMs: number): Promise<void> {
  if (ended.length === 0) return;
  await tx.query(END_ALLOCATIONS, [json(ended.map(({ id, reason }) => ({ id, reason }))), nowMs]);
  await discharge(
    tx,
    ended.map(({ allocation }) => allocation),
  );
}

const END_ALLOCATIONS = `
update allocations a set released_ms = $2, release_reason = e.reason
  from json_to_recordset($1::json) as e (id bigint, reason text)
 where a.id = e.id and a.released_ms is null`;

type HeldRow = LedgerColumns & { readonly id: number; readonly live_admission: boolean };

/**
 * Reads `live_admission` without a lock on admissions. An admission that has ended never becomes live again, and a new
 * admission locks the sums of its pools until it is recorded.
 */
const HELD = `
select ${LEDGER_COLUMNS}, a.id,
       exists (
         select from admissions m join jobs j on j.uid = m.job_uid
          where m.job_uid = a.job_uid and m.number = a.admission and m.state = 'live' and j.completion_ms is null
       ) as live_admission
  from (select distinct pool, token from json_to_recordset($1::json) as t (pool text, token text)) wanted
  join allocations a on a.pool = wanted.pool and a.token = wanted.token and a.released_ms is null`;

/** Returns why a live row cannot be released. Null: it can. */
function refusal(request: ReleaseRequest, row: LedgerRow, liveAdmission: boolean): ReleaseOutcome | null {
  const { holder, project, namespace, fence, reason } = request;
  if (fence !== null && row.fence !== fence) return { kind: "notHeld" };
  if (holder !== null && !sameHolder(holder, row.holder)) return { kind: "otherHolder", holder: row.holder };
  if ((project !== null && project !== row.project) || (namespace !== null && namespace !== row.namespace)) {
    return { kind: "otherScope", project: row.project, namespace: row.namespace };
  }
  if (reason !== "forced" || !liveAdmission || row.holder.kind !== "admission") return null;
  return { kind: "liveAdmission", jobUid: row.holder.jobUid, admission: row.holder.admission };
}

/** An admission of a job. */
export type JobAdmission = { readonly jobUid: string; readonly admission: number };

/** The pools whose tokens these admissions hold. */
export async function poolsHeld(tx: Executor, admissions: readonly JobAdmission[]): Promise<readonly string[]> {
  if (admissions.length === 0) return [];
  const rows = await tx.query<{ pool: string }>(POOLS_HELD, columnsOf(admissions));
  return rows.map(({ pool }) => pool);
}

const POOLS_HELD = `
select distinct a.pool
  from unnest($1::uuid[], $2::int[]) as h (job_uid, admission)
  join allocations a on a.job_uid = h.job_uid and a.admission = h.admission and a.released_ms is null`;

/**
 * Releases all tokens of these admissions. The caller has locked the jobs' rows, so that the admissions get no new
 * tokens meanwhile, and then the pools that they hold.
 */
export async function releaseAdmissions(
  tx: Executor,
  admissions: readonly JobAdmission[],
  nowMs: number,
): Promise<void> {
  if (admissions.length === 0) return;
  const released = await tx.query<LedgerColumns>(RELEASE_ADMISSIONS, [...columnsOf(admissions), nowMs]);
  await discharge(tx, released.map(ledgerRow));
}

const RELEASE_ADMISSIONS = `
update allocations a set released_ms = $3, release_reason = 'released'
  from unnest($1::uuid[], $2::int[]) as h (job_uid, admission)
 where a.job_uid = h.job_uid and a.admission = h.admission and a.released_ms is null
returning ${LEDGER_COLUMNS}`;

function columnsOf(admissions: readonly JobAdmission[]) {
  return [admissions.map(({ jobUid }) => jobUid), admissions.map(({ admission }) => admission)] as const;
}
