import { fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";

/** Starts simulated clusters without nodes in a process of their own, until the parts are closed; answers their kubeconfigs. */
export async function simulatedKubeconfigs(parts: AsyncDisposableStack): Promise<readonly string[]> {
  const child = fork(fileURLToPath(new URL("cluster-server.ts", import.meta.url)));
  const [kubeconfigs] = (await once(child, "message")) as [readonly string[]];
  parts.defer(async () => {
    const ended = once(child, "exit");
    child.disconnect();
    await ended;
  });
  return kubeconfigs;
}
