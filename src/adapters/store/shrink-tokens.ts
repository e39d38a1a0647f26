import type { JobSpec } from "../../core/job/spec.ts";
import type { Admission } from "../../core/job/status.ts";
import { flavoredAmounts } from "../../core/plan/flavors.ts";
import { memberGroups } from "../../core/plan/gang.ts";
import { type Executor, json, onlyRow } from "./db.ts";
import { QUEUES_DOMAIN } from "./quota-domains.ts";
import { discharge, takePools } from "./sums.ts";

/** The lines of one admission in one pool, all of one queue, project and namespace. */
type Held = {
  readonly pool: string;
  readonly queue: string | null;
  readonly project: string;
  readonly namespace: string;
  readonly amount: number;
};

/**
 * Leaves an admission only the tokens of the members that it still has. A fence names a whole grant for ever and is freed as one, and a step of
 * growth is rarely just what was given up: so all of its lines are released and what it keeps becomes one line a pool under a fence of its own.
 * The domain's epoch is raised with it: counters, which know neither, are loaded from the ledger before they grant again. That closes the domain
 * for the moment of a load, which is the price of a transaction that has no counters to tell: lines under a fence of the present epoch would be
 * unknown to them and could be given away once more, and a part of a line cannot be freed by a fence that stays.
 */
export async function shrinkTokens(
  tx: Executor,
  of: { readonly jobUid: string; readonly spec: JobSpec; readonly admission: Admission; readonly nowMs: number },
): Promise<void> {
  const { jobUid, admission, nowMs } = of;
  if ((await shares(tx, of)).given.length === 0) return;
  const { epoch } = onlyRow(await tx.query<{ epoch: number }>(RAISE_EPOCH, [QUEUES_DOMAIN]));
  await takePools(tx, Object.values(admission.flavors));
  const { kept, given } = await shares(tx, of);
  await tx.query(RELEASE, [jobUid, admission.number, nowMs]);
  const fence = (BigInt(epoch) << 32n).toString();
  const token = `job/${jobUid}/admission/${admission.number}/kept/${epoch}`;
  const lines = kept.filter(({ amount }) => amount > 0).map((line) => ({ ...line, token }));
  await tx.query(KEEP, [json(lines), fence, jobUid, admission.number, nowMs]);
  await discharge(tx, given);
}

/** What an admission holds, parted into what it keeps and what it gives back. */
async function shares(
  tx: Executor,
  { jobUid, spec, admission }: { readonly jobUid: string; readonly spec: JobSpec; readonly admission: Admission },
): Promise<{ readonly kept: readonly Held[]; readonly given: readonly Held[] }> {
  const held = await tx.query<Held>(HELD, [jobUid, admission.number]);
  const keep = keptAmounts(spec, admission);
  const kept = held.map((line) => ({ ...line, amount: Math.min(line.amount, keep[line.pool] ?? 0) }));
  const freed = held.map((line, at) => ({ ...line, amount: line.amount - (kept[at]?.amount ?? 0) }));
  return { kept, given: freed.filter(({ amount }) => amount > 0) };
}

/** What the members of an admission need of each of its pools. */
function keptAmounts(spec: JobSpec, { members, flavors }: Admission): Readonly<Record<string, number>> {
  const amounts: Record<string, number> = {};
  for (const [resource, amount] of Object.entries(flavoredAmounts(memberGroups(spec, members), Object.keys(flavors)))) {
    const pool = flavors[resource] ?? "";
    amounts[pool] = (amounts[pool] ?? 0) + amount;
  }
  return amounts;
}

const HELD = `
select pool, queue, project, namespace, sum(amount)::bigint as amount
  from allocations where job_uid = $1 and admission = $2 and released_ms is null
 group by pool, queue, project, namespace order by pool`;

const RAISE_EPOCH = "update quota_domains set epoch = epoch + 1 where name = $1 returning epoch";

const RELEASE = `
update allocations set released_ms = $3, release_reason = 'released'
 where job_uid = $1 and admission = $2 and released_ms is null`;

const KEEP = `
insert into allocations (pool, token, queue, project, namespace, amount, fence, job_uid, admission, granted_ms)
select pool, token, queue, project, namespace, amount, $2::bigint, $3, $4, $5
  from json_to_recordset($1::json)
    as l (pool text, token text, queue text, project text, namespace text, amount bigint)`;
