/**
 * A plugin that processes load: it runs jobs of every unknown kind as tasks of a warehouse, which runs one task at a
 * time.
 */
import { env, pid } from "node:process";
import {
  type Plugin,
  type PluginEntry,
  phaseInfo,
  type SetupContext,
  serviceKind,
} from "../../src/core/kinds/plugin.ts";

const POOL = "warehouse";
const LOOK_MS = 200;

async function load({ secrets, registerResourceQuota }: SetupContext): Promise<Plugin> {
  const password = await secrets.get("warehouse-password");
  await registerResourceQuota(POOL, 1);
  const ask = async (method: string, name: string, signal: AbortSignal, body?: string) => {
    const headers = { authorization: `Bearer ${password}`, "x-process": String(pid) };
    const url = new URL(`/queries/${name}`, env["WAREHOUSE_URL"]);
    const answer = await fetch(url, { method, headers, signal, ...(body === undefined ? {} : { body }) });
    if (answer.status !== 200 && answer.status !== 404) throw new Error(`the warehouse answered ${answer.status}`);
    return (await answer.json()) as { readonly state?: string };
  };
  return {
    id: "tasks",
    handle: async ({ resources, state, taskName, job, signal }) => {
      if (state.value === null) {
        const { status } = await resources.allocate({ pool: POOL });
        if (status !== "GRANTED") return { info: phaseInfo.waitingForResources(), recheckAfterMs: LOOK_MS };
        await ask("PUT", taskName, signal, JSON.stringify({ statement: job.kindSpec["statement"] }));
        return { info: phaseInfo.queued(), state: { version: 1, value: { put: true } }, recheckAfterMs: 0 };
      }
      const { state: is } = await ask("GET", taskName, signal);
      if (is === "succeeded") return { info: phaseInfo.success() };
      return { info: phaseInfo.running(), recheckAfterMs: LOOK_MS };
    },
    abort: async ({ taskName, signal }) => void (await ask("DELETE", taskName, signal)),
    finalize: ({ resources }) => resources.release({ pool: POOL }),
  };
}

const kind = serviceKind({
  name: "TaskJob",
  description: "A task at the warehouse.",
  kindSpec: { statement: { type: "string" } },
});

export const plugins: readonly PluginEntry[] = [{ id: "tasks", kinds: [kind], isDefault: true, load }];
