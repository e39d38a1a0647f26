import { randomBytes, randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import type { Db } from "../../src/adapters/store/db/db.ts";
import type { SentJob } from "../../src/core/job/sent.ts";
import { systemClock } from "../../src/runtime/clock.ts";
import { waitForCount } from "../support/bounded.ts";
import { BenchCluster } from "./bench-cluster.ts";
import { benchJob } from "./bench-jobs.ts";
import { simulatedKubeconfigs } from "./cluster-servers.ts";
import { countPods, createLoop } from "./create-loop.ts";
import { profileLines, reportLine, startProfile } from "./measure.ts";
import { startScheduling } from "./scheduling.ts";
import { scratchDb } from "./scratch-db.ts";

export type AdmitBench = {
  /** Files of kubeconfigs. An empty list: two simulated clusters. */
  readonly kubeconfig: readonly string[];
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
  const kubeconfigs = await kubeconfigsOf(bench, parts);
  const pods = bench.singles + GANG * bench.gangs;
  if (pods > kubeconfigs.length * bench.nodes * GPUS_PER_NODE) throw new Error(`${pods} pods do not fit these nodes`);
  const run = `bench-${randomUUID().slice(0, 8)}`;
  const clusters = kubeconfigs.map((kubeconfig, at) => new BenchCluster(`bench-${at}`, kubeconfig, run));
  for (const cluster of clusters) {
    parts.defer(() => cluster.close());
    await cluster.addNodes({ count: bench.nodes, gpus: GPUS_PER_NODE });
  }
  const floor = await createLoop(clusters, pods, clock);
  const db = await scratchDb(parts);
  const service = await startScheduling({ db, clusters, clock, random: randomBytes, quota: pods });
  parts.defer(() => service.close());
  await service.submit(jobsOf(bench, run));
  const stop = bench.profile ? await startProfile() : null;
  const startMs = clock.monotonicMs();
  service.start();
  const jobs = bench.singles + bench.gangs;
  await waitForCount("admitted jobs", () => admittedJobs(db), { wanted: jobs });
  const admittedMs = clock.monotonicMs() - startMs;
  await waitForCount("created pods", () => countPods(clusters), { wanted: pods });
  const createdMs = clock.monotonicMs() - startMs;
  const times = (await stop?.()) ?? null;
  const ratios: Record<string, number> = {};
  const report = (name: string, count: number, tookMs: number) => {
    const measured = { name, perSecond: (count * 1000) / tookMs };
    ratios[name] = measured.perSecond / floor.perSecond;
    print(reportLine(measured, floor));
  };
  report(`pods admitted (${jobs} jobs)`, pods, admittedMs);
  report("pods admitted and created", pods, createdMs);
  if (times !== null) for (const line of profileLines("planner, workers and clusters", times)) print(line);
  return ratios;
}

async function kubeconfigsOf(bench: AdmitBench, parts: AsyncDisposableStack): Promise<readonly string[]> {
  if (bench.kubeconfig.length > 0) return bench.kubeconfig.map((file) => readFileSync(file, "utf8"));
  return simulatedKubeconfigs(parts);
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
