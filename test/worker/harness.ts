import assert from "node:assert/strict";
import type { KubeClient } from "../../src/adapters/cluster/client.ts";
import { type Cluster, connectCluster } from "../../src/adapters/cluster/cluster.ts";
import { type Clusters, createClusters } from "../../src/adapters/cluster/clusters.ts";
import type { SimCluster } from "../../src/adapters/simcluster/sim-cluster.ts";
import type { Job } from "../../src/core/job/job.ts";
import type { RunPolicy } from "../../src/core/job/spec.ts";
import { PENDING_LIMITS, type PendingLimits } from "../../src/core/pods/read/read-pending.ts";
import type { Clock } from "../../src/runtime/clock.ts";
import { arrayAt, objectAt, stringAt } from "../../src/runtime/json.ts";
import type { FailureLogPorts } from "../../src/worker/failure-logs.ts";
import type { WorkerClusters } from "../../src/worker/ports.ts";
import { createWorker, type Worker } from "../../src/worker/worker.ts";
import { clock, INSTALLATION, seededRandom } from "../cluster/harness.ts";
import { jobOf } from "../core/reconcile/world.ts";
import { OWN_KINDS } from "../support/kinds.ts";
import type { MemoryStore } from "./memory-store.ts";

let counter = 0;

export type GangOptions = {
  readonly kind?: "Job" | "PyTorchJob";
  readonly workers?: number;
  /** How long each pod runs: `30ms`, `forever`. */
  readonly run?: string;
  readonly runPolicy?: Partial<Pick<RunPolicy, "cleanPodPolicy" | "backoffLimit" | "activeDeadlineSeconds">>;
};

/** A waiting job whose pods start and end quickly. */
export function gangOf({ kind = "Job", workers = 4, run = "30ms", runPolicy = {} }: GangOptions = {}): Job {
  const name = `gang-${counter++}`;
  const container = kind === "PyTorchJob" ? "pytorch" : "main";
  const annotations = {
    "sim.gangway.dev/pull": "1ms",
    "sim.gangway.dev/start": "1ms",
    "sim.gangway.dev/run": run,
    "sim.gangway.dev/termination-grace": "1ms",
  };
  const template = { metadata: { annotations }, spec: { containers: [{ name: container, image: "busybox" }] } };
  const { backoffLimit, ...policy } = { cleanPodPolicy: "All" as const, backoffLimit: 3, ...runPolicy };
  const sent = {
    kind,
    replicaSpecs: {
      ...(kind === "PyTorchJob" ? { Master: { replicas: 1, template } } : {}),
      Worker: { replicas: workers, template },
    },
    runPolicy: {
      cleanPodPolicy: policy.cleanPodPolicy,
      ...(backoffLimit === null ? {} : { backoffLimit }),
      ...(policy.activeDeadlineSeconds ? { activeDeadlineSeconds: policy.activeDeadlineSeconds } : {}),
    },
  };
  return jobOf(sent, { uid: `uid-of-${name}`, name, namespace: "default" });
}

export type Running = {
  readonly worker: Worker;
  readonly clusters: Clusters;
  readonly cluster: Cluster;
  readonly errors: unknown[];
  readonly plannerWakes: () => number;
  /** Ends the worker and its connections, as a crash between any two calls would. */
  readonly stop: () => Promise<void>;
};

export type WorkerSettings = {
  /** Wraps the worker's clusters. `stop` ends the worker at once. */
  readonly wrap?: (clusters: WorkerClusters, stop: () => void) => WorkerClusters;
  readonly time?: Clock;
  readonly gangScheduler?: "volcano" | "scheduler-plugins" | null;
  readonly pending?: PendingLimits;
  /** Where the last lines of failed containers are kept. Omitted: they are not. */
  readonly failureLogs?: Omit<FailureLogPorts, "open">;
  /** Wraps the reads of logs. */
  readonly wrapOpen?: (open: FailureLogPorts["open"]) => FailureLogPorts["open"];
};

/** Clusters for jobs that have no pods, and make none. */
export const NO_PODS: WorkerClusters = {
  observe: () => [],
  listJob: async () => [],
  act: async () => assert.fail("no job has pods"),
  claim: async () => assert.fail("no job has pods"),
  anchorLives: async () => false,
  seenJobs: () => [],
  namespaceOf: () => null,
};

/** A worker with the real cluster adapter. */
export function runWorker(sim: SimCluster, store: MemoryStore, settings: WorkerSettings = {}): Running {
  const { wrap = (clusters) => clusters, time = clock, gangScheduler = null, pending = PENDING_LIMITS } = settings;
  const { failureLogs, wrapOpen = (open) => open } = settings;
  const stopping = new AbortController();
  const errors: unknown[] = [];
  const term = { name: `worker ${counter++}`, signal: new AbortController().signal };
  let plannerWakes = 0;
  const cluster = connectCluster({
    name: "sim",
    kubeconfig: sim.kubeconfig(),
    installation: INSTALLATION,
    clock: time,
    random: seededRandom(5),
    createNamespaces: false,
    gangScheduler,
    onJobChanged: (jobUid) => worker.wake(jobUid),
    onCapacity: async () => null,
    onError: (error) => errors.push(error),
  });
  const clusters = createClusters([cluster]);
  const worker = createWorker(
    {
      clock: time,
      store: store.port(),
      clusters: wrap(clusters, () => stopping.abort()),
      member: { term: () => term },
      ...(failureLogs === undefined ? {} : { failureLogs: { ...failureLogs, open: wrapOpen(clusters.logs.open) } }),
      wakePlanner: () => {
        plannerWakes += 1;
      },
    },
    {
      config: {
        kinds: OWN_KINDS,
        build: { installation: INSTALLATION, clusterDomain: "", initImage: "alpine:3.20", kubectlImage: "kubectl:1" },
        pending,
      },
      onError: (error) => errors.push(error),
    },
  );
  cluster.start();
  const ended = worker.run(stopping.signal).then(() => store.free(term.name));
  return {
    worker,
    clusters,
    cluster,
    errors,
    plannerWakes: () => plannerWakes,
    async stop() {
      stopping.abort();
      await ended;
      await clusters.close();
    },
  };
}

export type Left = Readonly<Record<"pods" | "services" | "configmaps", readonly string[]>>;

/** The objects that the API server has of a job, by name, whatever the reflectors show. */
export async function leftOf(client: KubeClient, jobUid: string): Promise<Left> {
  const list = async (resource: string) => {
    const query = { labelSelector: `gangway.dev/job-uid=${jobUid}` };
    const listed = await client.request({ method: "GET", path: `/api/v1/${resource}`, query });
    if (listed.kind === "failed") throw new Error(listed.message);
    return arrayAt(listed.object, "items").map((item) => {
      const metadata = objectAt(item, "metadata");
      return `${stringAt(metadata, "name")} ${stringAt(metadata, "uid")}`;
    });
  };
  return { pods: await list("pods"), services: await list("services"), configmaps: await list("configmaps") };
}

export function count({ pods, services, configmaps }: Left): number {
  return pods.length + services.length + configmaps.length;
}
