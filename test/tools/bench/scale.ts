/** What the number of jobs does to calls, take-overs, memory and disk: a small and a large installation. */
import { setTimeout as sleep } from "node:timers/promises";
import type { MessageInitShape } from "@bufbuild/protobuf";
import type { Db } from "../../../src/adapters/store/db/db.ts";
import type { GangwayClient } from "../../../src/cli/rpc/client.ts";
import { JobPhase } from "../../../src/gen/gangway/v1/job_pb.ts";
import {
  JobService,
  type ListJobsRequestSchema,
  WatchJobsResponse_Type,
} from "../../../src/gen/gangway/v1/job_service_pb.ts";
import { waitUntil } from "../../support/bounded.ts";
import { copyJobs } from "../../support/copy-jobs.ts";
import type { ServeChild } from "../../support/serve-process.ts";
import { processMiB } from "./cpu-time.ts";
import { type BenchFleet, jobRequest, startFleet, submitJobs } from "./fleet.ts";
import { benchPruning } from "./prune.ts";

export type ScaleBench = {
  readonly postgres: string;
  /** The numbers of jobs of the large installation: those that have ended, and those that wait. */
  readonly finished: number;
  readonly live: number;
  /** How often each call is made. The median counts. */
  readonly runs: number;
  /** How long watches are measured beside pruning, and as long without. */
  readonly seconds: number;
};

/** The small installation has this part of the jobs. */
const SMALL_PART = 1 / 100;
/** A call of the large installation may take so many times as long: a page more of each index, and a busy machine. */
const FLAT = 3;
/** The room of the cluster: more than all jobs that run in both installations. */
const PODS = 1_000;
/** How many jobs are submitted together. */
const TOGETHER = 100;
/** How many jobs of a watch without a filter are read: some pages. */
const FIRST = 1_000;
/** Jobs that filters select, in either installation. */
const RARE = 5;
const RARE_NAMESPACE = "rare";
const PAGE = 50;
const PRUNING = "watch p99 while it prunes / without";

type Listed = MessageInitShape<typeof ListJobsRequestSchema>;

const LISTS: Readonly<Record<string, Listed>> = {
  "list by create_time": { orderBy: "create_time" },
  "list by create_time desc": { orderBy: "create_time desc" },
  "list by name": { orderBy: "name" },
  "list by priority desc": { orderBy: "priority desc" },
  "list a namespace": { filter: { namespace: RARE_NAMESPACE } },
  "list a namespace by name": { filter: { namespace: RARE_NAMESPACE }, orderBy: "name" },
  "list names of a namespace": { filter: { namespace: RARE_NAMESPACE, names: ["rare-1"] } },
  "list a queue": { filter: { queue: "rare" } },
  "list a kind": { filter: { kinds: ["MPIJob"] } },
  "list phase RUNNING": { filter: { phases: [JobPhase.RUNNING] } },
  "list phase FAILED": { filter: { phases: [JobPhase.FAILED] } },
  "list a cluster without jobs": { filter: { cluster: "nowhere" } },
  "list a label": { filter: { labels: { tier: "rare" } } },
};

/** Times in milliseconds by the name of the call. */
type Times = Readonly<Record<string, number>>;

/** Measures both installations in one database. Returns how many times as long each call takes in the large one. */
export async function benchScale(
  bench: ScaleBench,
  print: (line: string) => void,
): Promise<Readonly<Record<string, number>>> {
  await using parts = new AsyncDisposableStack();
  const fleet = await startFleet(parts, { postgres: bench.postgres, pods: PODS });
  const processes = await startProcesses(fleet);
  const client = fleet.client(processes.api);
  const forms = await submitForms(fleet, client);
  const part = (count: number) => Math.ceil(count * SMALL_PART);
  await fill(fleet.db, forms, { finished: part(bench.finished), live: part(bench.live), prefix: "small" });
  const small = await measure(bench, fleet, client, processes, "small");
  const rest = (count: number) => count - part(count);
  const startMs = performance.now();
  await fill(fleet.db, forms, { finished: rest(bench.finished), live: rest(bench.live), prefix: "large" });
  print(`${bench.finished} jobs have ended and ${bench.live} wait; written in ${seconds(performance.now() - startMs)}`);
  const large = await measure(bench, fleet, client, processes, "large");
  const ratios: Record<string, number> = {};
  for (const [name, ms] of Object.entries(large)) {
    const before = small[name] ?? Number.NaN;
    ratios[name] = ms / before;
    const mark = ms / before > FLAT && ms - before > 5 ? "   grows" : "";
    const times = `${before.toFixed(1).padStart(9)} ms ${ms.toFixed(1).padStart(9)} ms`;
    print(`${name.padEnd(36)} ${times}   ratio ${(ms / before).toFixed(2)}${mark}`);
  }
  for (const line of await diskLines(fleet.db)) print(line);
  const vacuumMs = performance.now();
  await fleet.db.query("vacuum");
  print(`a vacuum after these calls took ${seconds(performance.now() - vacuumMs)}`);
  ratios[PRUNING] = await benchPruning(bench, print);
  print(`${PRUNING}: ${ratios[PRUNING].toFixed(2)}`);
  return ratios;
}

