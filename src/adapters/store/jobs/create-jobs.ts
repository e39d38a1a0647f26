import { createdEvent } from "../../../core/job/request/create-and-end.ts";
import type { CreatedJob } from "../../../core/job/request/requests.ts";
import type { Registry } from "../../../core/kinds/registry.ts";
import type { AskedJob } from "../../../core/plan/model/ask.ts";
import { compareText } from "../../../runtime/compare-text.ts";
import { maxOf } from "../../../runtime/lists.ts";
import { appendAudit } from "../admin/audit.ts";
import { ensureNamespace } from "../admin/namespaces.ts";
import { type Db, type Executor, jsonTexts, leaveToCommit } from "../db/db.ts";
import { prepared } from "../db/prepared.ts";
import { appendChanges } from "./append.ts";
import { createdNote } from "./audit-job.ts";
import type { NamespaceDefaults } from "./create-job.ts";
import {
  findNoRoom,
  type JobLimits,
  keepPlaces,
  limitKeysOf,
  lockJobLimits,
  NO_JOB_LIMITS,
  takeRoom,
} from "./job-limits.ts";
import { insertJobs } from "./write-job.ts";

/**
 * Makes a group of jobs durable in one transaction of a few statements. Clients that submit many jobs need it: a commit
 * for each job would be far slower.
 *
 * Creates the jobs whose name and request id are free, whose namespace and queue exist, and which have room.
 * Answers null for each other one, also if only an earlier job of the group has the name or took the room;
 * `createJob` then tells why. Locks rows as `createJob` does: request ids first, then namespaces, queues and jobs, each
 * in the order of their names, and jobs of one name in the order given. So groups never wait for each other in a
 * circle. Dry runs only look, each as if it came alone: of two with one name both are `created`.
 */
export async function createJobs(
  db: Db,
  requests: readonly AskedJob[],
  opening: NamespaceDefaults,
  kinds: Registry,
): Promise<readonly (CreatedJob | null)[]> {
  const real = requests.filter(({ dryRun }) => !dryRun);
  const dry = requests.filter(({ dryRun }) => dryRun);
  const created = real.length === 0 ? new Set() : await db.tx((tx) => createFree(tx, real, opening, kinds));
  const free = dry.length === 0 ? new Set() : await findFree(db, dry, opening);
  return requests.map(({ job }) => (created.has(job.uid) || free.has(job.uid) ? { kind: "created", job } : null));
}

/**
 * The uids of the jobs whose names and request ids are free, whose queues exist, and whose namespaces exist or
 * may be created. Leaves out jobs of queues, namespaces and projects with limits.
 */
async function findFree(
  db: Db,
  requests: readonly AskedJob[],
  opening: NamespaceDefaults,
): Promise<ReadonlySet<string>> {
  const free = await db.query<{ uid: string }>(FREE, [
    requests.map(({ job }) => job.namespace),
    requests.map(({ job }) => job.name),
    requests.map(({ requestId }) => requestId),
    requests.map(({ job }) => job.uid),
    requests.map(({ job }) => job.spec.runPolicy.schedulingPolicy.queue),
    requests.map(({ job }) => job.project),
    opening?.namespacesMax ?? 0,
  ]);
  return new Set(free.map(({ uid }) => uid));
}

const FREE = `
select r.uid
  from unnest($1::text[], $2::text[], $3::text[], $4::uuid[], $5::text[], $6::text[])
         as r (namespace, name, request_id, uid, queue, project)
 where not exists (select from jobs j where j.namespace = r.namespace and j.name = r.name)
   and not exists (select from request_ids q where q.namespace = r.namespace and q.request_id = r.request_id)
   and exists (select from queues q where q.name = r.queue and q.max_waiting_jobs is null)
   and not exists (select from tenant_limits l
                    where l.kind = 'namespace' and l.name = r.namespace or l.kind = 'project' and l.name = r.project)
   and (exists (select from namespaces n where n.name = r.namespace)
        or (select count(*) from namespaces) < $7::bigint)`;

/** Creates the jobs whose names and request ids are free, and returns their uids. */
async function createFree(
  tx: Executor,
  requests: readonly AskedJob[],
  opening: NamespaceDefaults,
  kinds: Registry,
): Promise<ReadonlySet<string>> {
  const claimed = await claimRequestIds(tx, requests);
  const inserted = await insertFree(tx, { requests, claimed }, opening, kinds);
  const unused = [...claimed].filter((uid) => !inserted.has(uid));
  if (unused.length > 0) await tx.query("delete from request_ids where job_uid = any($1::uuid[])", [unused]);
  return inserted;
}

