/** The limits of namespaces and projects. */
import type { TenantLimits, TenantName, TenantRecord, TenantUse } from "../../../core/job/tenant-limits.ts";
import type { Db, Executor } from "../db/db.ts";
import { QUEUES_DOMAIN, raiseLimitsVersion, takeDomain } from "../ledger/quota-domains.ts";
import { appendAudit } from "./audit.ts";

export type TenantRow = TenantName & TenantLimits & TenantUse;

/**
 * Replaces all limits of a tenant. Null: the namespace does not exist; a project need not have one. Waits for the
 * creates that have not seen the limits: those that come after count their jobs.
 */
export function setTenantLimits(
  db: Db,
  { tenant, limits }: Pick<TenantRecord, "tenant" | "limits">,
  { actor, nowMs }: { readonly actor: string; readonly nowMs: number },
): Promise<TenantRecord | null> {
  return db.tx(async (tx) => {
    const { kind, name } = tenant;
    const isThere = await tx.query(kind === "namespace" ? TAKE_NAMESPACE : TAKE_NAMESPACES, [name]);
    if (kind === "namespace" && isThere.length === 0) return null;
    const [before = null] = await tx.query<TenantLimits>(TAKE_LIMITS, [kind, name]);
    const values = [limits.maxWaitingJobs, limits.maxRunningJobs, limits.maxPods, limits.maxTemplateBytes];
    const isLimited = values.some((value) => value !== null);
    if (isLimited) await tx.query(SET_LIMITS, [kind, name, ...values]);
    else await tx.query(DROP_LIMITS, [kind, name]);
    const [use = NO_USE] = await tx.query<TenantUse>(USE_OF[kind], [name]);
    // The planner reads its settings again.
    await takeDomain(tx, QUEUES_DOMAIN);
    await raiseLimitsVersion(tx, QUEUES_DOMAIN);
    const details = { before, after: isLimited ? limits : null };
    const subject = `${kind} ${name}`;
    await appendAudit(tx, { timeMs: nowMs, actor, action: "SetTenantLimits", subject, details });
    return { tenant, limits, use };
  });
}

const NO_USE: TenantUse = { waitingJobs: 0, runningJobs: 0, pods: 0, templateBytes: 0 };

const TAKE_NAMESPACE = "select name from namespaces where name = $1 for update";
const TAKE_NAMESPACES = "select name from namespaces where project = $1 order by name for update";

const LIMITS = `
max_waiting_jobs as "maxWaitingJobs", max_running_jobs as "maxRunningJobs", max_pods as "maxPods",
max_template_bytes as "maxTemplateBytes"`;

const TAKE_LIMITS = `select ${LIMITS} from tenant_limits where kind = $1 and name = $2 for update`;

const SET_LIMITS = `
insert into tenant_limits (kind, name, max_waiting_jobs, max_running_jobs, max_pods, max_template_bytes)
values ($1, $2, $3, $4, $5, $6)
on conflict (kind, name) do update
   set max_waiting_jobs = excluded.max_waiting_jobs, max_running_jobs = excluded.max_running_jobs,
       max_pods = excluded.max_pods, max_template_bytes = excluded.max_template_bytes`;

const DROP_LIMITS = "delete from tenant_limits where kind = $1 and name = $2";

/** What the jobs of `j` take. The outline of a job has no templates, and so is short. */
const USE = `
count(*) filter (where j.phase in ('WAITING', 'SUSPENDED')) as "waitingJobs",
count(*) filter (where j.phase not in ('WAITING', 'SUSPENDED')) as "runningJobs",
coalesce(sum((select sum((r.value ->> 'replicas')::bigint)
                from json_each(coalesce(j.outline, j.spec) -> 'replicaSpecs') r)), 0)::bigint as pods,
coalesce(sum(coalesce(j.spec_bytes, octet_length(j.spec::text))), 0)::bigint as "templateBytes"`;

const USE_OF = {
  namespace: `select ${USE} from jobs j where j.completion_ms is null and j.namespace = $1`,
  project: `select ${USE} from jobs j where j.completion_ms is null and j.project = $1`,
} as const;

/** Tenants with limits, and what they use. */
export const COUNT_TENANTS = `
select kind, name, ${LIMITS}, u.*
  from tenant_limits l
 cross join lateral (
         select ${USE} from jobs j where l.kind = 'namespace' and j.completion_ms is null and j.namespace = l.name
          having l.kind = 'namespace'
          union all
         select ${USE} from jobs j where l.kind = 'project' and j.completion_ms is null and j.project = l.name
          having l.kind = 'project'
       ) u`;

/** All tenants with limits, ordered by kind and name. */
export async function listTenants(executor: Executor): Promise<readonly TenantRecord[]> {
  return (await executor.query<TenantRow>(`${COUNT_TENANTS} order by kind, name`)).map(toRecord);
}

function toRecord(row: TenantRow): TenantRecord {
  const { kind, name, maxWaitingJobs, maxRunningJobs, maxPods, maxTemplateBytes } = row;
  const { waitingJobs, runningJobs, pods, templateBytes } = row;
  const limits = { maxWaitingJobs, maxRunningJobs, maxPods, maxTemplateBytes };
  return { tenant: { kind, name }, limits, use: { waitingJobs, runningJobs, pods, templateBytes } };
}