type Signal = "SIGTERM" | "SIGKILL";
type Processes = { api: ServeChild; planner: ServeChild; worker: ServeChild };

async function startProcesses({ serve }: BenchFleet): Promise<Processes> {
  return { api: await serve("api"), planner: await serve("planner"), worker: await serve("worker") };
}

/** One job that has ended and one that waits, which are copied, and the jobs that filters select. */
async function submitForms(fleet: BenchFleet, client: GangwayClient) {
  await submitJobs(fleet, client, { prefix: "ended", count: 1, runs: "10ms", phase: "SUCCEEDED" });
  await waitUntil("nothing is left of the ended job", async () => {
    const [row] = await fleet.db.query<{ left: number }>("select count(*)::int as left from admission_clusters");
    return row?.left === 0;
  });
  const waits = jobRequest({ namespace: fleet.namespace, name: "waits", runs: "forever", queue: "default" });
  await client.call(JobService.method.createJob, waits);
  await fleet.db.query(
    "insert into queues (name, strategy, create_ms, update_ms) values ('rare', 'STRICT_FIFO', 1, 1)",
  );
  for (let at = 0; at < RARE; at++) {
    const rare = jobRequest({ namespace: RARE_NAMESPACE, name: `rare-${at}`, runs: "forever", queue: "rare" });
    const metadata = { ...rare.job.metadata, labels: { tier: "rare" } };
    await client.call(JobService.method.createJob, { job: { ...rare.job, metadata } });
  }
  const uidOf = async (prefix: string) => {
    const [row] = await fleet.db.query<{ uid: string }>("select uid from jobs where name like $1", [`${prefix}%`]);
    return row?.uid ?? "";
  };
  return { ended: await uidOf("ended"), waits: await uidOf("waits") };
}

async function fill(
  db: Db,
  forms: { readonly ended: string; readonly waits: string },
  of: { readonly finished: number; readonly live: number; readonly prefix: string },
): Promise<void> {
  await copyJobs(db, { uid: forms.ended, count: of.finished, prefix: `${of.prefix}-ended` });
  await copyJobs(db, { uid: forms.waits, count: of.live, prefix: `${of.prefix}-waits` });
  await db.query("vacuum analyze");
}

/** Measures calls, take-overs, and the memory of the processes that took over. */
async function measure(
  { runs }: ScaleBench,
  fleet: BenchFleet,
  client: GangwayClient,
  processes: Processes,
  prefix: string,
): Promise<Times> {
  const times: Record<string, number> = {};
  const { method } = JobService;
  const of = { namespace: fleet.namespace, runs: "10ms", queue: "default" };
  times["submit"] = await medianMs(runs, (run) =>
    client.call(method.createJob, jobRequest({ ...of, name: `${prefix}-submit-${run}` })),
  );
  times["get"] = await medianMs(runs, () => client.call(method.getJob, { namespace: RARE_NAMESPACE, name: "rare-1" }));
  for (const [name, request] of Object.entries(LISTS)) {
    times[name] = await medianMs(runs, () => client.call(method.listJobs, { ...request, pageSize: PAGE }));
  }
  times["watch a namespace, to its bookmark"] = await medianMs(runs, () => watchOnce(client));
  times[`watch all jobs, the first ${FIRST}`] = await medianMs(runs, () => watchFirst(client, FIRST));
  const reading = new AbortController();
  const all = watchFirst(client, Number.POSITIVE_INFINITY, reading.signal);
  times["get beside a watch of all jobs"] = await medianMs(runs, () =>
    client.call(method.getJob, { namespace: RARE_NAMESPACE, name: "rare-1" }),
  );
  reading.abort();
  await all;
  times["submit to running"] = await medianMs(runs, (run) => runOne(fleet, client, `${prefix}-run-${run}`));
  times[`${TOGETHER} jobs, submit to running`] = await runTogether(fleet, client, prefix);
  for (const signal of ["SIGTERM", "SIGKILL"] as const) {
    for (const role of ["worker", "planner"] as const) {
      const name = `take-over of the ${role} after ${signal}`;
      times[name] = await takeOver(fleet, client, processes, { role, signal, name: `${prefix}-${role}-${signal}` });
    }
  }
  for (const [role, process] of Object.entries(processes)) {
    times[`memory of the ${role} in MiB, as ms`] = processMiB(process.child.pid ?? 0);
  }
  return times;
}

