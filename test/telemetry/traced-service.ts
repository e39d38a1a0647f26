import { randomBytes } from "node:crypto";
import { connectCluster } from "../../src/adapters/cluster/cluster.ts";
import { createClusters } from "../../src/adapters/cluster/clusters.ts";
import { DEMO_CLUSTERS, DEMO_QUEUES } from "../../src/adapters/simcluster/demo-clusters.ts";
import { startSimCluster } from "../../src/adapters/simcluster/sim-cluster.ts";
import { createStore } from "../../src/adapters/store/store.ts";
import { startApi } from "../../src/api/server.ts";
import { connectClusterAdmin } from "../../src/compose/cluster-admin.ts";
import { startQuestions } from "../../src/compose/questions.ts";
import { NO_CALL_LIMITS } from "../../src/core/access/call-limits.ts";
import { onlyDefault } from "../../src/core/admin/credential-keys.ts";
import { createIntake } from "../../src/intake/intake.ts";
import { createPlanner } from "../../src/planner/planner.ts";
import { systemClock } from "../../src/runtime/clock.ts";
import { createTelemetry } from "../../src/telemetry/events.ts";
import { createInstrumentation } from "../../src/telemetry/instrumentation.ts";
import type { Meter } from "../../src/telemetry/metrics.ts";
import type { Tracing } from "../../src/telemetry/tracing.ts";
import { createWatch } from "../../src/watch/watch.ts";
import { createWorker } from "../../src/worker/worker.ts";
import { anonymous } from "../support/anonymous.ts";
import { openMemoryDb } from "../support/databases.ts";
import { fleetPlanner } from "../support/fleet-planner.ts";
import { OWN_KINDS } from "../support/kinds.ts";
import { memoryAccess } from "../support/memory-access.ts";
import { memoryRobots } from "../support/memory-robots.ts";
import { noResources } from "../support/no-resources.ts";
import { soleMember } from "../support/sole-member.ts";
import { soleQuota } from "../support/sole-quota.ts";

/** The service without a command line, on a database in memory and one simulated cluster, with the given telemetry. */
export async function startObserved(observing: { readonly tracing: Tracing | null; readonly meter: Meter | null }) {
  await using parts = new AsyncDisposableStack();
  const clock = systemClock();
  const telemetry = createTelemetry({ level: "silent", file: null, meter: observing.meter });
  const instrumentation = createInstrumentation({ ...observing, clock, telemetry, kinds: OWN_KINDS });
  const db = await openMemoryDb();
  parts.defer(db.close);
  const store = createStore(db, {
    clock,
    kinds: OWN_KINDS,
    openNamespaces: true,
    defaultQueue: "default",
    onAppended: () => watch.hint(),
  });
  for (const queue of DEMO_QUEUES) await store.admin.ensureQueue(queue);
  const demo = DEMO_CLUSTERS[0];
  if (demo === undefined) throw new Error("there is a demo cluster");
  const { name, nodes, labels, flavors } = demo;
  const simulated = await startSimCluster({ name, nodes, directory: null, clock });
  parts.defer(() => simulated.close());
  await store.clusters.simulate({ name, labels, flavors });
  const errors: unknown[] = [];
  const wakePlanner = () => planner.wake();
  const wakeJob = (uid: string) => worker.wake(uid);
  const cluster = connectCluster({
    name,
    kubeconfig: simulated.kubeconfig(),
    installation: "traced",
    clock,
    random: Math.random,
    createNamespaces: true,
    onJobChanged: wakeJob,
    onCapacity: async (report) => {
      const { epoch } = await store.clusters.recordCapacity(report);
      wakePlanner();
      return epoch;
    },
    onError: (error) => errors.push(error),
    ...instrumentation.kubeClient(name),
  });
  const clusters = createClusters([cluster]);
  instrumentation.clusters(() => [cluster]);
  parts.defer(clusters.close);
  const sole = await soleMember({ clock, store, onError: (error) => errors.push(error) });
  const planner = createPlanner(
    {
      clock,
      lease: sole.plannerLease,
      store: instrumentation.plannerStore(store.planner),
      fleet: fleetPlanner(store.planner),
      quota: soleQuota({ clock, ledgerOf: store.ledgerOf }),
      wakeJob,
      ...instrumentation.plannerPorts,
    },
    { onError: (error) => errors.push(error) },
  );
  const worker = createWorker(
    {
      clock,
      store: instrumentation.workerStore(store.worker),
      clusters,
      member: sole.member,
      wakePlanner,
      ...instrumentation.workerPorts,
    },
    {
      config: {
        kinds: OWN_KINDS,
        build: { installation: "traced", clusterDomain: "", initImage: "busybox:1.36", kubectlImage: "kubectl:1" },
      },
      onError: (error) => errors.push(error),
      ...instrumentation.workerOptions,
    },
  );
  const watch = createWatch({ clock, store: instrumentation.watchStore(store.watch) }, telemetry);
  const intake = instrumentation.intake(
    createIntake({
      clock,
      kinds: OWN_KINDS,
      store: store.intake,
      randomBytes,
      wakePlanner,
      wakeJob,
      ...instrumentation.intakePorts,
    }),
  );
  cluster.start();
  const stop = new AbortController();
  const loops = Promise.all([
    sole.run(stop.signal),
    planner.run(stop.signal),
    worker.run(stop.signal),
    watch.run(stop.signal),
  ]);
  parts.defer(async () => {
    stop.abort();
    await loops;
  });
  const registry = { refresh: async () => {} };
  const admins = { store, registry, clock, keys: () => onlyDefault(null), allowLocal: false, simulated: () => null };
  const api = await startApi(
    {
      kinds: OWN_KINDS,
      intake,
      ...startQuestions({ clock, kinds: OWN_KINDS, store, parts }),
      watch,
      admin: store.admin,
      priorityClasses: store.priorityClasses,
      runtimes: store.runtimes,
      clusters: connectClusterAdmin(admins),
      resources: noResources(),
      logs: clusters.logs,
      pods: clusters.pods,
      limitsChanged: async () => wakePlanner(),
      wakePlanner,
      clock,
      authenticate: anonymous,
      limits: NO_CALL_LIMITS,
      authorization: null,
      access: memoryAccess().admin,
      robots: memoryRobots(),
      onInternalError: (_reference, error) => errors.push(error),
      ...instrumentation.apiPorts,
    },
    { listen: "127.0.0.1:0", insecure: false, tls: null, authenticates: false },
  );
  parts.defer(api.close);
  const running = parts.move();
  return { address: api.address, errors, [Symbol.asyncDispose]: () => running.disposeAsync() };
}
