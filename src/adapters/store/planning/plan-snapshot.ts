import { liveAdmission } from "../../../core/job/job.ts";
import type { HeldByCaller, PlanCluster, PlanQueue, PlanSnapshot } from "../../../core/plan/snapshot.ts";
import type { PoolLimit } from "../../../core/quota/counters.ts";
import { CAPACITY_ENTRIES, type CapacityColumns, withCapacity } from "../admin/cluster-capacity.ts";
import { IS_RETIRED } from "../admin/clusters.ts";
import { FLAVOR_QUOTA } from "../admin/queues.ts";
import { type Db, type Executor, onlyRow, readSnapshot } from "../db/db.ts";
import { type SumKey, scopeOfSum } from "../ledger/sums.ts";
import { type GangReading, RUNS, readGangs, WAITS } from "./read-gangs.ts";

/** The first waiting jobs of one queue, at most `max`. */
type FirstOfQueue = { readonly queue: string; readonly max: number };

/** Reads everything that a plan depends on, as of one commit. `only`: reads no other waiting jobs than these. */
export function planSnapshot(db: Db, reading: GangReading, only: FirstOfQueue | null = null): Promise<PlanSnapshot> {
  return readSnapshot(db, async (tx) => {
    const domains = await tx.query<{ epoch: number }>("select epoch from quota_domains where name = 'default'");
    const select =
      only === null
        ? { condition: `${WAITS} or ${RUNS}`, params: [] }
        : { condition: `${FIRST_OF_QUEUE} or ${RUNS}`, params: [only.queue, only.max] };
    const gangs = await readGangs(tx, select, reading);
    const waiting = gangs.filter((gang) => liveAdmission(gang) === null);
    return {
      quotaEpoch: onlyRow(domains).epoch,
      waiting,
      admitted: gangs.filter((gang) => liveAdmission(gang) !== null),
      queues: await tx.query<PlanQueue>(PLAN_QUEUES),
      pools: await tx.query<PoolLimit>(PLAN_POOLS),
      sums: (await tx.query<SumKey & { used: number }>(PLAN_SUMS)).map(({ used, ...key }) => {
        return { scope: scopeOfSum(key), used };
      }),
      callers: waiting.length === 0 && only === null ? [] : await tx.query<HeldByCaller>(PLAN_CALLERS, [CALLER_TOKENS]),
      clusters: await planClusters(tx),
    };
  });
}

const FIRST_OF_QUEUE = `
j.uid in (
  select uid from jobs
   where queue = $1 and phase = 'WAITING' and cancel is null and delete_ms is null
   order by priority desc, create_ms, uid limit $2
)`;

const PLAN_QUEUES = `
select q.name, q.parent, q.strategy,
       coalesce((select json_agg(${FLAVOR_QUOTA} order by position) from queue_quotas where queue = q.name), '[]')
         as quotas
  from queues q order by q.name`;

/** The pools that a gang may be charged in. */
const PLAN_POOLS = `
select name as pool, quota, project_default as "projectDefault", namespace_default as "namespaceDefault"
  from pools where name in (select flavor from queue_quotas) order by name`;

/** Sums of projects and namespaces only for pools that limit them. */
const PLAN_SUMS = `
select s.pool, s.scope, s.name, s.used
  from allocation_sums s join pools p on p.name = s.pool
 where s.used > 0 and p.name in (select flavor from queue_quotas)
   and (s.scope in ('pool', 'queue') or s.scope = 'project' and p.project_default is not null
     or s.scope = 'namespace' and p.namespace_default is not null)`;

/** How many tokens of each pool a round reads, the oldest first. It is bounded because callers may hold very many. */
const CALLER_TOKENS = 200;

const PLAN_CALLERS = `
select a.caller, a.pool, a.project, a.namespace, a.queue, sum(a.amount)::bigint as amount
  from (select distinct flavor as name from queue_quotas) p
 cross join lateral (
         select caller, pool, project, namespace, queue, amount from allocations
          where pool = p.name and released_ms is null order by granted_ms, id limit $1
       ) a
 where a.caller is not null
 group by a.caller, a.pool, a.project, a.namespace, a.queue`;

async function planClusters(tx: Executor): Promise<readonly PlanCluster[]> {
  const rows = await tx.query<PlanCluster & CapacityColumns>(
    `select name, labels, flavors, cordoned, simulated, ${IS_RETIRED} as retired, reachable,
            admission_counter as "admissionCounter", capacity, ${CAPACITY_ENTRIES} as entries
       from clusters c where forgotten_ms is null order by name`,
  );
  return rows.map(withCapacity);
}
