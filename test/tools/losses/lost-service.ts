import { randomBytes } from "node:crypto";
import { connect, type GangwayClient } from "../../../src/cli/rpc/client.ts";
import { ClusterService } from "../../../src/gen/gangway/v1/cluster_service_pb.ts";
import type { Job } from "../../../src/gen/gangway/v1/job_pb.ts";
import { JobService } from "../../../src/gen/gangway/v1/job_service_pb.ts";
import { QueueService } from "../../../src/gen/gangway/v1/queue_service_pb.ts";
import { createDatabase } from "../../support/postgres.ts";
import { RedisServer } from "../../support/redis-server.ts";
import { ServeChild } from "../../support/serve-process.ts";
import { type FaultyPlane, GPU, PRODUCT } from "./faulty-plane.ts";

const FLAVOR = "gpu/h100";
export const NAMESPACE = "training";

export type ServiceTimes = {
  readonly lostAfterSeconds: number;
  readonly moveAfterSeconds: number;
  readonly leaseSeconds: number;
};

/** The service as a team runs it: one process with api and planner, and workers, over PostgreSQL and Redis. */
export class LostService {
  readonly client: GangwayClient;
  readonly workers: readonly ServeChild[];

  private constructor(client: GangwayClient, workers: readonly ServeChild[]) {
    this.client = client;
    this.workers = workers;
  }

  /** All of it ends with the parts. */
  static async start(
    parts: AsyncDisposableStack,
    of: { readonly postgres: string; readonly planes: readonly FaultyPlane[]; readonly times: ServiceTimes },
  ): Promise<LostService> {
    const { url, drop } = await createDatabase(of.postgres);
    parts.defer(drop);
    const redis = await RedisServer.start();
    parts.defer(() => redis.stop());
    const env = {
      DATABASE_URL: url,
      REDIS_URL: redis.url,
      NAMESPACES: "open",
      GANGWAY_CREDENTIALS_KEY: randomBytes(32).toString("base64"),
      GANGWAY_LOG_LEVEL: "error",
      GANGWAY_LEASE_SECONDS: String(of.times.leaseSeconds),
      GANGWAY_CLUSTER_LOST_SECONDS: String(of.times.lostAfterSeconds),
      GANGWAY_CLUSTER_MOVE_SECONDS: String(of.times.moveAfterSeconds),
    };
    const children = ["api,planner", "worker", "worker"].map((roles) => new ServeChild(roles, env));
    parts.defer(async () => void (await Promise.all(children.map((child) => child.end("SIGKILL")))));
    await Promise.all(children.map((child) => child.serving()));
    const stop = new AbortController();
    const client = connect(children[0]?.address ?? "", stop.signal);
    parts.defer(() => client.close());
    const service = new LostService(client, children.slice(1));
    const quotas = [{ flavor: FLAVOR, resource: GPU, nominal: 1_000_000n }];
    await client.call(QueueService.method.updateQueue, { queue: { name: "default", quotas } });
    for (const { name, kubeconfig } of of.planes) {
      const flavors = [{ name: FLAVOR, resource: GPU, nodeLabels: { [PRODUCT]: "h100" } }];
      const credentials = { kubeconfig: { case: "text", value: kubeconfig } as const };
      await client.call(ClusterService.method.registerCluster, { cluster: { name, flavors }, credentials });
    }
    return service;
  }

  async states(): Promise<ReadonlyMap<string, number>> {
    const { clusters } = await this.client.call(ClusterService.method.listClusters, {});
    return new Map(clusters.map(({ name, state }) => [name, state]));
  }

  /** All jobs, by name. */
  async jobs(): Promise<ReadonlyMap<string, Job>> {
    const all = new Map<string, Job>();
    for (let pageToken = ""; ; ) {
      const page = await this.client.call(JobService.method.listJobs, { pageSize: 1_000, pageToken });
      for (const job of page.jobs) all.set(job.metadata?.name ?? "", job);
      pageToken = page.nextPageToken;
      if (pageToken === "") return all;
    }
  }

  /** The GPUs that are in use by the ledger. */
  async used(): Promise<number> {
    const { queue } = await this.client.call(QueueService.method.getQueue, { name: "default" });
    return Number(queue?.use?.used[FLAVOR] ?? 0n);
  }
}
