import type { Executor } from "./db.ts";

/** The clusters that can be connected to by what the table says. */
export function clusterKubeconfigs(
  executor: Executor,
): Promise<readonly { readonly name: string; readonly kubeconfig: string }[]> {
  return executor.query("select name, kubeconfig from clusters where kubeconfig is not null order by name");
}
