/** Connects this process with its clusters: those that it simulates, and those that the table names. */
import { parseAllowedHosts } from "../adapters/cluster/allowed-hosts.ts";
import { type Cluster, connectCluster, type KubeClusterOptions } from "../adapters/cluster/cluster.ts";
import { KubeconfigSecrets } from "../adapters/cluster/kubeconfig-secrets.ts";
import { ClusterRegistry } from "../adapters/cluster/registry.ts";
import { observerLease } from "../adapters/store/fleet/leases.ts";
import type { Config } from "../config/config.ts";
import { describeUidRefusal } from "../core/admin/cluster.ts";
import type { LossRule } from "../core/admin/lost-clusters.ts";
import { gangSchedulerOf } from "../core/pods/build/pod-group.ts";
import { type Base, runLoops } from "./base.ts";
import { connectClusterAdmin } from "./cluster-admin.ts";
import { silenceCounter } from "./count-silence.ts";
import { followCredentialKeys } from "./credential-keys.ts";
import type { Simulations } from "./simulated-clusters.ts";
import { endReturn, sweepCluster } from "./sweep-clusters.ts";

/** Connects a cluster. Each process hears of its jobs; the process with the observer's lease records its capacity. */
export function connect(
  base: Base,
  cluster: Pick<KubeClusterOptions, "name" | "kubeconfig" | "gangScheduler" | "hosts" | "writesMax">,
  { observes, lossRule }: { readonly observes: boolean; readonly lossRule: LossRule },
): Cluster {
  const { clock, store, installation, telemetry, instrumentation, tell, heard, member } = base;
  const { name } = cluster;
  const lease = observes ? member.lease(observerLease(name), () => connected.tellCapacity()) : null;
  const connected = connectCluster({
    ...cluster,
    installation,
    clock,
    random: Math.random,
    createNamespaces: true,
    onJobChanged: (uid) => heard.job(uid),
    claimUid: async (uid) => {
      const refusal = await store.clusters.claimUid({ cluster: name, uid });
      return refusal === null ? null : `cluster ${name} ${describeUidRefusal(refusal)}`;
    },
    reportsCapacity: () => typeof lease?.epoch() === "number",
    onCapacity: async (report) => {
      const leaseEpoch = lease?.epoch() ?? null;
      if (leaseEpoch === null) return null;
      const { epoch, changed } = await store.clusters.recordCapacity(report, leaseEpoch);
      if (changed) tell.planner();
      return epoch;
    },
    onSilence: silenceCounter(base, { cluster: name, leaseEpoch: () => lease?.epoch() ?? null, lossRule }),
    onError: (error, what) => telemetry.clusterFailed({ cluster: name, what, error }),
    onThrottled: () => telemetry.clusterThrottled({ cluster: name }),
    runCode: (code) => base.sections.run({ jobUid: null, of: "cluster", name }, code),
    onSlowAnswer: (tookMs) => telemetry.codeBlocked({ jobUid: null, of: "cluster", name, tookMs: Math.round(tookMs) }),
    ...instrumentation.kubeClient(name),
  });
  return connected;
}

/** Connects a cluster that this process simulates. The simulation ends with the connection. */
function connectSimulation(
  base: Base,
  cluster: Pick<KubeClusterOptions, "name" | "kubeconfig">,
  { simulations, lossRule }: { readonly simulations: Simulations; readonly lossRule: LossRule },
): Cluster {
  const connected = connect(base, cluster, { observes: true, lossRule });
  const close = async () => {
    await connected.close();
    await simulations.stop(cluster.name);
  };
  return { ...connected, close };
}

export type FollowOptions = {
  readonly config: Pick<
    Config,
    | "credentialsKeys"
    | "credentialsKeysFile"
    | "allowLocalKubeconfigs"
    | "clusterHosts"
    | "clusterWritesMax"
    | "lossRule"
  >;
  /** True for workers, which watch clusters. False: this process only sends single requests to them. */
  readonly listens: boolean;
  readonly simulations: Simulations;
};

/** Keeps this process connected to every cluster that the table names, until the parts are closed. */
export async function followClusters(base: Base, options: FollowOptions) {
  const { clock, store, telemetry, instrumentation, heard, parts } = base;
  const { listens, simulations } = options;
  const { allowLocalKubeconfigs: allowLocal } = options.config;
  const keys = followCredentialKeys(base, options.config, () => registry.wake());
  const hosts = parseAllowedHosts(options.config.clusterHosts);
  const { clusterWritesMax: writesMax, lossRule } = options.config;
  const secrets = new KubeconfigSecrets({
    clock,
    allowLocal,
    readObject: (name, path, signal) =>
      registry
        .connected()
        .find((cluster) => cluster.name === name)
        ?.read(path, signal) ?? null,
    onChanged: () => registry.wake(),
    onError: (error) => telemetry.clusterFailed({ cluster: null, what: "kubeconfig in a Secret", error }),
  });
  const registry = new ClusterRegistry({
    clock,
    list: async () => {
      if (listens) await store.clusters.forgetRetired(simulations.names());
      const { registered, simulated, forgotten, ...states } = await store.clusters.listCredentials();
      keys.reportMissing(registered);
      const here = simulated.filter((name) => simulations.kubeconfigOf(name) !== null);
      const simulatedHere = here.map((name) => ({ name, credentials: {} }));
      return { registered: [...secrets.connectable(registered), ...simulatedHere], forgotten, ...states };
    },
    connect: async ({ name, credentials, gangScheduler }) => {
      const simulated = simulations.kubeconfigOf(name);
      if (simulated !== null)
        return connectSimulation(base, { name, kubeconfig: simulated }, { simulations, lossRule });
      const { openCredentials } = await import("../adapters/cluster/credentials.ts");
      const kubeconfig = await openCredentials(credentials, {
        cluster: name,
        keys: keys.now(),
        allowLocal,
        readSecret: (reference) => secrets.textInForce(reference),
      });
      const cluster = { name, kubeconfig, gangScheduler: gangSchedulerOf(gangScheduler), hosts, writesMax };
      return connect(base, cluster, { observes: listens, lossRule });
    },
    listens,
    onJobChanged: (uid) => heard.job(uid),
    onLossChanged: async (names) => {
      if (listens) await store.clusters.recheckPlaced(names);
    },
    onAnswer: async ({ name }) => {
      if (listens) await store.clusters.noteAnswer(name);
    },
    onReturning: async (cluster) => {
      if (listens) await endReturn(base, cluster);
    },
    onSweep: async (cluster) => {
      if (listens) await sweepCluster(base, cluster);
    },
    // No gang is admitted to a cluster that its workers cannot connect to.
    onUnusable: async (name, problem) => {
      if (listens && (await store.clusters.markUnreachable(name, problem))) base.tell.planner();
    },
    onError: (error, what) => telemetry.clusterFailed({ cluster: null, what, error }),
  });
  instrumentation.clusters(() => registry.connected());
  await registry.refresh();
  runLoops(parts, (signal) => registry.run(signal));
  runLoops(parts, (signal) => secrets.run(signal));
  const simulated = simulations.kubeconfigOf;
  const admin = connectClusterAdmin({
    store,
    registry,
    clock,
    keys: keys.now,
    secrets,
    allowLocal,
    hosts,
    simulated,
  });
  return { clusters: registry.clusters, admin, keys: keys.now };
}

export type FollowedClusters = Awaited<ReturnType<typeof followClusters>>;
