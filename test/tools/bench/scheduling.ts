import assert from "node:assert/strict";
import type { KubeClient } from "../../../src/adapters/cluster/client.ts";
import { connectCluster } from "../../../src/adapters/cluster/cluster.ts";
import { createClusters } from "../../../src/adapters/cluster/clusters.ts";
import type { Db } from "../../../src/adapters/store/db/db.ts";
import { installationId } from "../../../src/adapters/store/db/installation.ts";
import { createStore } from "../../../src/adapters/store/store.ts";
import type { SentJob } from "../../../src/core/job/request/sent.ts";
import type { Counters } from "../../../src/core/quota/counters.ts";
import { createIntake } from "../../../src/intake/intake.ts";
import { createPlanner } from "../../../src/planner/planner.ts";
import type { Clock } from "../../../src/runtime/clock.ts";
import { createWorker } from "../../../src/worker/worker.ts";
import { waitUntil } from "../../support/bounded.ts";
import { fleetPlanner } from "../../support/fleet-planner.ts";
import { OWN_KINDS } from "../../support/kinds.ts";
import { soleMember } from "../../support/sole-member.ts";
import { soleQuota } from "../../support/sole-quota.ts";
import { type BenchCluster, GPU, RUN_LABEL } from "./bench-cluster.ts";

const FLAVOR = "gpu/bench";

/** Planner, workers and clusters, without an API. They begin with `start`. */
export async function startScheduling(of: {
  readonly db: Db;
  readonly clusters: readonly BenchCluster[];
  readonly clock: Clock;
  readonly random: (count: number) => Uint8Array;
  /** The tokens of the queue. */
  readonly quota: number;
  readonly wrapClient?: (client: KubeClient) => KubeClient;
  /** Omitted: new ones in this process. */
  readonly counters?: Counters;
}) {
  const { db, clock } = of;
  const store = createStore(db, {
    clock,
    kinds: OWN_KINDS,
    openNamespaces: true,
    defaultQueue: "bench",
    onAppended: () => {},
  });
  const quotas = [{ flavor: FLAVOR, resource: GPU, nominal: of.quota }];
  await store.admin.ensureQueue({ name: "bench", strategy: "BEST_EFFORT_FIFO", quotas });
  const installation = await installationId(db);
  const onError = (error: unknown, what = "planner") => console.error(what, error);
  let wakePlanner = () => {};
  let wakeJob = (_uid: string) => {};
  const connected = await Promise.all(
    of.clusters.map(async ({ name, kubeconfig, run }) => {
      const flavors = [{ name: FLAVOR, resource: GPU, nodeLabels: { [RUN_LABEL]: run } }];
      await store.clusters.simulate({ name, labels: {}, flavors });
      return connectCluster({
        name,
        kubeconfig,
        installation,
        clock,
        random: Math.random,
        createNamespaces: true,
        onJobChanged: (uid) => wakeJob(uid),
        onCapacity: async (report) => {
          const { epoch, changed } = await store.clusters.recordCapacity(report);
          if (changed) wakePlanner();
          return epoch;
        },
        onError,
        ...(of.wrapClient === undefined ? {} : { wrapClient: of.wrapClient }),
      });
    }),
  );
  const clusters = createClusters(connected);
  for (const cluster of connected) cluster.start();
  await waitUntil("every cluster is listed", () => connected.every((cluster) => cluster.synced()), { pollMs: 20 });
  const quota = soleQuota({
    clock,
    ledgerOf: store.ledgerOf,
    ...(of.counters === undefined ? {} : { counters: of.counters }),
  });
  const sole = await soleMember({ clock, store, onError });
  const planner = createPlanner(
    {
      clock,
      store: store.planner,
      fleet: fleetPlanner(store.planner),
      quota,
      lease: sole.plannerLease,
      wakeJob: (uid) => wakeJob(uid),
    },
    { onError },
  );
  const worker = createWorker(
    { clock, store: store.worker, clusters, member: sole.member, wakePlanner: () => wakePlanner() },
    {
      config: {
        kinds: OWN_KINDS,
        build: { installation, clusterDomain: "", initImage: "busybox", kubectlImage: "kubectl:1" },
      },
      onError,
    },
  );
  const intake = createIntake({
    clock,
    kinds: OWN_KINDS,
    store: store.intake,
    randomBytes: of.random,
    wakePlanner: () => wakePlanner(),
    wakeJob: (uid) => wakeJob(uid),
  });
  const stop = new AbortController();
  let loops: Promise<unknown> = Promise.resolve();
  return {
    async submit(jobs: readonly SentJob[]): Promise<void> {
      const common = { requestId: "", validateOnly: false, strict: false, createdBy: "bench" };
      const answers = await intake.submitAll(jobs.map((job) => ({ job, ...common })));
      for (const answer of answers) assert.equal(answer.kind, "created", JSON.stringify(answer));
    },
    async cancel(which: { readonly namespace: string; readonly name: string }): Promise<void> {
      assert.equal((await intake.cancel(which, "bench")).kind, "cancelled");
    },
    start(): void {
      wakePlanner = planner.wake;
      wakeJob = worker.wake;
      loops = Promise.all([sole.run(stop.signal), planner.run(stop.signal), worker.run(stop.signal)]);
    },
    async close(): Promise<void> {
      stop.abort();
      await loops;
      await clusters.close();
    },
  };
}
