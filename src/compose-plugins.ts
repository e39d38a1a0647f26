/** Kinds from outside, and what their plugins work with. Belongs to the composition root. */
import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { isAbsolute, join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import type { createTaskTokens } from "./adapters/quota/task-tokens.ts";
import type { ResourceManager as Tokens } from "./api/quota-ports.ts";
import type { Plugin, PluginEntry, SecretManager, SetupContext } from "./core/kinds/plugin.ts";
import { entryOf, KINDS, servedKinds, serveKinds } from "./core/kinds/registry.ts";
import { isJsonObject } from "./runtime/json.ts";
import { thrownText } from "./runtime/thrown-text.ts";
import { UnavailableError } from "./runtime/unavailable-error.ts";
import type { PluginHost, TaskHolder } from "./worker/ports.ts";

const NAME = /^[^\p{Cc}\p{Cs}]{1,253}$/u;
/** As the resource manager's requests are checked. */
const POOL_NAME =
  /^(?=.{1,128}$)[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?([/:][A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)*$/;
const SECRET_NAME = /^[A-Za-z0-9][-A-Za-z0-9._]{0,252}$/;

/** A module that has not been evaluated by then awaits something that does not come. */
const IMPORT_MS_MAX = 30_000;
/** The length of the hash that stands for a task's name. */
const NAME_LENGTH_MIN = 14;

/**
 * Serves the kinds of these modules beside our own. A path begins with `.` or `/` and counts from the working directory; anything else is a
 * package.
 * @throws Error naming the module and what is wrong with it.
 */
export async function servePlugins(
  modules: readonly string[],
  workingDirectory: string,
  importMsMax = IMPORT_MS_MAX,
): Promise<void> {
  if (modules.length === 0) return;
  const entries: PluginEntry[] = [];
  for (const name of modules) {
    entries.push(...(await entriesOf(name, { workingDirectory, importMsMax })));
  }
  try {
    serveKinds(entries);
  } catch (error) {
    throw new Error(`GANGWAY_PLUGINS: ${thrownText(error)}`);
  }
}

async function entriesOf(
  name: string,
  { workingDirectory, importMsMax }: { readonly workingDirectory: string; readonly importMsMax: number },
): Promise<readonly PluginEntry[]> {
  let loaded: { readonly plugins?: unknown };
  try {
    loaded = (await inTime(import(specifierOf(name, workingDirectory)), importMsMax)) as { readonly plugins?: unknown };
  } catch (error) {
    throw new Error(`GANGWAY_PLUGINS names ${name}, which cannot be loaded: ${importText(name, error)}`);
  }
  const { plugins } = loaded;
  if (!Array.isArray(plugins)) throw new Error(`GANGWAY_PLUGINS names ${name}, which exports no list named plugins`);
  if (plugins.length === 0) throw new Error(`GANGWAY_PLUGINS names ${name}, whose list of plugins is empty`);
  return plugins;
}

/** The timer keeps the process, which would else end in silence where nothing is left to wait for. */
async function inTime<T>(loading: Promise<T>, msMax: number): Promise<T> {
  const late = Promise.withResolvers<never>();
  const timer = setTimeout(() => late.reject(new Error(`it was not ready after ${msMax / 1000} s`)), msMax);
  try {
    return await Promise.race([loading, late.promise]);
  } finally {
    clearTimeout(timer);
  }
}

function importText(name: string, error: unknown): string {
  const text = thrownText(error);
  const isFile = isPath(name) || (error as { code?: unknown } | null)?.code !== "ERR_MODULE_NOT_FOUND";
  return isFile ? text : `${text}; a path would begin with ./ or /`;
}

function isPath(name: string): boolean {
  return isAbsolute(name) || name.startsWith(".");
}

function specifierOf(name: string, workingDirectory: string): string {
  if (isPath(name)) return pathToFileURL(resolve(workingDirectory, name)).href;
  try {
    return pathToFileURL(createRequire(join(workingDirectory, "package.json")).resolve(name)).href;
  } catch {
    // Packages that can only be imported are looked for beside us.
    return name;
  }
}

/**
 * A promise that somebody else's plugin forgot and that fails costs a line in the log instead of the process; until the parts are closed. What
 * it throws outside of any promise ends the process, as anywhere in Node.
 */
export function outliveForgottenPromises(parts: AsyncDisposableStack, onError: (error: unknown) => void): void {
  if (servedKinds().length === KINDS.length) return;
  process.on("unhandledRejection", onError);
  parts.defer(() => void process.off("unhandledRejection", onError));
}

export type PluginParts = {
  /** Where the operator has put secrets, one a file; null: nowhere. */
  readonly secretsDirectory: string | null;
  readonly wakeJob: (jobUid: string) => void;
  /** Null in a process without counters. */
  readonly quota: {
    readonly manager: Pick<Tokens, "getPool" | "registerPool">;
    readonly tasks: ReturnType<typeof createTaskTokens>;
  } | null;
};

/** What the worker runs jobs without pods by: each plugin is loaded once, when it is first needed. */
export function createPluginHost(parts: PluginParts): PluginHost {
  const secrets = secretsIn(parts.secretsDirectory);
  const loading = new Map<string, Promise<Plugin>>();
  return {
    secrets,
    pluginOf: (kind, signal) => {
      const entry = entryOf(kind);
      if (entry?.load === undefined) throw new Error(`there is no plugin for kind ${kind}`);
      const known = loading.get(entry.id);
      const plugin = known ?? load(entry, setupOf(parts, entry, secrets));
      loading.set(entry.id, plugin);
      const forget = () => loading.get(entry.id) === plugin && loading.delete(entry.id);
      // Whoever has waited for it in vain has it loaded anew.
      signal.addEventListener("abort", forget);
      void plugin.then(() => signal.removeEventListener("abort", forget), forget);
      return plugin;
    },
    resources: (holder) => resourcesOf(parts, holder),
  };
}

async function load(entry: PluginEntry, setup: SetupContext): Promise<Plugin> {
  const plugin: Partial<Plugin> | undefined = await entry.load?.(setup);
  const must = (holds: boolean, what: string) => {
    if (!holds) throw new Error(`plugin ${entry.id}: ${what}`);
  };
  must(isJsonObject(plugin), "load must return an object with id, handle, abort and finalize");
  const { id, handle, abort, finalize, properties } = plugin as Partial<Plugin>;
  for (const [name, call] of Object.entries({ handle, abort, finalize })) {
    must(typeof call === "function", `load returned a plugin whose ${name} is no function`);
  }
  must(id === entry.id, `load returned a plugin with the id ${String(id)}`);
  must(properties === undefined || isJsonObject(properties), "properties must be an object");
  const { generatedNameLengthMax: length } = properties ?? {};
  const isLength = length === undefined || (Number.isInteger(length) && length >= NAME_LENGTH_MIN);
  must(isLength, `properties.generatedNameLengthMax must be a whole number from ${NAME_LENGTH_MIN} on`);
  return plugin as Plugin;
}

function setupOf({ wakeJob, quota }: PluginParts, { id }: PluginEntry, secrets: SecretManager): SetupContext {
  return {
    enqueueOwner: wakeJob,
    secrets,
    registerResourceQuota: async (pool, amount) => {
      if (typeof pool !== "string" || !POOL_NAME.test(pool)) {
        throw new Error(
          "a pool's name must be as gpu/h100 or ex:warehouse: letters, digits, - _ . with / or : between",
        );
      }
      checkAmounts({ [`the quota of pool ${pool}`]: amount }, 0);
      const { manager } = countersOf(quota);
      // What an admin has made of it since stays.
      if ((await manager.getPool(pool)) !== null) return;
      const settings = { name: pool, quota: amount, projectDefault: null, namespaceDefault: null, queue: null };
      const more = { domain: null, defaultLeaseMs: null, maxLeaseMs: null, durability: null };
      const outcome = await manager.registerPool({ ...settings, ...more }, 0, `plugin/${id}`);
      if (outcome.kind !== "done") throw new Error(`pool ${pool} cannot be registered: ${outcome.kind}`);
    },
  };
}

function resourcesOf({ quota }: PluginParts, holder: TaskHolder): ReturnType<PluginHost["resources"]> {
  const { taskName } = holder;
  return {
    allocate: async ({
      pool,
      token = taskName,
      amount = 1,
      constraints: { project = null, namespace = null } = {},
    }) => {
      checkNames({ pool, token });
      checkAmounts({ amount }, 1);
      checkAmounts({ "constraints.project": project, "constraints.namespace": namespace }, 0);
      const caps = { projectCap: project, namespaceCap: namespace };
      return countersOf(quota).tasks.allocate(holder, { pool, token, amount, ...caps });
    },
    release: async ({ pool, token = taskName }) => {
      checkNames({ pool, token });
      await countersOf(quota).tasks.release(holder, { pool, token });
    },
  };
}

/** Names go to every store there is: what none of them could keep is refused here. */
function checkNames(names: Readonly<Record<string, unknown>>): void {
  for (const [member, name] of Object.entries(names)) {
    if (typeof name === "string" && NAME.test(name)) continue;
    throw new Error(`${member} must be 1 to 253 characters of text without control characters`);
  }
}

function checkAmounts(amounts: Readonly<Record<string, unknown>>, min: number): void {
  for (const [member, amount] of Object.entries(amounts)) {
    if (amount === null || (Number.isSafeInteger(amount) && Number(amount) >= min)) continue;
    throw new Error(`${member} must be a whole number from ${min} on`);
  }
}

function countersOf(quota: PluginParts["quota"]): NonNullable<PluginParts["quota"]> {
  if (quota === null) throw new UnavailableError("this process has no counters: workers share them by REDIS_URL");
  return quota;
}

function secretsIn(directory: string | null): SecretManager {
  return {
    get: async (name) => {
      if (!SECRET_NAME.test(name)) throw new Error("a secret's name is letters, digits, dashes, dots and underscores");
      if (directory === null) throw new Error(`there is no secret ${name}: GANGWAY_SECRETS is not set`);
      const value = await readFile(join(directory, name), "utf8").catch(() => null);
      if (value === null) throw new Error(`there is no secret ${name} in the folder that GANGWAY_SECRETS names`);
      return value.replace(/\r?\n$/, "");
    },
  };
}
