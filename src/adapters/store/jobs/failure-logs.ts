/** The last lines of containers that failed, kept with their jobs within the limits of jobs and namespaces. */
import {
  FAILURE_LOG_LIMITS,
  type FailureLog,
  type KeptLog,
  type KeptLogs,
  type MeasuredLog,
  type RunKey,
  withinLimits,
} from "../../../core/job/failure-logs/kept-logs.ts";
import { type Db, type Executor, onlyRow } from "../db/db.ts";
import { UUID } from "./list-jobs.ts";

/** The runs of which something is kept; null if the namespace of the job keeps nothing, or if the job is gone. */
export async function keptRuns(executor: Executor, jobUid: string): Promise<readonly RunKey[] | null> {
  const [job] = await executor.query<{ runs: readonly RunKey[] }>(KEPT_RUNS, [jobUid]);
  return job?.runs ?? null;
}

const KEPT_RUNS = `
select coalesce((
         select json_agg(json_build_object('podUid', l.pod_uid, 'container', l.container, 'restarts', l.restarts))
           from failure_logs l where l.job_uid = j.uid
       ), '[]') as runs
  from jobs j join namespaces n on n.name = j.namespace
 where j.uid = $1::uuid and n.keep_failure_logs`;

/** Logs of one job. `gang`: its members restart together. */
export type NewLogs = {
  readonly jobUid: string;
  readonly namespace: string;
  readonly gang: boolean;
  /** The most important first. */
  readonly logs: readonly FailureLog[];
};

/**
 * Keeps logs of a job, each run once, within the limits of the job and of its namespace: the oldest go. Keeps nothing
 * if the namespace keeps nothing, or if the job is gone. Returns the bytes of text that were added. The namespace is
 * locked, so that those who keep logs in it come one after the other.
 */
export function keepLogs(
  db: Db,
  { jobUid, namespace, gang, logs }: NewLogs,
  { nowMs, namespaceBytesMax }: { readonly nowMs: number; readonly namespaceBytesMax: number },
): Promise<number> {
  return db.tx(async (tx) => {
    const [space] = await tx.query<{ keeps: boolean }>(TAKE_NAMESPACE, [namespace]);
    const [job] = await tx.query<{ uid: string }>(TAKE_JOB, [jobUid]);
    if (space?.keeps !== true || job === undefined) return 0;
    const kept = await tx.query<MeasuredLog>(KEPT_LOGS, [jobUid]);
    const fresh = logs.map((log) => ({ ...log, bytes: Buffer.byteLength(log.lines.text) }));
    const { stay, add } = withinLimits<MeasuredLog>({ kept, fresh }, { gang });
    const staying = new Set(stay);
    const gone = kept.filter((log) => !staying.has(log));
    if (gone.length > 0) await tx.query(DELETE_LOGS, [jobUid, ...keyColumns(gone)]);
    const added = fresh.filter((log) => add.includes(log));
    if (added.length === 0) return 0;
    await tx.query(INSERT_LOGS, [jobUid, namespace, nowMs, ...columnsOf(added)]);
    await trimNamespace(tx, namespace, namespaceBytesMax);
    return added.reduce((sum, { bytes }) => sum + bytes, 0);
  });
}

const TAKE_NAMESPACE = `select keep_failure_logs as keeps from namespaces where name = $1 for no key update`;
const TAKE_JOB = `select uid from jobs where uid = $1::uuid for key share`;

const KEPT_LOGS = `
select pod_uid as "podUid", container, restarts, replica, attempt, bytes
  from failure_logs where job_uid = $1::uuid order by id`;

function keyColumns(logs: readonly RunKey[]) {
  return [
    logs.map(({ podUid }) => podUid),
    logs.map(({ container }) => container),
    logs.map(({ restarts }) => restarts),
  ] as const;
}

const DELETE_LOGS = `
delete from failure_logs l using unnest($2::text[], $3::text[], $4::int[]) as gone (pod_uid, container, restarts)
 where l.job_uid = $1::uuid
   and (l.pod_uid, l.container, l.restarts) = (gone.pod_uid, gone.container, gone.restarts)`;

