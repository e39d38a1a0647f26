import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import type { Db } from "../../../src/adapters/store/db/db.ts";
import type { SentJob } from "../../../src/core/job/request/sent.ts";
import type { Counters } from "../../../src/core/quota/counters.ts";
import { systemClock } from "../../../src/runtime/clock.ts";
import { OwnRedis } from "../../counters/own-redis.ts";
import { waitForCount } from "../../support/bounded.ts";
import { hasRedisServer } from "../../support/redis-server.ts";
import { benchClusters, type ClusterSource } from "./bench-clusters.ts";
import { benchJob } from "./bench-jobs.ts";
import { ownCpuMs, serverCpuMs } from "./cpu-time.ts";
import { countPods, createLoop } from "./create-loop.ts";
import { profileLines, reportLine, startProfile } from "./measure.ts";
import { startScheduling } from "./scheduling.ts";
import { scratchDb } from "./scratch-db.ts";

export type AdmitBench = {
  readonly clusters: ClusterSource;
  /** The server of the database. Then the counters are in a Redis of the bench's own. Null: both are embedded. */
  readonly postgres: string | null;
  /** The numbers of jobs of one pod, and of gangs of four. */
  readonly singles: number;
  readonly gangs: number;
  /** The nodes of each cluster. */
  readonly nodes: number;
  readonly profile: boolean;
};

const GANG = 4;
const GPUS_PER_NODE = 64;
const clock = systemClock();

/** Measures how fast waiting jobs are admitted and their pods created. Returns the ratios by name. */
export async function benchAdmit(
  bench: AdmitBench,
  print: (line: string) => void,
): Promise<Readonly<Record<string, number>>> {
  await using parts = new AsyncDisposableStack();
  const { clusters, run } = await benchClusters(bench.clusters, { count: bench.nodes, gpus: GPUS_PER_NODE }, parts);
  const jobs = bench.singles + bench.gangs;
  const pods = bench.singles + GANG * bench.gangs;
  if (pods > clusters.length * bench.nodes * GPUS_PER_NODE) throw new Error(`${pods} pods do not fit these nodes`);
  const floor = await createLoop(clusters, { jobs, pods }, clock);
  const db = await scratchDb(parts, bench.postgres);
  const counters = bench.postgres === null ? {} : { counters: await ownCounters(parts) };
  const service = await startScheduling({ db, clusters, clock, random: randomBytes, quota: pods, ...counters });
  parts.defer(() => service.close());
  await service.submit(jobsOf(bench, run));
  const cpuMs = async () => ({ own: ownCpuMs(), server: await serverCpuMs(db) });
  const stop = bench.profile ? await startProfile() : null;
  const before = await cpuMs();
  const startMs = clock.monotonicMs();
  service.start();
  await waitForCount("admitted jobs", () => admittedJobs(db), { wanted: jobs });
  const admittedMs = clock.monotonicMs() - startMs;
  await waitForCount("created pods", () => countPods(clusters), { wanted: pods });
  const createdMs = clock.monotonicMs() - startMs;
  const after = await cpuMs();
  const times = (await stop?.()) ?? null;
  const ratios: Record<string, number> = {};
  const report = (name: string, count: number, tookMs: number) => {
    const measured = { name, perSecond: (count * 1000) / tookMs };
    ratios[name] = measured.perSecond / floor.perSecond;
    print(`${reportLine(measured, floor)}, ${(1 / ratios[name]).toFixed(2)} times as long`);
  };
  report(`pods admitted (${jobs} jobs)`, pods, admittedMs);
  report("pods admitted and created", pods, createdMs);
  print(cpuLine({ pods, own: after.own - before.own, server: (after.server ?? 0) - (before.server ?? 0) }));
  if (times !== null) for (const line of profileLines("planner, workers and clusters", times)) print(line);
  return ratios;
}

function cpuLine({ pods, own, server }: { readonly pods: number; readonly own: number; readonly server: number }) {
  const perPod = (ms: number) => `${(ms / pods).toFixed(2)} ms`;
  const database = server === 0 ? "the embedded database included" : `PostgreSQL ${perPod(server)}`;
  return `CPU time per pod                    Gangway ${perPod(own)}, ${database}`;
}

async function ownCounters(parts: AsyncDisposableStack): Promise<Counters> {
  assert.ok(hasRedisServer(), "redis-server is not on the PATH");
  const redis = await OwnRedis.start();
  parts.defer(async () => {
    await redis.disconnect();
    await redis.stop();
  });
  return redis.connect()("default");
}

async function admittedJobs(db: Db): Promise<number> {
  const [row] = await db.query<{ count: number }>("select count(distinct job_uid)::int as count from admissions");
  return row?.count ?? 0;
}

function jobsOf({ singles, gangs }: AdmitBench, namespace: string): readonly SentJob[] {
  return [
    ...Array.from({ length: singles }, (_, at) => benchJob({ namespace, name: `single-${at}`, replicas: 1 })),
    ...Array.from({ length: gangs }, (_, at) => benchJob({ namespace, name: `gang-${at}`, replicas: GANG })),
  ];
}
