import type { Job } from "../../core/job/job.ts";
import { appendChanges } from "./append.ts";
import { createdEvent, type NewJob } from "./create-job.ts";
import { type Db, type Executor, json } from "./db.ts";
import { ensureNamespace } from "./namespaces.ts";
import { insertJobs } from "./write-job.ts";

type CreatedJob = { readonly kind: "created"; readonly job: Job };

type Opening = { readonly project: string; readonly defaultQueue: string } | null;

/**
 * Makes a group of jobs durable in one transaction of a few statements: those whose name and request id are free, as `created`. What stands
 * in another's way (also in that of an earlier one of the group) is left as it was and answered with null: only a transaction of its own can
 * tell why. Rows are taken request ids first, then namespaces, then jobs, each in the order of their names (those of one name in the order given), as by `createJob`: groups that
 * meet wait for each other, and never in a circle. Dry runs only look, each as if it came alone: of two with one name both are `created`.
 */
export async function createJobs(
  db: Db,
  requests: readonly NewJob[],
  opening: Opening,
): Promise<readonly (CreatedJob | null)[]> {
  const real = requests.filter(({ dryRun }) => !dryRun);
  const dry = requests.filter(({ dryRun }) => dryRun);
  const created = real.length === 0 ? new Set() : await db.tx((tx) => createFree(tx, real, opening));
  const free = dry.length === 0 ? new Set() : await findFree(db, dry);
  return requests.map(({ job }) => (created.has(job.uid) || free.has(job.uid) ? { kind: "created", job } : null));
}

/** The uids of the jobs whose names and request ids nobody has. */
async function findFree(db: Db, requests: readonly NewJob[]): Promise<ReadonlySet<string>> {
  const free = await db.query<{ uid: string }>(FREE, [
    requests.map(({ job }) => job.namespace),
    requests.map(({ job }) => job.name),
    requests.map(({ requestId }) => requestId),
    requests.map(({ job }) => job.uid),
  ]);
  return new Set(free.map(({ uid }) => uid));
}

const FREE = `
select r.uid
  from unnest($1::text[], $2::text[], $3::text[], $4::uuid[]) as r (namespace, name, request_id, uid)
 where not exists (select from jobs j where j.namespace = r.namespace and j.name = r.name)
   and not exists (select from request_ids q where q.namespace = r.namespace and q.request_id = r.request_id)`;

/** Returns the uids of the jobs that were made. */
async function createFree(tx: Executor, requests: readonly NewJob[], opening: Opening): Promise<ReadonlySet<string>> {
  const claimed = await claimRequestIds(tx, requests);
  const free = inTurn(requests, claimed).sort((a, b) => compare(keyOf(a), keyOf(b)));
  const inserted = free.length === 0 ? new Set<string>() : await insertFree(tx, free, opening);
  const vain = [...claimed].filter((uid) => !inserted.has(uid));
  if (vain.length > 0) await tx.query("delete from request_ids where job_uid = any($1::uuid[])", [vain]);
  return inserted;
}

async function insertFree(tx: Executor, free: readonly NewJob[], opening: Opening): Promise<ReadonlySet<string>> {
  const nowMs = Math.max(...free.map(({ job }) => job.createTimeMs));
  if (opening !== null) {
    const names = [...new Set(free.map(({ job }) => job.namespace))].sort();
    for (const name of names) await ensureNamespace(tx, { name, ...opening }, nowMs);
  }
  const inserted = await insertJobs(tx, free);
  const jobs = free.map(({ job }) => job).filter((job) => inserted.has(job.uid));
  await appendChanges(
    tx,
    jobs.map((job) => ({ before: null, after: job, events: [createdEvent(job)] })),
    nowMs,
  );
  return inserted;
}

/** Those whose request ids are theirs, but none that would go before an earlier one of its name, which is to be tried by itself. */
function inTurn(requests: readonly NewJob[], claimed: ReadonlySet<string>): NewJob[] {
  const left = new Set<string>();
  return requests.filter((request) => {
    const isFree = request.requestId === "" || claimed.has(request.job.uid);
    if (!isFree || left.has(keyOf(request))) left.add(keyOf(request));
    return !left.has(keyOf(request));
  });
}

/** The uids of the jobs whose request ids were free and are now theirs. */
async function claimRequestIds(tx: Executor, requests: readonly NewJob[]): Promise<ReadonlySet<string>> {
  const asking = requests
    .filter(({ requestId }) => requestId !== "")
    .sort((a, b) => compare(requestKeyOf(a), requestKeyOf(b)));
  if (asking.length === 0) return new Set();
  const claimed = await tx.query<{ job_uid: string }>(CLAIM_REQUESTS, [
    asking.map(({ job }) => job.namespace),
    asking.map(({ requestId }) => requestId),
    asking.map(({ sent }) => json(sent)),
    asking.map(({ job }) => job.uid),
    asking.map(({ job }) => job.createTimeMs),
  ]);
  return new Set(claimed.map((row) => row.job_uid));
}

const CLAIM_REQUESTS = `
insert into request_ids (namespace, request_id, sent, job_uid, create_ms)
select namespace, request_id, sent::json, job_uid, create_ms
  from unnest($1::text[], $2::text[], $3::text[], $4::uuid[], $5::bigint[])
    as r (namespace, request_id, sent, job_uid, create_ms)
on conflict (namespace, request_id) do nothing
returning job_uid`;

function requestKeyOf({ job, requestId }: NewJob): string {
  return `${job.namespace}/${requestId}`;
}

function keyOf({ job }: NewJob): string {
  return `${job.namespace}/${job.name}`;
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
