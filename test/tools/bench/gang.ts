import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import type { KubeClient } from "../../../src/adapters/cluster/client.ts";
import type { Db } from "../../../src/adapters/store/db/db.ts";
import type { SentJob } from "../../../src/core/job/request/sent.ts";
import { systemClock } from "../../../src/runtime/clock.ts";
import { controlPlaneBuilt } from "../../kube/build.ts";
import { waitForCount, waitUntil } from "../../support/bounded.ts";
import type { BenchCluster } from "./bench-cluster.ts";
import { benchClusters, type ClusterSource } from "./bench-clusters.ts";
import { benchJob } from "./bench-jobs.ts";
import { countedDb } from "./counted-db.ts";
import { createLoop } from "./create-loop.ts";
import { profileLines, type Rate, reportLine, startProfile } from "./measure.ts";
import { startScheduling } from "./scheduling.ts";
import { scratchDb } from "./scratch-db.ts";

export type GangBench = {
  /** The file of a cluster. Null: an API server of the bench's own if one is built, otherwise a simulated cluster. */
  readonly kubeconfig: string | null;
  /** Uses a simulated cluster even if an API server is built. */
  readonly simulated: boolean;
  readonly replicas: number;
  /** The number of finished jobs whose cost is measured. */
  readonly finished: number;
  /** How long each look at the idle service takes. */
  readonly idleSeconds: number;
  readonly profile: boolean;
};

const GPUS_PER_NODE = 64;
const POLL_MS = 10;
const BATCH = 500;
const SETTLE_MS = 2_000;
const SETTLED_STATEMENTS = 100;
const SETTLE_LOOKS_MAX = 30;
const clock = systemClock();

/**
 * Measures how fast the pods of one large gang are created, how many writes that takes, and what finished jobs cost.
 * Returns the figures by name.
 */
export async function benchGang(
  bench: GangBench,
  print: (line: string) => void,
): Promise<Readonly<Record<string, number>>> {
  await using parts = new AsyncDisposableStack();
  const nodes = { count: Math.ceil(bench.replicas / GPUS_PER_NODE) + 1, gpus: GPUS_PER_NODE };
  const { clusters, run } = await benchClusters(sourceOf(bench), nodes, parts);
  const [cluster] = clusters;
  assert.ok(cluster !== undefined);
  const db = countingDb(await scratchDb(parts));
  const writes = { kubernetes: 0 };
  const service = await startScheduling({
    db,
    clusters: [cluster],
    clock,
    random: randomBytes,
    quota: bench.replicas,
    wrapClient: (client) => countingClient(client, writes),
  });
  parts.defer(() => service.close());
  service.start();
  const before = await idle(db, bench.idleSeconds);
  const floor = await createLoop([cluster], { jobs: 1, pods: bench.replicas }, clock);
  const stop = bench.profile ? await startProfile() : null;
  writes.kubernetes = 0;
  const gang = await measureGang({ bench, cluster, run, submit: service.submit });
  const perPod = writes.kubernetes / bench.replicas;
  print(`${reportLine(gang, floor)}, ${(floor.perSecond / gang.perSecond).toFixed(2)} times as long`);
  print(`Kubernetes writes per pod            ${perPod.toFixed(3)}   floor 1`);
  if (stop !== null) for (const line of profileLines("planner, workers and cluster", await stop())) print(line);
  await service.cancel({ namespace: run, name: "gang" });
  await waitUntil("the gang's pods are gone", async () => (await cluster.countPods()) === 0, { pollMs: POLL_MS });
  await finish(service, db, { count: bench.finished, namespace: run });
  const after = await idle(db, bench.idleSeconds);
  print(
    `idle with ${bench.finished} finished jobs        ${after.statements.toFixed(1)} statements/s, ` +
      `of them ${after.changes} changes of jobs in all, ${after.cpuMs.toFixed(1)} ms of CPU/s   ` +
      `with none ${before.statements.toFixed(1)} statements/s, ${before.cpuMs.toFixed(1)} ms of CPU/s`,
  );
  return {
    "gang pods created": gang.perSecond / floor.perSecond,
    "writes per pod": perPod,
    "changes of finished jobs": after.changes,
  };
}

