/** The state that every stretch of a run begins with, and what must be left after everything was removed. */

import { status } from "@grpc/grpc-js";
import { DEMO_CLUSTERS, DEMO_QUEUES } from "../../../src/adapters/simcluster/demo-clusters.ts";
import { startSimCluster } from "../../../src/adapters/simcluster/sim-cluster.ts";
import { PLAIN } from "../../../src/cli/rpc/channel.ts";
import { connect, type GangwayClient } from "../../../src/cli/rpc/client.ts";
import { AccessService } from "../../../src/gen/gangway/v1/access_service_pb.ts";
import { ClusterService } from "../../../src/gen/gangway/v1/cluster_service_pb.ts";
import { JobService } from "../../../src/gen/gangway/v1/job_service_pb.ts";
import { NamespaceService } from "../../../src/gen/gangway/v1/namespace_service_pb.ts";
import { PriorityClassService } from "../../../src/gen/gangway/v1/priority_class_service_pb.ts";
import { QueueService } from "../../../src/gen/gangway/v1/queue_service_pb.ts";
import { ResourceManager } from "../../../src/gen/gangway/v1/resource_manager_pb.ts";
import { RuntimeService } from "../../../src/gen/gangway/v1/runtime_service_pb.ts";
import { systemClock } from "../../../src/runtime/clock.ts";
import { waitUntil } from "../../support/bounded.ts";
import type { Subject } from "./subject.ts";

/**
 * Two simulated clusters by their kubeconfigs. They are registered as real ones: those that an embedded service
 * simulates itself go away once a call registers or deletes a cluster.
 */
export async function startClusters(parts: AsyncDisposableStack): Promise<ReadonlyMap<string, string>> {
  const started = await Promise.all(
    DEMO_CLUSTERS.map(async ({ name, nodes }) => {
      const cluster = await startSimCluster({ name, nodes, directory: null, clock: systemClock() });
      parts.defer(() => cluster.close());
      return [name, cluster.kubeconfig()] as const;
    }),
  );
  return new Map(started);
}

/** Restores queues, clusters and pools, which calls of the fuzz change and delete. */
export async function restore(client: GangwayClient, kubeconfigs: ReadonlyMap<string, string>): Promise<void> {
  await forgetClusters(client);
  for (const { name, labels, flavors } of DEMO_CLUSTERS) {
    const kubeconfig = kubeconfigs.get(name);
    if (kubeconfig === undefined) continue;
    const cluster = { name, labels, flavors: flavors.map((flavor) => ({ ...flavor })) };
    const credentials = { kubeconfig: { case: "text", value: kubeconfig } } as const;
    await client.call(ClusterService.method.registerCluster, { cluster, credentials });
  }
  await restoreQueues(client);
  for (const resourceNamespace of ["ex:warehouse", "ex:cache", "ex:small"]) {
    await client.call(ResourceManager.method.registerResourceQuota, { resourceNamespace, quota: 20n });
  }
  const { pools } = await client.call(ResourceManager.method.listPools, { pageSize: 1000 });
  for (const { name, freeze } of pools) {
    if (freeze !== undefined) await client.call(ResourceManager.method.unfreezePool, { name });
  }
}

export async function forgetClusters(client: GangwayClient): Promise<void> {
  const { clusters } = await client.call(ClusterService.method.listClusters, {});
  for (const { name } of clusters)
    await client.call(ClusterService.method.deleteCluster, { name, forget: true, confirm: name });
}

async function restoreQueues(client: GangwayClient): Promise<void> {
  const { queues } = await client.call(QueueService.method.listQueues, {});
  for (const { name } of queues) await client.call(QueueService.method.updateQueue, { queue: { name } });
  for (const { name } of queues) await client.call(QueueService.method.unfreezeQueue, { name });
  const { grants } = await client.call(QueueService.method.listQuotaGrants, {});
  for (const { queue, flavor } of grants) await client.call(QueueService.method.revokeQuotaGrant, { queue, flavor });
  for (const { name } of queues) {
    if (name !== "default") await client.call(QueueService.method.deleteQueue, { name });
  }
  const hasDefault = queues.some(({ name }) => name === "default");
  for (const { name, quotas } of DEMO_QUEUES) {
    const queue = { name, quotas: quotas.map((quota) => ({ ...quota, nominal: BigInt(quota.nominal) })) };
    const { method } = QueueService;
    await (name === "default" && hasDefault
      ? client.call(method.updateQueue, { queue })
      : client.call(method.createQueue, { queue }));
  }
}

/** Ends the tokens of robots, without which namespaces can be deleted. */
async function revokeRobots(client: GangwayClient): Promise<void> {
  await eachPage(async (pageToken) => {
    const { robots, nextPageToken } = await client.call(AccessService.method.listRobotTokens, { pageToken });
    for (const { name, revokeTime } of robots) {
      if (revokeTime === undefined) await client.call(AccessService.method.revokeRobotToken, { name });
    }
    return nextPageToken;
  });
}

