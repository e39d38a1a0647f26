// @ts-check
/**
 * A kind without pods: a query that a warehouse runs. The warehouse takes a limited number of queries at a time, which are tokens of a pool.
 * A query is put under the task's name, so that it is started once however often that is tried.
 */
import { env } from "node:process";
import { logLink, phaseInfo, serviceKind } from "gangway/plugin";

const POOL = "warehouse";
const SLOTS = 2;
const STATE_VERSION = 1;
const LOOK_MS = 500;

const queryJob = serviceKind({
  name: "QueryJob",
  description: "A query that the warehouse runs.",
  kindSpec: { statement: { type: "string", minLength: 1, description: "In SQL." } },
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
 * That a slot is held is recorded before the warehouse hears of the query.
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
  // More rows are news.
  return { info: phaseInfo.running({ version: query.rows, task }), recheckAfterMs: LOOK_MS };
}

/**
 * @param {string} base
 * @param {string} password
 */
function asker(base, password) {
  const headers = { authorization: `Bearer ${password}`, "content-type": "application/json" };
  /**
   * What the warehouse says of the task's query; null where it knows none.
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
