import type { LimitedTenant } from "../../../core/plan/model/limited-tenant.ts";
import type { GangHolds } from "../../../core/plan/model/plan-gang.ts";
import type {
  ClusterCapacity,
  ClusterFacts,
  HeldByCaller,
  PastPreemption,
  PlanQueue,
} from "../../../core/plan/model/snapshot.ts";
import type { PoolLimit } from "../../../core/quota/counters.ts";
import type { Freeze } from "../../../core/quota/freeze.ts";
import type { RecordedSum } from "../../../core/quota/grant-book.ts";
import { IS_RETIRED } from "../admin/clusters.ts";
import { QUEUE_SETTINGS, type SettingsRow, withPolicy } from "../admin/queue-settings.ts";
import type { Executor } from "../db/db.ts";
import { AGEING } from "../jobs/effective-priority.ts";
import { type SumKey, scopeOfSum } from "../ledger/sums.ts";
import { PREEMPTED } from "./queue-preemptions.ts";

export async function planQueues(tx: Executor): Promise<readonly PlanQueue[]> {
  const rows = await tx.query<PlannedQueueRow>(PLAN_QUEUES);
  return rows.map(({ classValues, preempted, ...row }) => {
    // Workers decide by it alone.
    const { onClusterLost: _left, ...queue } = withFreeze(withPolicy(row));
    return {
      ...queue,
      ...(classValues === null ? {} : { classValues }),
      ...(preempted === null ? {} : { preempted }),
    };
  });
}

/** The values of priority classes are read only for queues in which priorities grow. */
const PLAN_QUEUES = `
select ${QUEUE_SETTINGS}, q.frozen as "freeze",
       case when ${AGEING} is not null
            then (select json_agg(distinct value order by value) from priority_classes) end as "classValues",
       ${PREEMPTED} as preempted
  from queues q order by q.name`;

type Freezable = { readonly freeze: Freeze | null };

type PlannedQueueRow = SettingsRow &
  Freezable & {
    readonly classValues: readonly number[] | null;
    readonly preempted: readonly PastPreemption[] | null;
  };

function withFreeze<Row extends Freezable>({ freeze, ...row }: Row): Omit<Row, "freeze"> & { freeze?: Freeze } {
  return freeze === null ? row : { ...row, freeze };
}

/** The pools that a gang may be charged in. */
export async function planPools(tx: Executor): Promise<readonly PoolLimit[]> {
  return (await tx.query<Omit<PoolLimit, "freeze"> & Freezable>(PLAN_POOLS)).map(withFreeze);
}

const PLAN_POOLS = `
select name as pool, quota, project_default as "projectDefault", namespace_default as "namespaceDefault",
       frozen as "freeze"
  from pools where name in (select flavor from queue_quotas) order by name`;

/** The namespaces and projects that limit their admitted jobs. */
export function planTenants(tx: Executor): Promise<readonly LimitedTenant[]> {
  return tx.query<LimitedTenant>(PLAN_TENANTS);
}

const PLAN_TENANTS = `
select kind, name, max_running_jobs as "maxRunningJobs"
  from tenant_limits where max_running_jobs is not null order by kind, name`;

/**
 * The sums of the planner's pools, those of projects and namespaces only for pools that limit them. `transaction`:
 * only those that this transaction or a later one has changed, and some that did not change.
 */
export async function planSums(tx: Executor, transaction: string | null): Promise<readonly RecordedSum[]> {
  const rows = await tx.query<SumKey & { used: number }>(PLAN_SUMS, [transaction]);
  return rows.map(({ used, ...key }) => ({ scope: scopeOfSum(key), used }));
}

/** PostgreSQL keeps with each row the transaction that wrote it. The age of a transaction counts those after it. */
export const PLAN_SUMS = `
select s.pool, s.scope, s.name, s.used
  from allocation_sums s join pools p on p.name = s.pool
 where p.name in (select flavor from queue_quotas)
   and (s.scope in ('pool', 'queue') or s.scope = 'project' and p.project_default is not null
     or s.scope = 'namespace' and p.namespace_default is not null)
   and ($1::text is null and s.used > 0 or age(s.xmin) <= age($1::xid))`;

/** The holds of all nominees. There are a few at most, each until its nominee is admitted. */
export async function planHolds(tx: Executor): Promise<readonly HeldForGang[]> {
  return tx.query<HeldForGang>(PLAN_HOLDS);
}

export type HeldForGang = { readonly uid: string; readonly holds: GangHolds };

export const PLAN_HOLDS = `
select uid, json_build_object('admission', admission, 'amounts', json_object_agg(pool, amount)) as holds
  from (
    select job_uid as uid, max(admission) over (partition by job_uid) as last, admission, pool, sum(amount) as amount
      from allocations where hold and released_ms is null
     group by job_uid, admission, pool
  ) h
 where admission = last
 group by uid, admission order by uid`;

/** How many tokens of each pool a round reads, the oldest first. It is bounded because callers may hold very many. */
const CALLER_TOKENS = 200;

/** Some of the external callers that hold tokens of the planner's pools. */
export function planCallers(tx: Executor): Promise<readonly HeldByCaller[]> {
  return tx.query<HeldByCaller>(PLAN_CALLERS, [CALLER_TOKENS]);
}

const PLAN_CALLERS = `
select a.caller, a.pool, a.project, a.namespace, a.queue, sum(a.amount)::bigint as amount
  from (select distinct flavor as name from queue_quotas) p
 cross join lateral (
         select caller, pool, project, namespace, queue, amount from allocations
          where pool = p.name and released_ms is null order by granted_ms, id limit $1
       ) a
 where a.caller is not null
 group by a.caller, a.pool, a.project, a.namespace, a.queue`;

/** A cluster's record, and how far its capacity is recorded. */
export type PlanClusterRow = ClusterFacts & {
  readonly epoch: number;
  readonly sequence: number;
  /** False: no observer has recorded its capacity. */
  readonly observed: boolean;
  /** When a program of the version before recorded the capacity, which is in `capacity` then. Null: none did. */
  readonly legacyMs: number | null;
};

export function planClusters(tx: Executor): Promise<readonly PlanClusterRow[]> {
  return tx.query<PlanClusterRow>(PLAN_CLUSTERS);
}

export const PLAN_CLUSTERS = `
select name, labels, flavors, topology, cordoned, simulated, ${IS_RETIRED} as retired,
       reachable and returning_ms is null as reachable, reachable and returning_ms is not null as returning,
       unusable is not null as unusable,
       exists (select from clusters where unadopted_ms is not null and forgotten_ms is null) as restored,
       admission_counter as "admissionCounter", capacity_epoch as epoch, capacity_sequence as sequence,
       coalesce(observed_ms, capacity_ms) is not null as observed, observed_ms as "legacyMs"
  from clusters c where forgotten_ms is null order by name`;

/** The capacity that a program of the version before has recorded in one piece. */
export async function legacyCapacity(tx: Executor, cluster: string): Promise<ClusterCapacity | null> {
  const [row] = await tx.query<{ capacity: ClusterCapacity | null }>(
    "select capacity from clusters where name = $1 and forgotten_ms is null",
    [cluster],
  );
  return row?.capacity ?? null;
}
