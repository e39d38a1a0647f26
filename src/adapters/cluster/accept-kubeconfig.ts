import { stringAt } from "../../runtime/json.ts";
import { type AllowedHosts, DEFAULT_CLUSTER_HOSTS, parseAllowedHosts } from "./allowed-hosts.ts";
import { allowedAddresses, HostRefused } from "./guarded-connector.ts";
import { pickContext } from "./kubeconfig.ts";
import { withFiles } from "./kubeconfig-files.ts";

type AcceptedKubeconfig =
  /** The chosen context as it is stored, and as it is used: the content of files instead of their names. */
  | { readonly kind: "ok"; readonly kubeconfig: string; readonly usable: string }
  | { readonly kind: "refused"; readonly problems: readonly string[] };

/** A name server that is slower than this does not decide: each connection is judged again. */
const LOOKUP_MS_MAX = 5_000;

/** Decides whether this server takes a kubeconfig that a caller has sent: its members, its files and its server. */
export async function acceptKubeconfig(
  text: string,
  of: { readonly context: string; readonly allowLocal: boolean; readonly hosts?: AllowedHosts | undefined },
): Promise<AcceptedKubeconfig> {
  const picked = pickContext(text, of);
  if (picked.kind === "refused") return picked;
  const { kubeconfig } = picked;
  const hosts = of.hosts ?? parseAllowedHosts(DEFAULT_CLUSTER_HOSTS);
  const urls = ["server", "proxy-url"].flatMap((member) => stringAt(picked.cluster, member) ?? []);
  const problems = (await Promise.all(urls.map((url) => hostProblem(new URL(url), hosts)))).flatMap((one) => one ?? []);
  if (problems.length > 0) return { kind: "refused", problems };
  if (!of.allowLocal) return { kind: "ok", kubeconfig, usable: kubeconfig };
  try {
    return { kind: "ok", kubeconfig, usable: await withFiles(kubeconfig) };
  } catch (error) {
    return { kind: "refused", problems: [error instanceof Error ? error.message : String(error)] };
  }
}

/** Why a cluster may not be at this host. Null: it may, or its address is not known yet. */
async function hostProblem({ hostname }: URL, hosts: AllowedHosts): Promise<string | null> {
  const judged = allowedAddresses(hostname.replace(/^\[|\]$/g, ""), hosts).then(
    () => null,
    (error: unknown) => (error instanceof HostRefused ? error.message : null),
  );
  const { promise: late, resolve } = Promise.withResolvers<null>();
  const timer = setTimeout(resolve, LOOKUP_MS_MAX, null);
  return Promise.race([judged, late]).finally(() => clearTimeout(timer));
}