function sourceOf({ kubeconfig, simulated }: GangBench): ClusterSource {
  if (kubeconfig !== null) return { kind: "files", files: [kubeconfig] };
  return { kind: simulated || !controlPlaneBuilt() ? "simulated" : "planes", count: 1 };
}

async function measureGang(of: {
  readonly bench: GangBench;
  readonly cluster: BenchCluster;
  readonly run: string;
  readonly submit: (jobs: readonly SentJob[]) => Promise<void>;
}): Promise<Rate> {
  const { replicas } = of.bench;
  const startMs = clock.monotonicMs();
  await of.submit([benchJob({ namespace: of.run, name: "gang", replicas })]);
  await waitForCount("pods of the gang", () => of.cluster.countPods(), { wanted: replicas, pollMs: POLL_MS });
  return { name: `gang of ${replicas}, from submit`, perSecond: (replicas * 1000) / (clock.monotonicMs() - startMs) };
}

type Service = Awaited<ReturnType<typeof startScheduling>>;

/** Adds finished jobs: each names a cluster that does not exist, and is cancelled while it waits. */
async function finish(
  service: Service,
  db: Db,
  { count, namespace }: { readonly count: number; readonly namespace: string },
) {
  for (let made = 0; made < count; made += BATCH) {
    const names = Array.from({ length: Math.min(BATCH, count - made) }, (_, at) => `ended-${made + at}`);
    await service.submit(names.map((name) => benchJob({ namespace, name, replicas: 1, clusters: ["nowhere"] })));
    await Promise.all(names.map((name) => service.cancel({ namespace, name })));
  }
  const left = async () => (await db.query<{ count: number }>(OPEN))[0]?.count ?? 0;
  await waitForCount("finished jobs", async () => count - (await left()), { wanted: count, pollMs: POLL_MS });
}

/** Counts jobs that have not ended, and admissions that may still have objects in a cluster. */
const OPEN = `
select (select count(*) from jobs where completion_ms is null)::int
     + (select count(*) from admissions where gone_ms is null)::int as count`;

type CountingDb = Db & { readonly statements: () => number };

/** The statements and CPU time of an idle service, by second. It first lets the service finish its earlier work. */
async function idle(db: CountingDb, seconds: number) {
  const changes = async () =>
    (await db.query<{ count: number }>("select count(*)::int as count from job_changes"))[0]?.count ?? 0;
  let looks = 0;
  let counted = db.statements();
  const settled = () => {
    const perLook = db.statements() - counted;
    counted += perLook;
    looks += 1;
    return (looks > 1 && perLook < SETTLED_STATEMENTS) || looks > SETTLE_LOOKS_MAX;
  };
  await waitUntil("the service is idle", settled, { pollMs: SETTLE_MS });
  const seen = await changes();
  const from = { statements: db.statements(), cpu: process.cpuUsage() };
  await clock.sleep(seconds * 1000);
  const used = process.cpuUsage(from.cpu);
  const statements = (db.statements() - from.statements) / seconds;
  return { statements, cpuMs: (used.user + used.system) / 1000 / seconds, changes: (await changes()) - seen };
}

function countingDb(db: Db): CountingDb {
  let count = 0;
  const counted = countedDb(db, ({ kind }) => {
    if (kind === "statement") count += 1;
  });
  return { ...counted, statements: () => count };
}

function countingClient(client: KubeClient, writes: { kubernetes: number }): KubeClient {
  return {
    ...client,
    request: (request, signal) => {
      if (request.method !== "GET") writes.kubernetes += 1;
      return client.request(request, signal);
    },
  };
}
