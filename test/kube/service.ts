/** Store, counters, planner and worker of one process, with clusters from their kubeconfigs. */

import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { type Cluster, connectCluster } from "../../src/adapters/cluster/cluster.ts";
import { createClusters } from "../../src/adapters/cluster/clusters.ts";
import { installationId } from "../../src/adapters/store/db/installation.ts";
import { openPglite } from "../../src/adapters/store/db/pglite.ts";
import { createStore } from "../../src/adapters/store/store.ts";
import type { Job } from "../../src/core/job/job.ts";
import type { Placement } from "../../src/core/job/placement/placement.ts";
import type { SentJob } from "../../src/core/job/request/sent.ts";
import type { QueuePolicy } from "../../src/core/plan/model/queue-policy.ts";
import type { ClusterFlavor } from "../../src/core/plan/model/snapshot.ts";
import type { PodConfig } from "../../src/core/pods/pod-config.ts";
import type { PendingLimits } from "../../src/core/pods/read/read-pending.ts";
import { createIntake } from "../../src/intake/intake.ts";
import { createPlanner } from "../../src/planner/planner.ts";
import { createWorker } from "../../src/worker/worker.ts";
import { clock } from "../cluster/harness.ts";
import { fleetPlanner } from "../support/fleet-planner.ts";
import { OWN_KINDS } from "../support/kinds.ts";
import { migratedImage } from "../support/pglite-image.ts";
import { soleMember } from "../support/sole-member.ts";
import { soleQuota } from "../support/sole-quota.ts";

export type ServedCluster = {
  readonly name: string;
  readonly kubeconfig: string;
  readonly flavors: readonly ClusterFlavor[];
};

export type Service = {
  readonly installation: string;
  readonly submit: (job: SentJob) => Promise<void>;
  /** The jobs with these names. Omitted: all. */
  readonly jobs: (names?: readonly string[]) => Promise<readonly Job[]>;
  /** The planned nodes of a job's live admission. Null: none are planned. */
  readonly placementOf: (job: Job) => Promise<Placement | null>;
  readonly eventsOf: (job: Job) => Promise<readonly { readonly reason: string }[]>;
  /** Tokens in use, by queue and pool. */
  readonly used: () => Promise<Readonly<Record<string, Readonly<Record<string, number>>>>>;
  /** Errors of planner and worker, without those of clusters. */
  readonly errors: readonly unknown[];
  readonly clusters: readonly Cluster[];
  readonly close: () => Promise<void>;
};

export type ServiceOptions = {
  /** How long pods may be stuck before they start. Omitted: the defaults. */
  readonly pending?: PendingLimits;
  /** The platform's additions to pods. Omitted: none. */
  readonly podConfig?: PodConfig;
};

/** A queue with its quotas by flavor. */
export type ServedQueue = {
  readonly name: string;
  readonly parent?: string;
  readonly quotas: Readonly<Record<string, number>>;
  /** Omitted: the policies of a new queue. */
  readonly policy?: QueuePolicy;
};

/** Jobs that name no queue wait in the first one. */
export async function startService(
  served: readonly ServedCluster[],
  queues: readonly [ServedQueue, ...ServedQueue[]],
  { pending, podConfig }: ServiceOptions = {},
): Promise<Service> {
  const db = await openPglite(null, await migratedImage());
  // All copies of an image have one id, and services with one id would take each other's objects for their own.
  await db.query("update installation set id = gen_random_uuid()");
  const hints = { appended: () => {}, planner: () => {}, job: (_uid: string) => {} };
  const store = createStore(db, {
    clock,
    kinds: OWN_KINDS,
    openNamespaces: true,
    defaultQueue: queues[0].name,
    onAppended: () => hints.appended(),
  });
  const installation = await installationId(db);
  for (const { quotas, ...queue } of queues) {
    const ofFlavors = Object.entries(quotas).map(([flavor, nominal]) => ({ flavor, resource: GPU, nominal }));
    await store.admin.ensureQueue({ ...queue, strategy: "BEST_EFFORT_FIFO", quotas: ofFlavors });
  }
  const errors: unknown[] = [];
  const connected: Cluster[] = [];
  for (const { name, kubeconfig, flavors } of served) {
    await store.clusters.register({ name, labels: {}, flavors, credentials: {} });
    const cluster = connectCluster({
      name,
      kubeconfig,
      installation,
      clock,
      random: Math.random,
      createNamespaces: true,
      onJobChanged: (uid) => hints.job(uid),
      onCapacity: async (report) => {
        const { epoch } = await store.clusters.recordCapacity(report);
        hints.planner();
        return epoch;
      },
      onError: () => undefined,
    });
    connected.push(cluster);
  }
  const clusters = createClusters(connected);
  const sole = await soleMember({ clock, store, onError: (error) => errors.push(error) });
  const planner = createPlanner(
    {
      clock,
      store: store.planner,
      fleet: fleetPlanner(store.planner),
      quota: soleQuota({ clock, ledgerOf: store.ledgerOf }),
      lease: sole.plannerLease,
      wakeJob: (uid) => hints.job(uid),
    },
    { onError: (error) => errors.push(error) },
  );
  const worker = createWorker(
    { clock, store: store.worker, clusters, member: sole.member, wakePlanner: () => hints.planner() },
    {
      config: {
        kinds: OWN_KINDS,
        build: { installation, clusterDomain: "", initImage: "busybox:1.36", kubectlImage: "kubectl:1" },
        ...(pending === undefined ? {} : { pending }),
      },
      onError: (error) => errors.push(error),
    },
  );
  const intake = createIntake({
    clock,
    kinds: OWN_KINDS,
    store: store.intake,
    randomBytes: (count) => randomBytes(count),
    ...(podConfig === undefined ? {} : { podConfig: () => podConfig }),
    wakePlanner: () => hints.planner(),
    wakeJob: (uid) => hints.job(uid),
  });
  hints.planner = planner.wake;
  hints.job = worker.wake;
  for (const cluster of connected) cluster.start();
  const stop = new AbortController();
  const loops = Promise.all([sole.run(stop.signal), planner.run(stop.signal), worker.run(stop.signal)]);
  return {
    installation,
    errors,
    clusters: connected,
    async submit(job) {
      const outcome = await intake.submit({
        job,
        requestId: job.name,
        validateOnly: false,
        strict: true,
        createdBy: "test",
      });
      assert.equal(outcome.kind, "created", JSON.stringify(outcome));
    },
    async jobs(names = []) {
      const filter = { namespace: "", names, kinds: [], phases: [], queue: "", cluster: null, labels: {} };
      const page = await store.reads.listJobs({ filter, order: "create_time", pageSize: 1000, after: null });
      assert.ok(page !== "badCursor");
      return page.jobs.map(({ job }) => job);
    },
    async placementOf({ uid }) {
      return (await store.worker.loadJob(uid))?.placement ?? null;
    },
    async eventsOf({ namespace, name }) {
      const page = await store.reads.listEvents({ namespace, name, pageSize: 1000, after: null });
      assert.ok(page !== "notFound" && page !== "badCursor");
      return page.events;
    },
    async used() {
      const queues = await store.admin.listQueues();
      return Object.fromEntries(queues.map((one) => [one.name, one.used]));
    },
    async close() {
      stop.abort();
      await loops;
      await clusters.close();
      await db.close();
    },
  };
}

export const GPU = "nvidia.com/gpu";