/** Reads so many jobs of a watch without a filter, as fast as they come. */
async function watchFirst(client: GangwayClient, count: number, signal?: AbortSignal): Promise<void> {
  const over = new AbortController();
  signal?.addEventListener("abort", () => over.abort(), { once: true });
  let read = 0;
  try {
    for await (const { type } of client.stream(JobService.method.watchJobs, {}, over.signal)) {
      read += 1;
      if (read >= count || type === WatchJobsResponse_Type.BOOKMARK) break;
    }
  } catch (error) {
    if (!over.signal.aborted) throw error;
  }
  over.abort();
}

async function watchOnce(client: GangwayClient): Promise<void> {
  const over = new AbortController();
  const request = { filter: { namespace: RARE_NAMESPACE } };
  for await (const { type } of client.stream(JobService.method.watchJobs, request, over.signal)) {
    if (type === WatchJobsResponse_Type.BOOKMARK) break;
  }
  over.abort();
}

/** Submits jobs that have room and quota together, and waits until all of them run. */
async function runTogether(fleet: BenchFleet, client: GangwayClient, prefix: string): Promise<number> {
  const startMs = performance.now();
  const jobs = { prefix: `${prefix}-together`, count: TOGETHER, runs: "1h", phase: "RUNNING" };
  await submitJobs(fleet, client, jobs);
  return performance.now() - startMs;
}

/** Submits a job that has room and quota, and waits until it runs. */
async function runOne(fleet: BenchFleet, client: GangwayClient, name: string): Promise<void> {
  const request = jobRequest({ namespace: fleet.namespace, name, runs: "1h", queue: "bench" });
  await client.call(JobService.method.createJob, request);
  await waitUntil(
    `${name} runs`,
    async () => {
      const { job } = await client.call(JobService.method.getJob, { namespace: fleet.namespace, name });
      return job?.status?.phase === JobPhase.RUNNING;
    },
    { pollMs: 5 },
  );
}

/** The time from the end of a process until another one in its place has carried a new job to its pod. */
async function takeOver(
  fleet: BenchFleet,
  client: GangwayClient,
  processes: Processes,
  { role, signal, name }: { readonly role: "worker" | "planner"; readonly signal: Signal; readonly name: string },
): Promise<number> {
  const next = await fleet.serve(role);
  // The next one holds nothing until the first has gone.
  await sleep(1_000);
  const startMs = performance.now();
  await processes[role].end(signal);
  processes[role] = next;
  await runOne(fleet, client, name.toLowerCase());
  return performance.now() - startMs;
}

async function medianMs(runs: number, call: (run: number) => Promise<unknown>): Promise<number> {
  const times: number[] = [];
  for (let run = 0; run <= runs; run++) {
    const startMs = performance.now();
    await call(run);
    // The first call compiles the code and fills caches.
    if (run > 0) times.push(performance.now() - startMs);
  }
  return times.sort((a, b) => a - b)[Math.floor(times.length / 2)] ?? Number.NaN;
}

async function diskLines(db: Db): Promise<readonly string[]> {
  await db.query("analyze");
  const rows = await db.query<{ name: string; rows: number; table: string; indexes: string; dead: number }>(SIZES);
  return rows.map(({ name, rows: count, table, indexes, dead }) => {
    const sizes = `${table.padStart(9)} and indexes of ${indexes.padStart(9)}`;
    return `${name.padEnd(20)} ${String(count).padStart(9)} rows ${sizes}, ${dead} dead rows`;
  });
}

const SIZES = `
select s.relname as name, c.reltuples::bigint as rows, pg_size_pretty(pg_table_size(relid)) as table,
       pg_size_pretty(pg_indexes_size(relid)) as indexes, n_dead_tup as dead
  from pg_stat_user_tables s join pg_class c on c.oid = s.relid
 order by pg_total_relation_size(relid) desc
 limit 12`;

function seconds(ms: number): string {
  return `${(ms / 1000).toFixed(0)} s`;
}
