/** The limits of namespaces and projects. */
import type { JobUse, TenantLimits, TenantName, TenantRecord } from "../../../core/job/tenant-limits.ts";
import { type Db, type Executor, onlyRow } from "../db/db.ts";
import { QUEUES_DOMAIN, raiseLimitsVersion, takeDomain } from "../ledger/quota-domains.ts";
import { appendAudit } from "./audit.ts";

export type TenantRow = TenantName & TenantLimits & JobUse;

/**
 * Replaces all limits of a tenant. Null: the namespace does not exist; a project need not have one. Waits for the
 * creates that have not seen the limits: those that come after count their jobs and robots.
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
    const values = [
      limits.maxWaitingJobs,
      limits.maxRunningJobs,
      limits.maxPods,
      limits.maxTemplateBytes,
      limits.maxRobotTokens,
    ];
    const isLimited = values.some((value) => value !== null);
    if (isLimited) await tx.query(SET_LIMITS, [kind, name, ...values]);
    else await tx.query(DROP_LIMITS, [kind, name]);
    const [jobUse = NO_USE] = await tx.query<JobUse>(USE_OF[kind], [name]);
    await lockRobots(tx);
    const use = { ...jobUse, ...onlyRow(await tx.query<RobotUse>(ROBOTS_OF, [kind, name, nowMs])) };
    // The planner reads its settings again.
    await takeDomain(tx, QUEUES_DOMAIN);
    await raiseLimitsVersion(tx, QUEUES_DOMAIN);
    const details = { before, after: isLimited ? limits : null };
    const subject = `${kind} ${name}`;
    await appendAudit(tx, { timeMs: nowMs, actor, action: "SetTenantLimits", subject, details });
    return { tenant, limits, use };
  });
}

const NO_USE: JobUse = { waitingJobs: 0, runningJobs: 0, pods: 0, templateBytes: 0 };

const TAKE_NAMESPACE = "select name from namespaces where name = $1 for update";
const TAKE_NAMESPACES = "select name from namespaces where project = $1 order by name for update";

const LIMITS = `
max_waiting_jobs as "maxWaitingJobs", max_running_jobs as "maxRunningJobs", max_pods as "maxPods",
max_template_bytes as "maxTemplateBytes", max_robot_tokens as "maxRobotTokens"`;

const TAKE_LIMITS = `select ${LIMITS} from tenant_limits where kind = $1 and name = $2 for update`;

const SET_LIMITS = `
insert into tenant_limits
  (kind, name, max_waiting_jobs, max_running_jobs, max_pods, max_template_bytes, max_robot_tokens)
values ($1, $2, $3, $4, $5, $6, $7)
on conflict (kind, name) do update
   set max_waiting_jobs = excluded.max_waiting_jobs, max_running_jobs = excluded.max_running_jobs,
       max_pods = excluded.max_pods, max_template_bytes = excluded.max_template_bytes,
       max_robot_tokens = excluded.max_robot_tokens`;

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

type RobotUse = { readonly robotTokens: number };

/** How many robots of a tenant, by its kind and name, have tokens that count at a time. */
const robotsOf = (kind: string, name: string, nowMs: string) => `
select count(*) as "robotTokens" from robot_tokens
 where revoked_ms is null and expires_ms > ${nowMs}::bigint
   and (${kind} = 'namespace' and namespace = ${name} or ${kind} = 'project' and project = ${name})`;

const ROBOTS_OF = robotsOf("$1::text", "$2::text", "$3");

/** Robots are made one after the other, and none while a limit is set: each call counts those before it. */
export async function lockRobots(tx: Executor): Promise<void> {
  await tx.query("select 1 from installation for no key update");
}

/** A tenant whose robots are as many as its limit allows, or more. */
type FullTenant = { readonly tenant: TenantName; readonly used: number; readonly max: number };

/** A full tenant of those that a robot would count in. Null: there is none. */
export async function findFullTenant(
  tx: Executor,
  { namespace, project }: { readonly namespace: string | null; readonly project: string | null },
  nowMs: number,
): Promise<FullTenant | null> {
  const [full] = await tx.query<TenantName & RobotUse & { readonly max: number }>(FULL, [namespace, project, nowMs]);
  if (full === undefined) return null;
  const { kind, name, robotTokens: used, max } = full;
  return { tenant: { kind, name }, used, max };
}

const FULL = `
select l.kind, l.name, l.max_robot_tokens as max, u."robotTokens"
  from tenant_limits l cross join lateral (${robotsOf("l.kind", "l.name", "$3")}) u
 where (l.kind = 'namespace' and l.name = $1::text or l.kind = 'project' and l.name = $2::text)
   and u."robotTokens" >= l.max_robot_tokens
 order by l.kind
 limit 1`;

/** All tenants with limits, ordered by kind and name. */
export async function listTenants(executor: Executor, nowMs: number): Promise<readonly TenantRecord[]> {
  return (await executor.query<TenantRow & RobotUse>(LIST_TENANTS, [nowMs])).map(toRecord);
}

const LIST_TENANTS = `
select t.*, u."robotTokens"
  from (${COUNT_TENANTS}) t cross join lateral (${robotsOf("t.kind", "t.name", "$1")}) u
 order by t.kind, t.name`;

function toRecord(row: TenantRow & RobotUse): TenantRecord {
  const { kind, name, maxWaitingJobs, maxRunningJobs, maxPods, maxTemplateBytes, maxRobotTokens } = row;
  const { waitingJobs, runningJobs, pods, templateBytes, robotTokens } = row;
  const limits = { maxWaitingJobs, maxRunningJobs, maxPods, maxTemplateBytes, maxRobotTokens };
  return { tenant: { kind, name }, limits, use: { waitingJobs, runningJobs, pods, templateBytes, robotTokens } };
}