function columnsOf(logs: readonly (FailureLog & { readonly bytes: number })[]) {
  return [
    ...keyColumns(logs),
    logs.map(({ replica }) => replica),
    logs.map(({ attempt }) => attempt),
    logs.map(({ admission }) => admission),
    logs.map(({ cluster }) => cluster),
    logs.map(({ pod }) => pod),
    logs.map(({ exitCode }) => exitCode),
    logs.map(({ reason }) => reason),
    logs.map(({ lines }) => lines.text),
    logs.map(({ lines }) => lines.cut),
    logs.map(({ problem }) => problem?.reason ?? null),
    logs.map(({ problem }) => problem?.message ?? ""),
    logs.map(({ bytes }) => bytes),
  ] as const;
}

/** The ids follow the order of the logs. */
const INSERT_LOGS = `
insert into failure_logs
  (job_uid, namespace, read_ms, pod_uid, container, restarts, replica, attempt, admission, cluster, pod, exit_code,
   reason, lines, cut, problem, message, bytes)
select $1::uuid, $2, $3::bigint, l.pod_uid, l.container, l.restarts, l.replica, l.attempt, l.admission, l.cluster,
       l.pod, l.exit_code, l.reason, l.lines, l.cut, l.problem, l.message, l.bytes
  from unnest($4::text[], $5::text[], $6::int[], $7::text[], $8::int[], $9::int[], $10::text[], $11::text[],
              $12::int[], $13::text[], $14::text[], $15::boolean[], $16::text[], $17::text[], $18::int[])
    with ordinality as l (pod_uid, container, restarts, replica, attempt, admission, cluster, pod, exit_code, reason,
                          lines, cut, problem, message, bytes, place)
 order by l.place`;

/** Deletes the oldest logs of a namespace until the others have at most so many bytes. */
async function trimNamespace(tx: Executor, namespace: string, bytesMax: number): Promise<void> {
  const { bytes } = onlyRow(await tx.query<{ bytes: number }>(BYTES_OF, [namespace]));
  if (bytes > bytesMax) await tx.query(DELETE_OLDEST, [namespace, bytesMax]);
}

const BYTES_OF = `select coalesce(sum(bytes), 0)::bigint as bytes from failure_logs where namespace = $1`;

/** A row that is locked is being deleted with its job. */
const DELETE_OLDEST = `
with aged as (
  select id, sum(bytes) over (order by id desc) as so_far from failure_logs where namespace = $1 and bytes > 0
), oldest as (
  select l.id from failure_logs l
   where l.namespace = $1 and l.id in (select id from aged where so_far > $2::bigint)
   order by l.id
     for update skip locked
)
delete from failure_logs l using oldest where l.namespace = $1 and l.id = oldest.id`;

/** The logs that are kept of a job. Null: the job does not exist. */
export async function readLogs(executor: Executor, jobUid: string): Promise<KeptLogs | null> {
  if (!UUID.test(jobUid)) return null;
  const [rows, [job]] = await Promise.all([
    executor.query<LogRow>(READ_LOGS, [jobUid]),
    executor.query<{ keeps: boolean }>(KEEPS, [jobUid]),
  ]);
  return job === undefined ? null : { keeps: job.keeps, logs: rows.map(logOf) };
}

const KEEPS = `
select n.keep_failure_logs as keeps from jobs j join namespaces n on n.name = j.namespace where j.uid = $1::uuid`;

const READ_LOGS = `
select replica, attempt, admission, cluster, pod, pod_uid as "podUid", container, restarts, exit_code as "exitCode",
       reason, read_ms as "readMs", lines, cut, problem, message
  from failure_logs where job_uid = $1::uuid order by attempt desc, id`;

type LogRow = Omit<KeptLog, "lines" | "problem"> & {
  readonly lines: string;
  readonly cut: boolean;
  readonly problem: string | null;
  readonly message: string;
};

function logOf({ lines, cut, problem, message, ...log }: LogRow): KeptLog {
  return { ...log, lines: { text: lines, cut }, problem: problem === null ? null : { reason: problem, message } };
}

/** The limit of each namespace. */
export const NAMESPACE_BYTES_MAX = FAILURE_LOG_LIMITS.namespaceBytesMax;
