/** Room for jobs within the limits of their queues, namespaces and projects. */

import type { Job } from "../../../core/job/job.ts";
import { type NoRoom, podsOf, type RoomLimit } from "../../../core/job/tenant-limits.ts";
import { keepNamespaces } from "../admin/namespaces.ts";
import { COUNT_TENANTS, type TenantRow } from "../admin/tenant-limits.ts";
import { type Executor, json } from "../db/db.ts";
import { prepared } from "../db/prepared.ts";

type Measure = { readonly used: number; readonly max: number };

/** What is left in one queue, namespace or project. Limits that it does not have are left out. */
type Room = { readonly scope: NoRoom["scope"]; readonly limits: Partial<Record<RoomLimit, Measure>> };

/** By `roomKey`. Only those with a limit. */
export type JobLimits = ReadonlyMap<string, Room>;

/** What a job takes of a room. */
type Amounts = Readonly<Record<RoomLimit, number>>;

export const NO_JOB_LIMITS: JobLimits = new Map();

/** The facts about the places of new jobs that a transaction reads before it locks more than their namespaces. */
type Places = {
  /** The namespaces that exist. Nobody deletes them until the transaction ends. */
  readonly namespaces: ReadonlySet<string>;
  /** A queue, namespace or project of the jobs has a limit. */
  readonly isLimited: boolean;
};

/** Looks at the places of new jobs, and keeps their namespaces. */
export async function keepPlaces(tx: Executor, jobs: readonly Job[]): Promise<Places> {
  const { queues, namespaces: names, projects } = placesOf(jobs);
  // A limit that is set at this moment holds the namespace, so the second statement sees it.
  const [namespaces, limited] = await Promise.all([
    keepNamespaces(tx, names),
    tx.query(ANY_LIMITED, [queues, names, projects]),
  ]);
  return { namespaces, isLimited: limited.length > 0 };
}

function placesOf(jobs: readonly Job[]) {
  return {
    queues: [...new Set(jobs.map(queueOf))],
    namespaces: [...new Set(jobs.map(({ namespace }) => namespace))],
    projects: [...new Set(jobs.map(({ project }) => project))],
  };
}

/**
 * Returns the rooms that these jobs enter. They shrink only by what the transaction inserts, because it locks them
 * against other creates; jobs that wait again or are resumed do not ask for room. Locks nothing if there is no limit,
 * so other creates run side by side. If a queue has one, all queues of these jobs are locked, since rows are locked in
 * the order of their names.
 */
export async function lockJobLimits(tx: Executor, jobs: readonly Job[], { isLimited }: Places): Promise<JobLimits> {
  if (!isLimited) return NO_JOB_LIMITS;
  const { queues, namespaces, projects } = placesOf(jobs);
  const tenants = [namespaces, projects];
  await tx.query(LOCK_QUEUES, [queues]);
  await tx.query(LOCK_TENANTS, tenants);
  // A statement of its own also counts the jobs of the transactions that the lock has waited for.
  const ofQueues = await tx.query<Measure & { readonly name: string }>(COUNT_WAITING, [queues]);
  const ofTenants = await tx.query<TenantRow>(`${COUNT_TENANTS} where ${OF_JOBS}`, tenants);
  const rooms = [
    ...ofQueues.map(
      ({ name, ...maxWaitingJobs }): Room => ({ scope: { kind: "queue", name }, limits: { maxWaitingJobs } }),
    ),
    ...ofTenants.map(tenantRoom),
  ];
  return new Map(rooms.map((room) => [roomKey(room.scope), room]));
}

/** The rooms of a job that exists, but for what it takes itself. Its row is locked afterwards. */
export async function lockJobLimitsToGrow(
  tx: Executor,
  { namespace, name }: { readonly namespace: string; readonly name: string },
): Promise<JobLimits> {
  await keepNamespaces(tx, [namespace]);
  const tenants = await tx.query<{ project: string; uid: string }>(POD_LIMITED, [namespace, name]);
  const [job] = tenants;
  if (job === undefined) return NO_JOB_LIMITS;
  await tx.query(LOCK_TENANTS, [[namespace], [job.project]]);
  const rows = await tx.query<TenantRow>(`${COUNT_TENANTS} where ${OF_JOBS}`, [[namespace], [job.project]]);
  return new Map(rows.map(tenantRoom).map((room) => [roomKey(room.scope), room]));
}

/** The keys of the rooms that a job enters. */
export function limitKeysOf(job: Job, rooms: JobLimits): readonly string[] {
  return scopesOf(job)
    .map(roomKey)
    .filter((key) => rooms.has(key));
}

/** What keeps a job out of its rooms, of which earlier jobs of the transaction have `taken` amounts. */
export function findNoRoom(job: Job, rooms: JobLimits, taken: ReadonlyMap<string, Amounts> = new Map()): NoRoom | null {
  if (rooms.size === 0) return null;
  const amounts = amountsOf(job);
  const found = limitKeysOf(job, rooms).flatMap((key) => lackIn(rooms.get(key), amounts, taken.get(key)) ?? []);
  return found[0] ?? null;
}

