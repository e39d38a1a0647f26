import { BUDGET_WINDOW_MS } from "../../../core/plan/model/queue-policy.ts";
import type { Executor } from "../db/db.ts";
import { type LockPools, lockPools } from "../ledger/give-back.ts";
import { QUEUES_DOMAIN } from "../ledger/quota-domains.ts";

/** The preemptions that gangs of a row of `queues q` have caused lately, oldest first. Null: it has no budget. */
export const PREEMPTED = `
case when q.policy ->> 'preemptionsPerHour' is not null
     then (select json_agg(json_build_object('atMs', at_ms, 'victims', victims) order by at_ms)
             from queue_preemptions where queue = q.name) end`;

/**
 * Counts victims for the queues of their nominees. Returns how the transaction must lock its pools: that statement also
 * makes planners read the queues that have a budget anew, since no row of such a queue comes or goes without that. It
 * locks the domain, for which grants wait, so it is no statement of its own.
 */
export async function countPreemptions(
  tx: Executor,
  counted: readonly { readonly queue: string; readonly victims: number }[],
  nowMs: number,
): Promise<LockPools> {
  const byQueue = Map.groupBy(
    counted.filter(({ victims }) => victims > 0),
    ({ queue }) => queue,
  );
  if (byQueue.size === 0) return lockPools;
  const queues = [...byQueue.keys()].sort();
  const victims = queues.map((queue) => (byQueue.get(queue) ?? []).reduce((sum, one) => sum + one.victims, 0));
  await tx.query(FORGET, [queues, nowMs - BUDGET_WINDOW_MS]);
  await tx.query(COUNT, [queues, victims, nowMs]);
  return async (locking, pools) => void (await locking.query(RAISE_AND_TAKE_POOLS, [queues, QUEUES_DOMAIN, pools]));
}

const FORGET = `
with old as (
  select queue, at_ms from queue_preemptions
   where queue = any($1::text[]) and at_ms <= $2::bigint
   order by queue, at_ms for update
)
delete from queue_preemptions p using old where p.queue = old.queue and p.at_ms = old.at_ms`;

const COUNT = `
insert into queue_preemptions (queue, at_ms, victims)
select queue, $3::bigint, victims from unnest($1::text[], $2::int[]) as c (queue, victims) order by queue
on conflict (queue, at_ms) do update set victims = queue_preemptions.victims + excluded.victims`;

/** The query of the pools reads the other part, which therefore runs first: the domain is locked before its pools. */
const RAISE_AND_TAKE_POOLS = `
with raised as (
  update quota_domains set limits_version = limits_version + 1
   where name = $2
     and exists (select from queues where name = any($1::text[]) and policy ->> 'preemptionsPerHour' is not null)
  returning 1
)
select 1 from allocation_sums
 where pool = any($3::text[]) and scope = 'pool' and (select count(*) from raised) >= 0
 order by pool for no key update`;