async function insertFree(
  tx: Executor,
  { requests, claimed }: { readonly requests: readonly AskedJob[]; readonly claimed: ReadonlySet<string> },
  opening: NamespaceDefaults,
  kinds: Registry,
): Promise<ReadonlySet<string>> {
  const isFree = ({ requestId, job }: AskedJob) => requestId === "" || claimed.has(job.uid);
  const asked = withoutOvertaking(requests, { isFree, rooms: NO_JOB_LIMITS });
  if (asked.length === 0) return new Set();
  const nowMs = maxOf(asked.map(({ job }) => job.createTimeMs));
  const jobs = asked.map(({ job }) => job);
  let places = await keepPlaces(tx, jobs);
  const missing = asked.filter(({ job }) => !places.namespaces.has(job.namespace));
  let refused: ReadonlySet<string> = new Set();
  if (opening !== null && missing.length > 0) {
    refused = await ensureNamespaces(tx, missing, opening, nowMs);
    places = await keepPlaces(tx, jobs);
  }
  const rooms = await lockJobLimits(tx, jobs, places);
  const isOpen = (request: AskedJob) => isFree(request) && !refused.has(request.job.namespace);
  const entering = withoutOvertaking(requests, { isFree: isOpen, rooms });
  entering.sort((a, b) => compareText(keyOf(a), keyOf(b)));
  const inserted = await insertJobs(tx, { jobs: entering, rooms }, kinds);
  const entered = entering.filter(({ job }) => inserted.has(job.uid));
  const changes = entered.map(({ job }) => ({ before: null, after: job, events: [createdEvent(job)] }));
  leaveToCommit(Promise.all([appendChanges(tx, changes, nowMs), appendAudit(tx, ...entered.map(createdNote))]));
  return inserted;
}

/** Creates the namespaces of these jobs, which do not exist. Returns those for which there is no room. */
async function ensureNamespaces(
  tx: Executor,
  requests: readonly AskedJob[],
  opening: NonNullable<NamespaceDefaults>,
  nowMs: number,
): Promise<ReadonlySet<string>> {
  const refused = new Set<string>();
  for (const name of [...new Set(requests.map(({ job }) => job.namespace))].sort()) {
    const bounds = { max: opening.namespacesMax, nowMs };
    if ((await ensureNamespace(tx, { name, ...opening }, bounds)) === "full") refused.add(name);
  }
  return refused;
}

/**
 * The requests that are free and have room. Leaves out those behind an earlier one that is left out, if both have the
 * same name or enter the same queue, namespace or project with a limit: that one is tried alone, and must come first.
 */
function withoutOvertaking(
  requests: readonly AskedJob[],
  { isFree, rooms }: { readonly isFree: (request: AskedJob) => boolean; readonly rooms: JobLimits },
): AskedJob[] {
  const left = new Set<string>();
  const taken: Parameters<typeof takeRoom>[2] = new Map();
  return requests.filter((request) => {
    const { job } = request;
    // The key of a room has no slash, so it is not the key of a job.
    const keys = [keyOf(request), ...limitKeysOf(job, rooms)];
    const goes = isFree(request) && !keys.some((key) => left.has(key)) && findNoRoom(job, rooms, taken) === null;
    if (goes) takeRoom(job, rooms, taken);
    else for (const key of keys) left.add(key);
    return goes;
  });
}

/** Claims request ids, and returns the uids of the jobs whose ids were free. */
async function claimRequestIds(tx: Executor, requests: readonly AskedJob[]): Promise<ReadonlySet<string>> {
  const asking = requests
    .filter(({ requestId }) => requestId !== "")
    .sort((a, b) => compareText(requestKeyOf(a), requestKeyOf(b)));
  if (asking.length === 0) return new Set();
  const claimed = await tx.query<{ job_uid: string }>(CLAIM_REQUESTS, [
    asking.map(({ job }) => job.namespace),
    asking.map(({ requestId }) => requestId),
    jsonTexts(asking.map(({ sent }) => sent)),
    asking.map(({ job }) => job.uid),
    asking.map(({ job }) => job.createTimeMs),
  ]);
  return new Set(claimed.map((row) => row.job_uid));
}

const CLAIM_REQUESTS = prepared(`
insert into request_ids (namespace, request_id, sent, job_uid, create_ms)
select namespace, request_id, sent::json, job_uid, create_ms
  from unnest($1::text[], $2::text[], $3::text[], $4::uuid[], $5::bigint[])
       with ordinality as r (namespace, request_id, sent, job_uid, create_ms, place)
 order by place
on conflict (namespace, request_id) do nothing
returning job_uid`);

function requestKeyOf({ job, requestId }: AskedJob): string {
  return `${job.namespace}/${requestId}`;
}

function keyOf({ job }: AskedJob): string {
  return `${job.namespace}/${job.name}`;
}
