import type { AllocationLine, Holder } from "../../core/quota/counters.ts";
import { type Executor, json } from "./db.ts";

/** One pool's and one queue's share of some lines, in a fixed order so that two transactions never wait for each other. */
type Charge = {
  readonly pool: string;
  readonly scope: "pool" | "queue";
  readonly name: string;
  readonly amount: number;
};

/**
 * Writes a grant's lines and adds them to the sums; false where a recorded limit does not allow them, and then the caller must roll back.
 * A queue without a quota for a pool may use nothing of it.
 */
export async function grantLines(
  tx: Executor,
  grant: {
    readonly lines: readonly AllocationLine[];
    readonly fence: bigint;
    readonly holder: Holder;
    readonly nowMs: number;
  },
): Promise<boolean> {
  const charges = chargesOf(grant.lines);
  const queues = charges.filter((charge) => charge.scope === "queue");
  const pools = charges.filter((charge) => charge.scope === "pool");
  const charged = await tx.query(CHARGE_QUEUES, [json(queues)]);
  if (charged.length !== queues.length) return false;
  await tx.query(CHARGE_POOLS, [json(pools)]);
  await tx.query(INSERT_LINES, [
    json(grant.lines),
    grant.fence.toString(),
    grant.holder.jobUid,
    grant.holder.admission,
    grant.nowMs,
  ]);
  return true;
}

/** The limit is compared with the sum as it is once its row is ours, not as it was when the statement began. */
const CHARGE_QUEUES = `
with wanted as (
  select c.pool, c.name, c.amount, q.nominal
    from json_to_recordset($1::json) as c (pool text, name text, amount bigint)
    join queue_quotas q on q.queue = c.name and q.flavor = c.pool
)
insert into allocation_sums as s (pool, scope, name, used)
select pool, 'queue', name, amount from wanted where amount <= nominal order by pool, name
on conflict (pool, scope, name) do update
   set used = s.used + excluded.used
 where excluded.used <= (select nominal from wanted w where w.pool = s.pool and w.name = s.name) - s.used
returning 1`;

const CHARGE_POOLS = `
insert into allocation_sums as s (pool, scope, name, used)
select pool, 'pool', '', amount from json_to_recordset($1::json) as c (pool text, amount bigint) order by pool
on conflict (pool, scope, name) do update set used = s.used + excluded.used`;

const INSERT_LINES = `
insert into allocations (pool, token, queue, project, namespace, amount, fence, job_uid, admission, granted_ms)
select pool, token, queue, project, namespace, amount, $2::bigint, $3, $4, $5
  from json_to_recordset($1::json)
    as l (pool text, token text, queue text, project text, namespace text, amount bigint)`;

/** Releases the live lines of these admissions and takes them off the sums, exactly once however often it is asked. */
export async function releaseTokens(
  tx: Executor,
  jobUid: string,
  admissions: readonly number[],
  nowMs: number,
): Promise<void> {
  if (admissions.length === 0) return;
  const released = await tx.query<{ pool: string; queue: string; amount: number }>(RELEASE_LINES, [
    jobUid,
    admissions,
    nowMs,
  ]);
  if (released.length > 0) await tx.query(DISCHARGE, [json(chargesOf(released))]);
}

const RELEASE_LINES = `
update allocations set released_ms = $3
 where job_uid = $1 and admission = any($2::int[]) and released_ms is null
returning pool, queue, amount`;

/** Takes the rows in the order in which grants take them. */
const DISCHARGE = `
with freed as (
  select s.pool, s.scope, s.name, c.amount
    from allocation_sums s
    join json_to_recordset($1::json) as c (pool text, scope text, name text, amount bigint)
      on c.pool = s.pool and c.scope = s.scope and c.name = s.name
   order by s.scope desc, s.pool, s.name
     for update of s
)
update allocation_sums s set used = s.used - f.amount
  from freed f
 where s.pool = f.pool and s.scope = f.scope and s.name = f.name`;

function chargesOf(lines: readonly Pick<AllocationLine, "pool" | "queue" | "amount">[]): readonly Charge[] {
  const sums = new Map<string, Charge>();
  const add = (charge: Charge) => {
    const key = JSON.stringify([charge.scope, charge.pool, charge.name]);
    sums.set(key, { ...charge, amount: charge.amount + (sums.get(key)?.amount ?? 0) });
  };
  for (const line of lines) {
    add({ pool: line.pool, scope: "pool", name: "", amount: line.amount });
    add({ pool: line.pool, scope: "queue", name: line.queue, amount: line.amount });
  }
  return [...sums.values()];
}
