import { createdEvent } from "../../../core/job/request/create-and-end.ts";
import type { CreateOutcome, OutdatedCheck } from "../../../core/job/request/requests.ts";
import type { SentJob } from "../../../core/job/request/sent.ts";
import type { NoRoom } from "../../../core/job/tenant-limits.ts";
import type { Registry } from "../../../core/kinds/registry.ts";
import type { AskedJob } from "../../../core/plan/model/ask.ts";
import { canonicalJson } from "../../../runtime/json.ts";
import { appendAudit } from "../admin/audit.ts";
import { ensureNamespace } from "../admin/namespaces.ts";
import { type Db, type Executor, json, leaveToCommit, undoable } from "../db/db.ts";
import { appendChanges } from "./append.ts";
import { createdNote } from "./audit-job.ts";
import { findNoRoom, type JobLimits, keepPlaces, lockJobLimits } from "./job-limits.ts";
import { loadJob } from "./load-job.ts";
import { insertJobs } from "./write-job.ts";

/**
 * The settings of namespaces that are created on first use, and the most namespaces. Null: only admins create
 * namespaces.
 */
export type NamespaceDefaults = {
  readonly project: string;
  readonly defaultQueue: string;
  readonly namespacesMax: number;
} | null;

/**
 * Makes a job durable exactly once. The request id is written first: of two calls with one id, the second waits for the
 * first's row and then answers with the first's result. Two calls with one name do the same. A dry run does everything
 * and rolls it back.
 */
export async function createJob(
  db: Db,
  request: AskedJob,
  opening: NamespaceDefaults,
  kinds: Registry,
): Promise<CreateOutcome | OutdatedCheck> {
  return undoable<CreateOutcome | OutdatedCheck>(db, async (tx, undo) => {
    const outcome = await create(tx, request, opening, kinds);
    const changed = outcome.kind === "created" || outcome.kind === "unchanged";
    return request.dryRun || !changed ? undo(outcome) : outcome;
  });
}

async function create(
  tx: Executor,
  request: AskedJob,
  opening: NamespaceDefaults,
  kinds: Registry,
): Promise<CreateOutcome | OutdatedCheck> {
  const { job } = request;
  const replay = await claimRequestId(tx, request);
  if (replay !== null) return replay;
  let places = await keepPlaces(tx, [job]);
  if (opening !== null && !places.namespaces.has(job.namespace)) {
    const bounds = { max: opening.namespacesMax, nowMs: job.createTimeMs };
    const outcome = await ensureNamespace(tx, { name: job.namespace, ...opening }, bounds);
    if (outcome === "full") return { kind: "tooManyNamespaces", max: opening.namespacesMax };
    places = await keepPlaces(tx, [job]);
  }
  const rooms = await lockJobLimits(tx, [job], places);
  const entered = await enter(tx, { request, rooms }, kinds);
  if (entered !== "entered") return unentered(tx, request, entered);
  const change = { before: null, after: job, events: [createdEvent(job)] };
  const written = Promise.all([appendChanges(tx, [change], job.createTimeMs), appendAudit(tx, createdNote(request))]);
  leaveToCommit(written);
  // Nothing is committed, so that nothing else would tell that they fail.
  if (request.dryRun) await written;
  return { kind: "created", job };
}

/** Inserts the job, if its queue, namespace and project have room for it. */
async function enter(
  tx: Executor,
  { request, rooms }: { readonly request: AskedJob; readonly rooms: JobLimits },
  kinds: Registry,
): Promise<"entered" | "conflict" | NoRoom> {
  const noRoom = findNoRoom(request.job, rooms);
  if (noRoom !== null) return noRoom;
  const inserted = await insertJobs(tx, { jobs: [request], rooms }, kinds);
  return inserted.has(request.job.uid) ? "entered" : "conflict";
}

/** The answer for a job that was not inserted. A repeated call gets its job also if there is no room any more. */
async function unentered(
  tx: Executor,
  request: AskedJob,
  reason: "conflict" | NoRoom,
): Promise<CreateOutcome | OutdatedCheck> {
  const { job, requestId } = request;
  const found = await conflict(tx, request);
  if (found.kind === "outdated" && reason !== "conflict") return reason;
  if (found.kind === "unchanged" && requestId !== "") {
    await tx.query(NAME_REQUEST, [job.namespace, requestId, found.job.uid]);
  }
  return found;
}

/** Null if this call has claimed its request id, or has none. Else the result of the earlier call with that id. */
async function claimRequestId(tx: Executor, request: AskedJob): Promise<CreateOutcome | null> {
  const { job, sent, requestId } = request;
  if (requestId === "") return null;
  const claimed = await tx.query(CLAIM_REQUEST, [job.namespace, requestId, json(sent), job.uid, job.createTimeMs]);
  if (claimed.length === 1) return null;
  const earlier = await earlierRequest(tx, { namespace: job.namespace, requestId, sent });
  if (earlier === null)
    throw new Error(`request id ${requestId} was taken and is gone now: request ids were pruned too early`);
  return earlier;
}

/** The result of an earlier call with this request id; null if there was none. */
export async function earlierRequest(
  executor: Executor,
  { namespace, requestId, sent }: { readonly namespace: string; readonly requestId: string; readonly sent: SentJob },
): Promise<CreateOutcome | null> {
  const [earlier] = await executor.query<{ sent: SentJob; job_uid: string }>(EARLIER_REQUEST, [namespace, requestId]);
  if (earlier === undefined) return null;
  if (canonicalJson(earlier.sent) !== canonicalJson(sent)) return { kind: "requestIdReused", sent: earlier.sent };
  const made = await loadJob(executor, earlier.job_uid);
  return made === null ? { kind: "madeAndDeleted", uid: earlier.job_uid } : { kind: "replayed", job: made.job };
}

const EARLIER_REQUEST = "select sent, job_uid from request_ids where namespace = $1 and request_id = $2";

const CLAIM_REQUEST = `
insert into request_ids (namespace, request_id, sent, job_uid, create_ms) values ($1, $2, $3::json, $4, $5)
on conflict (namespace, request_id) do nothing
returning job_uid`;

const NAME_REQUEST = "update request_ids set job_uid = $3 where namespace = $1 and request_id = $2";

/**
 * Why the job was not inserted. A job of that name with the same payload answers the call, unless the name was
 * generated: each such call wants a job of its own. Without such a job, the namespace or the queue is gone, or a job of
 * that name was deleted at this moment; or the queue has just got a limit of waiting jobs, or has no room for one.
 */
async function conflict(tx: Executor, { job, sent }: AskedJob): Promise<CreateOutcome | OutdatedCheck> {
  const [taken] = await tx.query<{ uid: string; sent: SentJob }>(
    "select uid, sent from jobs where namespace = $1 and name = $2",
    [job.namespace, job.name],
  );
  const found = taken === undefined ? null : await loadJob(tx, taken.uid);
  if (taken === undefined || found === null) return { kind: "outdated" };
  if (found.job.deleteTimeMs !== null) return { kind: "beingDeleted" };
  const same = sent.name !== "" && canonicalJson(taken.sent) === canonicalJson(sent);
  return same ? { kind: "unchanged", job: found.job } : { kind: "nameTaken", sent: taken.sent };
}
