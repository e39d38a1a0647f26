import { sameHolder, tokenKey } from "../../../core/quota/allocations.ts";
import type { LedgerRow } from "../../../core/quota/counters.ts";
import type { ReleaseOutcome, ReleaseRequest } from "../../../core/quota/ledger.ts";
import { type Db, type Executor, leaveToCommit } from "../db/db.ts";
import { prepared } from "../db/prepared.ts";
import { LEDGER_COLUMNS, type LedgerColumns, ledgerRow } from "./ledger-row.ts";
import { REDUCIBLE_TOO, type Reducible, type Reduction, reduceAllocations } from "./reduce-allocations.ts";
import { takePools } from "./sums.ts";
import { type LeaseCheck, takeLeases } from "./take-leases.ts";

/**
 * Releases tokens in one transaction, each independently. Repeated requests release a token only once. Returns the
 * outcomes in the order of the requests.
 */
export function releaseTokens(
  db: Db,
  requests: readonly ReleaseRequest[],
  nowMs: number,
): Promise<readonly ReleaseOutcome[]> {
  if (requests.length === 0) return Promise.resolve([]);
  return db.tx(async (tx) => {
    const { outcomes, written } = await decideReleases(tx, { requests, counts: await takeLeases(tx, requests), nowMs });
    leaveToCommit(written);
    return outcomes;
  });
}

type Releases = {
  readonly requests: readonly ReleaseRequest[];
  readonly counts: LeaseCheck;
  readonly nowMs: number;
};

/** Releases tokens. `counts`: the check of `takeLeases`, whose locks come before those of domains and pools. */
export async function releaseTokensIn(tx: Executor, of: Releases): Promise<readonly ReleaseOutcome[]> {
  const { outcomes, written } = await decideReleases(tx, of);
  await written;
  return outcomes;
}

/** Returns before the releases are written. */
async function decideReleases(
  tx: Executor,
  { requests, counts, nowMs }: Releases,
): Promise<{ readonly outcomes: readonly ReleaseOutcome[]; readonly written: Promise<void> }> {
  const [, rows] = await Promise.all([
    takePools(
      tx,
      requests.map(({ pool }) => pool),
    ),
    tx.query<HeldRow>(HELD, [requests.map(({ pool }) => pool), requests.map(({ token }) => token)]),
  ]);
  const held = new Map(rows.map((row) => [tokenKey(row), row]));
  const ended: Reduction[] = [];
  const outcomes = requests.map((request): ReleaseOutcome => {
    const row = held.get(tokenKey(request));
    if (row === undefined || !counts(request)) return { kind: "notHeld" };
    const allocation = ledgerRow(row);
    const refused = refusal(request, allocation, row.live_admission);
    if (refused !== null) return refused;
    held.delete(tokenKey(request));
    ended.push({ row, kept: 0, reason: request.reason });
    return {
      kind: "released",
      ref: { pool: allocation.pool, token: allocation.token, fence: allocation.fence },
      allocation,
    };
  });
  return { outcomes, written: reduceAllocations(tx, ended, { nowMs }) };
}

type HeldRow = LedgerColumns & Reducible & { readonly live_admission: boolean };

/**
 * Also finds tokens of the same names in the other pools. Reads `live_admission` without a lock on admissions: an
 * admission that has ended never becomes live again, and a new one locks the sums of its pools until it is recorded.
 */
const HELD = prepared(`
select ${LEDGER_COLUMNS}, ${REDUCIBLE_TOO},
       exists (
         select from admissions m join jobs j on j.uid = m.job_uid
          where m.job_uid = a.job_uid and m.number = a.admission and m.state = 'live' and j.completion_ms is null
       ) as live_admission
  from allocations a where a.pool = any($1::text[]) and a.token = any($2::text[]) and a.released_ms is null`);

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