function lackIn(room: Room | undefined, amounts: Amounts, taken: Amounts | undefined): NoRoom | null {
  for (const limit of LIMITS) {
    const measure = room?.limits[limit];
    if (room === undefined || measure === undefined) continue;
    const used = measure.used + (taken?.[limit] ?? 0);
    const asked = amounts[limit];
    if (used + asked > measure.max) return { kind: "noRoom", scope: room.scope, limit, used, asked, max: measure.max };
  }
  return null;
}

/** The pods that a change adds have no room. */
export function findNoRoomToGrow(before: Job, after: Job, rooms: JobLimits): NoRoom | null {
  const asked = podsOf(after.spec) - podsOf(before.spec);
  if (asked <= 0) return null;
  for (const key of limitKeysOf(after, rooms)) {
    const room = rooms.get(key);
    const pods = room?.limits.maxPods;
    if (room === undefined || pods === undefined || pods.used + asked <= pods.max) continue;
    return { kind: "noRoom", scope: room.scope, limit: "maxPods", ...pods, asked };
  }
  return null;
}

/** Adds what a job takes to the amounts that are taken of its rooms. */
export function takeRoom(job: Job, rooms: JobLimits, taken: Map<string, Amounts>): void {
  if (rooms.size === 0) return;
  const amounts = amountsOf(job);
  for (const key of limitKeysOf(job, rooms)) {
    const before = taken.get(key);
    const sum = (limit: RoomLimit) => (before?.[limit] ?? 0) + amounts[limit];
    const maxWaitingJobs = sum("maxWaitingJobs");
    taken.set(key, { maxWaitingJobs, maxPods: sum("maxPods"), maxTemplateBytes: sum("maxTemplateBytes") });
  }
}

/** The queues among the rooms, whose jobs may be inserted although the queue has a limit. */
export function countedQueues(rooms: JobLimits): readonly string[] {
  return [...rooms.values()].flatMap(({ scope }) => (scope.kind === "queue" ? [scope.name] : []));
}

const LIMITS = ["maxWaitingJobs", "maxPods", "maxTemplateBytes"] as const;

function amountsOf({ spec }: Job): Amounts {
  return { maxWaitingJobs: 1, maxPods: podsOf(spec), maxTemplateBytes: Buffer.byteLength(json(spec)) };
}

function scopesOf(job: Job): readonly NoRoom["scope"][] {
  const { namespace, project } = job;
  return [
    { kind: "queue", name: queueOf(job) },
    { kind: "namespace", name: namespace },
    { kind: "project", name: project },
  ];
}

function queueOf({ spec }: Job): string {
  return spec.runPolicy.schedulingPolicy.queue;
}

/** Names have no space. */
function roomKey({ kind, name }: NoRoom["scope"]): string {
  return `${kind} ${name}`;
}

function tenantRoom(row: TenantRow): Room {
  const { kind, name, maxWaitingJobs, maxPods, maxTemplateBytes } = row;
  const measure = (used: number, max: number | null) => (max === null ? undefined : { used, max });
  const limits = Object.entries({
    maxWaitingJobs: measure(row.waitingJobs, maxWaitingJobs),
    maxPods: measure(row.pods, maxPods),
    maxTemplateBytes: measure(row.templateBytes, maxTemplateBytes),
  }).filter(([, one]) => one !== undefined);
  return { scope: { kind, name }, limits: Object.fromEntries(limits) };
}

/** A queue's limit that is set after this statement is noticed when the jobs are inserted. */
const ANY_LIMITED = prepared(`
select 1 from queues where name = any($1::text[]) and max_waiting_jobs is not null
 union all
select 1 from tenant_limits
 where coalesce(max_waiting_jobs, max_pods, max_template_bytes) is not null
   and (kind = 'namespace' and name = any($2::text[]) or kind = 'project' and name = any($3::text[]))
 limit 1`);

/** The tenants of some jobs, by the arrays of their namespaces and projects. */
const OF_JOBS = "(kind = 'namespace' and name = any($1::text[]) or kind = 'project' and name = any($2::text[]))";

const LOCK_QUEUES = "select name from queues where name = any($1::text[]) order by name for no key update";

const LOCK_TENANTS = `select name from tenant_limits where ${OF_JOBS} order by kind, name for no key update`;

const POD_LIMITED = `
select j.project, j.uid from jobs j
 where j.namespace = $1 and j.name = $2
   and exists (select from tenant_limits l
                where l.max_pods is not null
                  and (l.kind = 'namespace' and l.name = j.namespace or l.kind = 'project' and l.name = j.project))`;

/** Two counts, because each phase has an index of its own. */
const COUNT_WAITING = `
select q.name, q.max_waiting_jobs as max,
       (select count(*) from jobs where queue = q.name and phase = 'WAITING')
         + (select count(*) from jobs where queue = q.name and phase = 'SUSPENDED') as used
  from queues q
 where q.name = any($1::text[]) and q.max_waiting_jobs is not null`;
