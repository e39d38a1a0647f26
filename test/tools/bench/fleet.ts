/** A whole service in processes of its own, on one database, one Redis and one simulated cluster. */
import type { JsonObject as ProtoJson } from "@bufbuild/protobuf";
import { sealKubeconfig } from "../../../src/adapters/cluster/credentials.ts";
import type { Db } from "../../../src/adapters/store/db/db.ts";
import { createStore } from "../../../src/adapters/store/store.ts";
import { connect, type GangwayClient } from "../../../src/cli/rpc/client.ts";
import { CleanPodPolicy } from "../../../src/gen/gangway/v1/job_pb.ts";
import { JobService } from "../../../src/gen/gangway/v1/job_service_pb.ts";
import { systemClock } from "../../../src/runtime/clock.ts";
import { waitForCount } from "../../support/bounded.ts";
import { OWN_KINDS } from "../../support/kinds.ts";
import { databaseUrl } from "../../support/postgres.ts";
import { RedisServer } from "../../support/redis-server.ts";
import { ServeChild } from "../../support/serve-process.ts";
import { GPU, podTemplate, RUN_LABEL } from "./bench-cluster.ts";
import { benchClusters } from "./bench-clusters.ts";
import { scratchServerDb } from "./scratch-db.ts";
import { StatementCounter } from "./statement-counter.ts";

const KEY = Buffer.alloc(32, 7);
const FLAVOR = "gpu/bench";
const GPUS_PER_NODE = 64;
const BATCH = 500;

export type BenchFleet = {
  readonly db: Db;
  /** Counts the statements of all processes. */
  readonly statements: StatementCounter;
  readonly namespace: string;
  /** Starts a process with these roles. It ends with the parts, unless it has ended before. */
  readonly serve: (roles: string) => Promise<ServeChild>;
  readonly client: (process: ServeChild) => GangwayClient;
};

/** A service without processes. Its cluster has room for so many pods of one GPU, and its queue quota for them. */
export async function startFleet(
  parts: AsyncDisposableStack,
  of: { readonly postgres: string; readonly pods: number },
): Promise<BenchFleet> {
  const { url, db } = await scratchServerDb(parts, of.postgres);
  const redis = await RedisServer.start();
  parts.defer(() => redis.stop());
  const nodes = { count: Math.ceil(of.pods / GPUS_PER_NODE) + 1, gpus: GPUS_PER_NODE };
  const { clusters, run } = await benchClusters({ kind: "simulated", count: 1 }, nodes, parts);
  const clock = systemClock();
  const options = { clock, kinds: OWN_KINDS, openNamespaces: true, defaultQueue: "bench", onAppended: () => {} };
  const store = createStore(db, options);
  const quotas = [{ flavor: FLAVOR, resource: GPU, nominal: of.pods }];
  for (const name of ["bench", "default"]) {
    await store.admin.ensureQueue({ name, strategy: "BEST_EFFORT_FIFO", quotas: name === "bench" ? quotas : [] });
  }
  for (const { name, kubeconfig } of clusters) {
    const flavors = [{ name: FLAVOR, resource: GPU, nodeLabels: { [RUN_LABEL]: run } }];
    await store.clusters.register({
      name,
      labels: {},
      flavors,
      credentials: sealKubeconfig({ name: "default", bytes: KEY }, name, kubeconfig),
    });
  }
  const { hostname, port } = new URL(url);
  const statements = await StatementCounter.start({ host: hostname, port: Number(port) || 5432 });
  parts.defer(() => statements.stop());
  const counted = new URL(databaseUrl(url, new URL(url).pathname.slice(1)));
  counted.host = statements.address;
  const env = {
    DATABASE_URL: counted.href,
    REDIS_URL: redis.url,
    NAMESPACES: "open",
    GANGWAY_CREDENTIALS_KEY: KEY.toString("base64"),
    GANGWAY_LOG_LEVEL: "warn",
  };
  return {
    db,
    statements,
    namespace: run,
    serve: async (roles) => {
      const child = new ServeChild(roles, env);
      parts.defer(async () => {
        if (!child.hasEnded) await child.end("SIGTERM");
      });
      await child.serving();
      return child;
    },
    client: (process) => {
      const closing = new AbortController();
      const client = connect(process.address ?? "", closing.signal);
      parts.defer(() => {
        closing.abort();
        client.close();
      });
      return client;
    },
  };
}

/** The request for a job of one pod, which runs so long on a simulated cluster. */
export function jobRequest(of: {
  readonly namespace: string;
  readonly name: string;
  readonly runs: string;
  readonly queue: string;
}) {
  const replicaSpecs = { Worker: { replicas: 1, template: podTemplate(of.runs) as ProtoJson } };
  const runPolicy = { cleanPodPolicy: CleanPodPolicy.ALL, schedulingPolicy: { queue: of.queue } };
  const metadata = { name: of.name, namespace: of.namespace };
  return { job: { metadata, spec: { kind: "Job", replicaSpecs, runPolicy } } };
}

/** Submits jobs of one pod, which runs so long, and waits until they are in this phase. */
export async function submitJobs(
  { db, namespace }: BenchFleet,
  client: GangwayClient,
  of: { readonly prefix: string; readonly count: number; readonly runs: string; readonly phase: string },
): Promise<void> {
  for (let made = 0; made < of.count; made += BATCH) {
    const requests = Array.from({ length: Math.min(BATCH, of.count - made) }, (_, at) =>
      jobRequest({ namespace, name: `${of.prefix}-${made + at}`, runs: of.runs, queue: "bench" }),
    );
    await client.call(JobService.method.batchCreateJobs, { requests });
  }
  const count = async () => {
    const [row] = await db.query<{ count: number }>(IN_PHASE, [`${of.prefix}-%`, of.phase]);
    return row?.count ?? 0;
  };
  await waitForCount(`jobs in phase ${of.phase}`, count, { wanted: of.count });
}

const IN_PHASE = "select count(*)::int as count from jobs where name like $1 and phase = $2";
