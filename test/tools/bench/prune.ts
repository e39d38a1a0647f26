/** What pruning does to watches: how late changes come while the service deletes what many ended jobs have left. */
import { setTimeout as sleep } from "node:timers/promises";
import type { Db } from "../../../src/adapters/store/db/db.ts";
import type { GangwayClient } from "../../../src/cli/rpc/client.ts";
import { JobService } from "../../../src/gen/gangway/v1/job_service_pb.ts";
import { waitUntil } from "../../support/bounded.ts";
import { type BenchFleet, jobRequest, startFleet } from "./fleet.ts";

export type PruneBench = {
  readonly postgres: string;
  /** How many jobs have ended and were deleted. */
  readonly finished: number;
  /** How long watches are measured while nothing is pruned, and as long while it is. */
  readonly seconds: number;
};

/** Jobs are created so far apart. */
const APART_MS = 25;
/** Jobs of one statement. */
const PAGE = 20_000;
const DAY_MS = 86_400_000;

/** Returns how many times as late a change comes at the 99th percentile while the service prunes. */
export async function benchPruning(bench: PruneBench, print: (line: string) => void): Promise<number> {
  await using parts = new AsyncDisposableStack();
  const fleet = await startFleet(parts, { postgres: bench.postgres, pods: 1 });
  await fillHistory(fleet, bench.finished);
  const without = await measured(fleet, "without", bench.seconds);
  const before = await left(fleet.db);
  // Nothing after a young entry is pruned: now all entries are old.
  await fleet.db.query("update job_changes set at_ms = 1 where position = 1");
  await fleet.db.query("update job_events set at_ms = 1 where namespace = 'past'");
  const during = await measured(fleet, "during", bench.seconds);
  const after = await left(fleet.db);
  print(`changes of jobs beside ${bench.finished} that have ended, to a watch: ${text(without)}`);
  print(`the same while it prunes: ${text(during)}; ${before - after} rows went, ${after} are left`);
  return during.p99 / without.p99;
}

function text({ p50, p99 }: { readonly p50: number; readonly p99: number }): string {
  return `p50 ${p50.toFixed(1)} ms, p99 ${p99.toFixed(1)} ms`;
}

/** Entries of jobs that were deleted 15 days ago. The first one is young, so that none is pruned yet. */
async function fillHistory({ db, namespace, serve, client }: BenchFleet, count: number): Promise<void> {
  const api = await serve("api");
  await client(api).call(
    JobService.method.createJob,
    jobRequest({ namespace, name: "form", runs: "1h", queue: "default" }),
  );
  await waitUntil("the form has a position", async () => (await headOf(db)) > 0);
  await api.end("SIGTERM");
  await db.query("create table form as select job from job_changes limit 1");
  await db.query("truncate job_changes, job_events, request_ids");
  const atMs = Date.now() - 15 * DAY_MS;
  for (let from = 0; from < count; from += PAGE) {
    const page = [from, Math.min(count, from + PAGE) - 1, atMs];
    for (const statement of [ENTRIES, EVENTS, REQUESTS]) await db.query(statement, page);
  }
  await db.query("update job_log set head = $1", [2 * count]);
  await db.query("update job_changes set at_ms = $1 where position = 1", [Date.now()]);
  await db.query("vacuum analyze");
  await db.query("checkpoint");
}

async function left(db: Db): Promise<number> {
  const [row] = await db.query<{ rows: number }>(LEFT);
  return row?.rows ?? 0;
}

async function headOf(db: Db): Promise<number> {
  const [row] = await db.query<{ head: number }>("select head from job_log");
  return row?.head ?? 0;
}

/** How late the changes of jobs come to a watch of a new process, from the begin of their calls. */
async function measured(fleet: BenchFleet, name: string, seconds: number) {
  const api = await fleet.serve("api");
  const client = fleet.client(api);
  const sentMs = new Map<string, number>();
  const late: number[] = [];
  const over = new AbortController();
  const watching = follow(client, fleet.namespace, over.signal, (job) => {
    const sent = sentMs.get(job);
    if (sent !== undefined) late.push(performance.now() - sent);
  });
  const count = Math.ceil((seconds * 1000) / APART_MS);
  const startMs = performance.now();
  const calls: Promise<unknown>[] = [];
  for (let at = 0; at < count; at += 1) {
    const job = `${name}-${at}`;
    sentMs.set(job, performance.now());
    const request = jobRequest({ namespace: fleet.namespace, name: job, runs: "1h", queue: "default" });
    calls.push(client.call(JobService.method.createJob, request));
    await sleep(Math.max(0, startMs + (at + 1) * APART_MS - performance.now()));
  }
  await Promise.all(calls);
  await waitUntil("every change has come", async () => late.length >= count);
  over.abort();
  await watching;
  await api.end("SIGTERM");
  late.sort((a, b) => a - b);
  const part = (of: number) => late[Math.min(late.length - 1, Math.floor(late.length * of))] ?? Number.NaN;
  return { p50: part(0.5), p99: part(0.99) };
}

async function follow(
  client: GangwayClient,
  namespace: string,
  signal: AbortSignal,
  seen: (job: string) => void,
): Promise<void> {
  try {
    for await (const { job } of client.stream(JobService.method.watchJobs, { filter: { namespace } }, signal)) {
      if (job !== undefined) seen(job.metadata?.name ?? "");
    }
  } catch (error) {
    if (!signal.aborted) throw error;
  }
}

const UID = "('01900000-0000-7000-a000-' || lpad(to_hex(n), 12, '0'))::uuid";

const ENTRIES = `
insert into job_changes (position, job_uid, version, change, job, previous_phase, previous_cluster, at_ms)
select 2 * n + v, ${UID}, v, case v when 1 then 'ADDED' else 'DELETED' end, form.job,
       case v when 2 then 'SUCCEEDED' end, case v when 2 then '' end, $3
  from generate_series($1::int, $2::int) n, generate_series(1, 2) v, form
 order by n, v`;

const EVENTS = `
insert into job_events (job_uid, namespace, name, version, type, reason, message, at_ms)
select ${UID}, 'past', 'job-' || n, 1, 'Normal', 'Created', 'The job is created.', $3 + 30 * ${DAY_MS}::bigint
  from generate_series($1::int, $2::int) n`;

const REQUESTS = `
insert into request_ids (namespace, request_id, sent, job_uid, create_ms)
select 'past', 'request-' || n, '{}', ${UID}, $3
  from generate_series($1::int, $2::int) n`;

/** The rows that ended jobs have left. */
const LEFT = `
select (select count(*) from job_changes where job_uid::text like '01900000-0000-7000-a000-%')
         + (select count(*) from job_events where namespace = 'past')
         + (select count(*) from request_ids where namespace = 'past') as rows`;