/** Deletes every job, token and namespace, and waits until nothing of them is left. */
export async function clear(client: GangwayClient, subject: Subject): Promise<void> {
  // Calls may have given a cluster credentials that lead nowhere. The jobs there would wait for it for ever.
  await forgetClusters(client);
  await eachPage(async (pageToken) => {
    const { jobs, nextPageToken } = await client.call(JobService.method.listJobs, { pageSize: 200, pageToken });
    for (const { metadata } of jobs) {
      const job = { namespace: metadata!.namespace, name: metadata!.name };
      await client.call(JobService.method.deleteJob, job).catch(ignoreNotFound);
    }
    return nextPageToken;
  });
  await waitUntil(
    "every deleted job is gone",
    async () => (await leftOf(subject, ["jobs", "admission_clusters"])) === "",
  );
  await eachPage(async (pageToken) => {
    const listed = await client.call(ResourceManager.method.listAllocations, { pageSize: 200, pageToken });
    for (const { resourceNamespace, allocationToken } of listed.allocations) {
      const token = { resourceNamespace, allocationToken, reason: "the fuzz clears its tokens" };
      await client.call(ResourceManager.method.forceRelease, token);
    }
    return listed.nextPageToken;
  });
  const { pools } = await client.call(ResourceManager.method.listPools, { pageSize: 1000 });
  for (const { name, queue, quota } of pools) {
    const unqueued = { resourceNamespace: name, quota: quota ?? 2n ** 53n - 1n, queue: "" };
    if (queue !== "") await client.call(ResourceManager.method.registerResourceQuota, unqueued);
  }
  const { priorityClasses } = await client.call(PriorityClassService.method.listPriorityClasses, {});
  for (const { name } of priorityClasses) {
    await client.call(PriorityClassService.method.deletePriorityClass, { name });
  }
  const { runtimes } = await client.call(RuntimeService.method.listRuntimes, { pageSize: 1000 });
  for (const { name, shipped } of runtimes) {
    if (!shipped) await client.call(RuntimeService.method.deleteRuntime, { name });
  }
  const { limits } = await client.call(NamespaceService.method.listTenantLimits, {});
  for (const { tenant } of limits) await client.call(NamespaceService.method.setTenantLimits, { limits: { tenant } });
  await revokeRobots(client);
  const { namespaces } = await client.call(NamespaceService.method.listNamespaces, {});
  for (const { name } of namespaces) await client.call(NamespaceService.method.deleteNamespace, { name });
}

/** A worker may have removed a job that was being deleted. */
function ignoreNotFound(error: unknown): void {
  if ((error as { readonly code?: number }).code !== status.NOT_FOUND) throw error;
}

async function eachPage(read: (pageToken: string) => Promise<string>): Promise<void> {
  for (let token = ""; ; ) {
    token = await read(token);
    if (token === "") return;
  }
}

/** Rows that must not be there once everything was removed. */
const LEFT: Readonly<Record<string, string>> = {
  jobs: "select count(*)::int as n from jobs",
  namespaces: "select count(*)::int as n from namespaces",
  refusals: "select count(*)::int as n from refusals",
  admission_clusters: "select count(*)::int as n from admission_clusters",
  "admissions that hold something":
    "select count(*)::int as n from admissions where state = 'live' or tokens_released_ms is null or gone_ms is null",
  "tokens that are held": "select count(*)::int as n from allocations where released_ms is null",
  "sums of tokens": "select count(*)::int as n from allocation_sums where used <> 0",
};

/** Lists the rows that are left, such as `3 jobs`. Empty: none. */
export async function leftOf(subject: Subject, names: readonly string[] = Object.keys(LEFT)): Promise<string> {
  const left: string[] = [];
  for (const name of names) {
    const [row] = await subject.query(LEFT[name] ?? "");
    if (row?.["n"] !== 0) left.push(`${row?.["n"]} ${name}`);
  }
  return left.join(", ");
}

/** A client of the service that fails calls like any other. `token` null: it shows none. */
export function clientOf(subject: Subject, parts: AsyncDisposableStack, token: string | null = null): GangwayClient {
  const closed = new AbortController();
  const security = token === null ? PLAIN : { tls: null, token: async () => token };
  const client = connect(subject.address, closed.signal, security);
  parts.defer(() => {
    closed.abort();
    client.close();
  });
  return client;
}

/**
 * Calls that any healthy service answers with OK, about a queue, a pool and a namespace of this name. Throws what the
 * service answers instead.
 */
export async function probe(client: GangwayClient, name: string): Promise<void> {
  await client.call(QueueService.method.createQueue, { queue: { name, quotas: [] } });
  await client.call(QueueService.method.getQueue, { name });
  const token = { resourceNamespace: name, allocationToken: "probe" };
  await client.call(ResourceManager.method.registerResourceQuota, { resourceNamespace: name, quota: 1n });
  await client.call(ResourceManager.method.allocateResource, token);
  await client.call(ResourceManager.method.releaseResource, token);
  await client.call(ResourceManager.method.deletePool, { name });
  // Calls may have deleted the default queue, and the policy of another namespace or the limits of another project may
  // refuse the job.
  await client.call(NamespaceService.method.createNamespace, { namespace: { name, project: name } });
  const template = { spec: { containers: [{ name: "main", image: "x" }] } };
  const runPolicy = { schedulingPolicy: { queue: name } };
  const spec = { kind: "Job", replicaSpecs: { Worker: { template } }, runPolicy };
  await client.call(JobService.method.createJob, {
    job: { metadata: { name, namespace: name }, spec },
    validateOnly: true,
  });
  await client.call(NamespaceService.method.deleteNamespace, { name });
  await client.call(QueueService.method.deleteQueue, { name });
  await client.call(JobService.method.listJobs, { pageSize: 1 });
}
