import { fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { WAIT_MS_MAX, within } from "../../support/bounded.ts";

/** Starts simulated clusters without nodes in a process of their own, until the parts are closed. */
export async function simulatedKubeconfigs(parts: AsyncDisposableStack): Promise<readonly string[]> {
  const child = fork(fileURLToPath(new URL("cluster-server.ts", import.meta.url)));
  const message = once(child, "message") as Promise<[readonly string[]]>;
  const [kubeconfigs] = await within("the start of simulated clusters", WAIT_MS_MAX, message);
  parts.defer(async () => {
    const ended = once(child, "exit");
    child.disconnect();
    await within("the end of simulated clusters", WAIT_MS_MAX, ended);
  });
  return kubeconfigs;
}
