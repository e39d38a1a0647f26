// @ts-check
/**
 * A kind without pods: a warehouse runs its queries. The warehouse runs a limited number of queries at a time; each holds
 * a token of a pool. A query has the task's name as its id, so a repeated PUT does not start it twice.
 */
import { env } from "node:process";
import { logLink, phaseInfo, serviceKind } from "gangway/plugin";

const POOL = "warehouse";
const SLOTS = 2;
const STATE_VERSION = 1;
const LOOK_MS = 500;

const queryJob = serviceKind({
  name: "QueryJob",
  description: "Runs a query in the warehouse.",
  kindSpec: { statement: { type: "string", minLength: 1, description: "The query, in SQL." } },
  required: ["statement"],
  example: { statement: "select 1" },
});

/**
 * @param {import("gangway/plugin").SetupContext} setup
 * @returns {Promise<import("gangway/plugin").Plugin>}
 */
async function load(setup) {
  const base = env.WAREHOUSE_URL;
  if (base === undefined) throw new Error("WAREHOUSE_URL is not set");
  const ask = asker(base, await setup.secrets.get("warehouse-password"));
  await setup.registerResourceQuota(POOL, SLOTS);
  return {
    id: "query",
    handle: async (context) => {
      const step = context.state.value?.step;
      if (step === undefined) return takeSlot(context);
      if (step === "poll") return transitionOf(await ask("GET", context), { base, taskName: context.taskName });
      await ask("PUT", context, { statement: context.job.kindSpec.statement });
      return { info: phaseInfo.initializing(), state: stateAt("poll"), recheckAfterMs: 0 };
    },
    abort: async (context) => {
      await ask("DELETE", context);
    },
    finalize: ({ resources }) => resources.release({ pool: POOL }),
  };
}

/** @param {string} step */
function stateAt(step) {
  return { version: STATE_VERSION, value: { step } };
}

/**
 * Takes a token. The returned state is recorded before the next call sends the query to the warehouse.
 * @param {import("gangway/plugin").TaskContext} context
 * @returns {Promise<import("gangway/plugin").Transition>}
 */
async function takeSlot({ resources }) {
  const asked = await resources.allocate({ pool: POOL });
  if (asked.status === "GRANTED") {
    return { info: phaseInfo.queued({ reason: "a slot is held" }), state: stateAt("start"), recheckAfterMs: 0 };
  }
  return { info: phaseInfo.waitingForResources({ reason: asked.message }), recheckAfterMs: LOOK_MS };
}

/** @typedef {{ state: string, rows: number, error?: string }} Query */

/**
 * @param {Query | null} query
 * @param {{ base: string, taskName: string }} at
 * @returns {import("gangway/plugin").Transition}
 */
function transitionOf(query, { base, taskName }) {
  if (query === null) {
    const reason = "the warehouse has lost it";
    return { info: phaseInfo.retryableFailure({ code: "QueryLost", kind: "SYSTEM", reason }) };
  }
  const logs = [logLink("query", `${base}/ui/{{ .taskName }}`, { taskName })];
  const task = { logs, externalResources: [{ externalId: taskName }], customInfo: { rows: query.rows } };
  if (query.state === "succeeded") return { info: phaseInfo.success({ reason: `${query.rows} rows`, task }) };
  if (query.state === "failed") {
    return { info: phaseInfo.permanentFailure({ code: "QueryFailed", reason: query.error ?? "it failed", task }) };
  }
  // A higher version reports the new number of rows.
  return { info: phaseInfo.running({ version: query.rows, task }), recheckAfterMs: LOOK_MS };
}

/**
 * @param {string} base
 * @param {string} password
 */
function asker(base, password) {
  const headers = { authorization: `Bearer ${password}`, "content-type": "application/json" };
  /**
   * Sends a request about the query of the task. Returns the state of the query, or null if there is none.
   * @param {string} method
   * @param {import("gangway/plugin").TaskContext} context
   * @param {unknown} [body]
   * @returns {Promise<Query | null>}
   */
  return async (method, { taskName, signal }, body) => {
    const sent = body === undefined ? {} : { body: JSON.stringify(body) };
    const answer = await fetch(new URL(`/queries/${taskName}`, base), { method, headers, signal, ...sent });
    if (answer.status === 404) return null;
    if (!answer.ok) throw new Error(`the warehouse answered ${answer.status}`);
    return await answer.json();
  };
}

/** @type {import("gangway/plugin").PluginEntry[]} */
export const plugins = [{ id: "query", kinds: [queryJob], load }];
