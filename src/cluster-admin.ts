/** Clusters that are registered while the service runs: connects the API's words with store, credentials and connections. */
import { readFile } from "node:fs/promises";
import type { ClusterRegistry } from "./adapters/cluster/registry.ts";
import type { createStore } from "./adapters/store/store.ts";
import type { ClusterAdmin, ClusterCheck, CredentialsRefusal, SentCredentials } from "./api/ports.ts";
import { gangSchedulerOf } from "./core/pods/pod-group.ts";
import type { Clock } from "./runtime/clock.ts";
import type { JsonObject } from "./runtime/json.ts";

export type ClusterAdminOptions = {
  readonly store: Pick<ReturnType<typeof createStore>, "admin" | "clusters">;
  readonly registry: Pick<ClusterRegistry, "refresh">;
  readonly clock: Clock;
  /** What kubeconfigs are encrypted with; null: none may be given as text. */
  readonly key: Buffer | null;
  /** Kubeconfigs may be files of this machine, name some, and run programs. */
  readonly allowLocal: boolean;
  /** The kubeconfig of a cluster that this process simulates; null for any other. */
  readonly simulated: (name: string) => string | null;
};

type Prepared = { readonly kind: "ready"; readonly stored: JsonObject; readonly kubeconfig: string };

// Loaded by the first call that needs them: most processes never register a cluster.
const credentials = () => import("./adapters/cluster/credentials.ts");
const kubeconfigs = () => import("./adapters/cluster/kubeconfig.ts");

export function createClusterAdmin(options: ClusterAdminOptions): ClusterAdmin {
  const { store, registry } = options;
  return {
    async register(cluster, sent) {
      const prepared = await prepare(options, cluster.name, sent);
      if (prepared.kind !== "ready") return prepared;
      const outcome = await store.clusters.register({ ...cluster, credentials: prepared.stored });
      if (outcome.kind !== "done") return outcome;
      await registry.refresh();
      return { ...outcome, check: await check(options, prepared.kubeconfig, cluster.gangScheduler) };
    },
    async tryOut(cluster, sent) {
      const prepared = await prepare(options, cluster.name, sent);
      return prepared.kind === "ready" ? check(options, prepared.kubeconfig, cluster.gangScheduler) : prepared;
    },
    async update(cluster, sent) {
      const prepared = sent === null ? null : await prepare(options, cluster.name, sent);
      if (prepared !== null && prepared.kind !== "ready") return prepared;
      const outcome = await store.clusters.update({ ...cluster, credentials: prepared?.stored ?? null });
      if (outcome.kind === "done") await registry.refresh();
      return outcome;
    },
    async check(name) {
      const own = options.simulated(name);
      if (own !== null) return check(options, own);
      const stored = await store.clusters.credentialsOf(name);
      if (stored === null) return "notFound";
      try {
        const { openCredentials } = await credentials();
        const registered = await store.admin.getCluster(name);
        const kubeconfig = await openCredentials(stored, { ...options, cluster: name });
        return await check(options, kubeconfig, registered?.gangScheduler);
      } catch (error) {
        const message = error instanceof Error ? error.message : String(error);
        const finding = { severity: "ERROR", code: "BadCredentials", message } as const;
        return { kubernetesVersion: "", clockSkewMs: null, findings: [finding] };
      }
    },
    async remove(name, forget) {
      const outcome = await store.clusters.remove(name, forget);
      if (outcome.kind === "done") await registry.refresh();
      return outcome;
    },
  };
}

/** What is stored of credentials, and the kubeconfig that they stand for; or why they are refused. */
async function prepare(
  { key, allowLocal }: ClusterAdminOptions,
  cluster: string,
  { kubeconfig, context }: SentCredentials,
): Promise<Prepared | CredentialsRefusal> {
  const { pickContext } = await kubeconfigs();
  if (kubeconfig.kind === "path") {
    if (!allowLocal) return refused("names a file of the server's, which this server does not allow");
    const text = await readFile(kubeconfig.path, "utf8").catch(() => null);
    if (text === null) return refused(`the file ${kubeconfig.path} cannot be read by the server`);
    const picked = pickContext(text, { context, allowLocal });
    if (picked.kind === "refused") return { kind: "refusedCredentials", problems: picked.problems };
    return { kind: "ready", stored: { kind: "file", path: kubeconfig.path, context }, kubeconfig: picked.kubeconfig };
  }
  const picked = pickContext(kubeconfig.text, { context, allowLocal });
  if (picked.kind === "refused") return { kind: "refusedCredentials", problems: picked.problems };
  if (key === null) return { kind: "noKey" };
  const { sealKubeconfig } = await credentials();
  return { kind: "ready", stored: sealKubeconfig(key, cluster, picked.kubeconfig), kubeconfig: picked.kubeconfig };
}

function refused(problem: string): CredentialsRefusal {
  return { kind: "refusedCredentials", problems: [problem] };
}

async function check(
  { clock, store }: ClusterAdminOptions,
  kubeconfig: string,
  gangScheduler?: string,
): Promise<ClusterCheck> {
  const { checkCluster } = await import("./adapters/cluster/check-cluster.ts");
  const namespaces = (await store.admin.listNamespaces()).map(({ name }) => name);
  return checkCluster(kubeconfig, { clock, namespaces, gangScheduler: gangSchedulerOf(gangScheduler) });
}
