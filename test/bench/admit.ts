import { randomBytes, randomUUID } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Db } from "../../src/adapters/store/db.ts";
import { openPglite } from "../../src/adapters/store/pglite.ts";
import type { SentJob } from "../../src/core/job/sent.ts";
import { systemClock } from "../../src/runtime/clock.ts";
import { BenchCluster, podTemplate } from "./bench-cluster.ts";
import { simulatedKubeconfigs } from "./cluster-servers.ts";
import { profileLines, type Rate, reportLine, startProfile } from "./measure.ts";
import { startScheduling } from "./scheduling.ts";

export type AdmitBench = {
  /** Files; none: two simulated clusters. */
  readonly kubeconfig: readonly string[];
  /** Jobs of one pod, and gangs of four. */
  readonly singles: number;
  readonly gangs: number;
  /** Of each cluster. */
  readonly nodes: number;
  readonly profile: boolean;
};

const GANG = 4;
const GPUS_PER_NODE = 64;
const POLL_MS = 50;
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
  const floor = await createLoop(clusters, pods);
  const directory = mkdtempSync(join(tmpdir(), "gangway-bench-"));
  parts.defer(() => rmSync(directory, { recursive: true, force: true }));
  const db = await openPglite(join(directory, "db"));
  parts.defer(() => db.close());
  const service = await startScheduling({ db, clusters, clock, random: randomBytes, quota: pods });
  parts.defer(() => service.close());
  await service.submit(jobsOf(bench, run));
  const stop = bench.profile ? await startProfile() : null;
  const startMs = clock.monotonicMs();
  service.start();
  const jobs = bench.singles + bench.gangs;
  const admittedMs = await reached(() => admittedJobs(db), jobs, startMs);
  const createdMs = await reached(() => countPods(clusters), pods, startMs);
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

/** The floor: the same pods, made by nothing but calls; then they are removed again. */
async function createLoop(clusters: readonly BenchCluster[], pods: number): Promise<Rate> {
  const startMs = clock.monotonicMs();
  const share = Math.ceil(pods / clusters.length);
  await Promise.all(clusters.map((cluster) => cluster.createPods(share)));
  const perSecond = (share * clusters.length * 1000) / (clock.monotonicMs() - startMs);
  await Promise.all(clusters.map((cluster) => cluster.removePods()));
  await reached(async () => ((await countPods(clusters)) === 0 ? 1 : 0), 1, startMs);
  return { name: "bare create loop", perSecond };
}

async function reached(count: () => Promise<number>, wanted: number, startMs: number): Promise<number> {
  while ((await count()) < wanted) await clock.sleep(POLL_MS);
  return clock.monotonicMs() - startMs;
}

async function countPods(clusters: readonly BenchCluster[]): Promise<number> {
  const counts = await Promise.all(clusters.map((cluster) => cluster.countPods()));
  return counts.reduce((sum, count) => sum + count, 0);
}

async function admittedJobs(db: Db): Promise<number> {
  const [row] = await db.query<{ count: number }>("select count(distinct job_uid)::int as count from admissions");
  return row?.count ?? 0;
}

function jobsOf({ singles, gangs }: AdmitBench, namespace: string): readonly SentJob[] {
  const job = (name: string, replicas: number): SentJob => ({
    namespace,
    name,
    generateName: "",
    labels: {},
    annotations: {},
    spec: {
      kind: "Job",
      replicaSpecs: { Worker: { replicas, template: podTemplate() } },
      runPolicy: { schedulingPolicy: { queue: "bench", scheduleTimeoutSeconds: 0 } },
    },
  });
  return [
    ...Array.from({ length: singles }, (_, at) => job(`single-${at}`, 1)),
    ...Array.from({ length: gangs }, (_, at) => job(`gang-${at}`, GANG)),
  ];
}
