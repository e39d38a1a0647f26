/** Connects the API that registers clusters with the store and the cluster adapter. */
import type { AllowedHosts } from "../adapters/cluster/allowed-hosts.ts";
import type { KubeconfigSecrets } from "../adapters/cluster/kubeconfig-secrets.ts";
import type { ServedSecret } from "../adapters/cluster/permissions.ts";
import type { ClusterRegistry } from "../adapters/cluster/registry.ts";
import type { createStore } from "../adapters/store/store.ts";
import { createClusterAdmin } from "../api/cluster/cluster-admin.ts";
import { createKeyAdmin } from "../api/cluster/key-admin.ts";
import type { ClusterAdmin } from "../api/ports.ts";
import type { SecretReference } from "../core/admin/cluster.ts";
import { type CredentialKeys, currentKey } from "../core/admin/credential-keys.ts";
import type { Clock } from "../runtime/clock.ts";
import { gangsIfAdopted } from "./sweep-clusters.ts";

export type ClusterAdminParts = {
  readonly store: Pick<ReturnType<typeof createStore>, "admin" | "clusters">;
  readonly registry: Pick<ClusterRegistry, "refresh"> & Partial<Pick<ClusterRegistry, "problemOf" | "connected">>;
  readonly clock: Clock;
  /** Encrypt kubeconfigs. */
  readonly keys: () => CredentialKeys;
  /** Reads kubeconfigs in Secrets. Omitted: each reference to one is refused. */
  readonly secrets?: Pick<KubeconfigSecrets, "read">;
  readonly allowLocal: boolean;
  /** The addresses that clusters may have. Omitted: all but link-local ones and their like. */
  readonly hosts?: AllowedHosts | undefined;
  readonly simulated: (name: string) => string | null;
};

// The first call that needs them loads them: most processes never register a cluster.
const credentials = () => import("../adapters/cluster/credentials.ts");
const acceptance = () => import("../adapters/cluster/accept-kubeconfig.ts");
const files = () => import("../adapters/cluster/kubeconfig-files.ts");
const checks = () => import("../adapters/cluster/check-cluster.ts");

export function connectClusterAdmin(parts: ClusterAdminParts): ClusterAdmin {
  const { store, registry, clock, keys, secrets, allowLocal, hosts, simulated } = parts;
  const readSecret = (of: SecretReference) =>
    secrets?.read(of) ?? Promise.reject(new Error("this process reads no Secrets"));
  const admin = createClusterAdmin({
    table: { ...store.clusters, getCluster: store.admin.getCluster },
    refresh: () => registry.refresh(),
    problemOf: (name) => registry.problemOf?.(name) ?? null,
    allowLocal,
    readFile: async (path) => (await files()).readLocalFile(path).catch(() => null),
    readSecret,
    pickContext: async (text, context) => (await acceptance()).acceptKubeconfig(text, { context, allowLocal, hosts }),
    seal: async (cluster, text) => {
      const { sealKubeconfig } = await credentials();
      const key = currentKey(keys());
      return key === null ? null : sealKubeconfig(key, cluster, text);
    },
    open: async (cluster, stored) =>
      (await credentials()).openCredentials(stored, { cluster, keys: keys(), allowLocal, readSecret }),
    keys: createKeyAdmin({
      keys,
      table: store.clusters,
      loadReseal: async () => (await credentials()).resealCredentials,
    }),
    check: async (kubeconfig, { name, ...registered }) => {
      const namespaces = (await store.admin.listNamespaces()).map((namespace) => namespace.name);
      const secrets = await servedSecrets(store, name);
      return (await checks()).checkCluster(kubeconfig, { clock, namespaces, secrets, hosts, ...registered });
    },
    simulated,
  });
  const connected = (name: string) => registry.connected?.().find((cluster) => cluster.name === name);
  return { ...admin, gangsIfAdopted: (name, signal) => gangsIfAdopted(store, connected(name), signal) };
}

/** The Secrets of a cluster that hold kubeconfigs of others. */
async function servedSecrets(
  { clusters }: ClusterAdminParts["store"],
  cluster: string,
): Promise<readonly ServedSecret[]> {
  if (cluster === "") return [];
  const { registered } = await clusters.listCredentials();
  return registered.flatMap(({ credentials }) => {
    if (credentials["kind"] !== "secret" || credentials["cluster"] !== cluster) return [];
    const { namespace, name } = credentials;
    return typeof namespace === "string" && typeof name === "string" ? [{ namespace, name }] : [];
  });
}
