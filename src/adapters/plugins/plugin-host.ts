/** Gives the worker the plugins of its kinds, and gives each plugin the tokens and secrets that it may use. */

import { join } from "node:path";
import { TASK_NAME_LENGTHS } from "../../core/job/names.ts";
import type { Plugin, PluginEntry, ResourceManager, SecretManager, SetupContext } from "../../core/kinds/plugin.ts";
import {
  type DataStore,
  metricsScope,
  NO_PLATFORM,
  NO_STORE,
  type PlatformFacts,
  type PluginMeasure,
} from "../../core/kinds/plugin-services.ts";
import type { Registry } from "../../core/kinds/registry.ts";
import type { TaskAllocation } from "../../core/quota/calls.ts";
import type { TokenName } from "../../core/quota/counters.ts";
import { isJsonObject } from "../../runtime/json.ts";
import { FileTooLarge, readBoundedFile } from "../../runtime/read-bounded-file.ts";
import { UnavailableError } from "../../runtime/unavailable-error.ts";

/** The kind of the owner that `enqueueOwner` wakes: a job. It is no object of a cluster. */
const OWNER_KIND = "gangway.dev/Job";
const NAME = /^[^\p{Cc}\p{Cs}]{1,253}$/u;
/** The resource manager's API checks the names of pools in the same way. */
const POOL_NAME = /^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?([/:][A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)*$/;
const SECRET_NAME = /^[A-Za-z0-9][-A-Za-z0-9._]{0,252}$/;

/** As much as a Secret of Kubernetes holds. */
const SECRET_LIMIT = { bytesMax: 1024 * 1024, regularOnly: true };

const POOL_NAME_CHARS_MAX = 128;

function isPoolName(text: string): boolean {
  return text.length <= POOL_NAME_CHARS_MAX && POOL_NAME.test(text);
}

/** A task's name that is too long is shortened to a hash of this length. */
const NAME_LENGTH_MIN = 14;

export type PluginHostPorts<Holder> = {
  readonly kinds: Registry;
  /** The folder of the operator's secrets, one file for each. Null: there are no secrets. */
  readonly secretsDirectory: string | null;
  readonly wakeJob: (jobUid: string) => void;
  /** Opens the places of objects with these secrets. Omitted: there are none. */
  readonly openStores?: (secrets: SecretManager) => (namespace: string, signal: AbortSignal) => DataStore;
  /** The platform's settings for pods of a namespace. Omitted: there are none. */
  readonly platformOf?: (namespace: string) => PlatformFacts;
  /** Called with what plugins measure themselves. Omitted: nothing is measured. */
  readonly pluginCounted?: (facts: PluginMeasure & { readonly by: number }) => void;
  readonly pluginTimed?: (facts: PluginMeasure & { readonly tookMs: number }) => void;
  /** Null: this process has no counters. */
  readonly tokens: {
    readonly poolExists: (pool: string) => Promise<boolean>;
    /** Returns `done`, or the kind of the refusal. */
    readonly registerPool: (pool: string, quota: number, registeredBy: string) => Promise<string>;
    readonly allocate: (holder: Holder, allocation: TaskAllocation) => ReturnType<ResourceManager["allocate"]>;
    readonly release: (holder: Holder, token: TokenName) => Promise<void>;
  } | null;
};

/**
 * Loads each plugin once, at the first call that needs it. `Holder` is the record that the worker and the tokens stage
 * share; the host reads only the task's name of it.
 */
export function createPluginHost<Holder extends { readonly taskName: string }>(ports: PluginHostPorts<Holder>) {
  const secrets = secretsIn(ports.secretsDirectory);
  const loading = new Map<string, Promise<Plugin>>();
  return {
    secrets,
    pluginOf: (kind: string, signal: AbortSignal): Promise<Plugin> => {
      const entry = ports.kinds.entryOf(kind);
      if (entry?.load === undefined) throw new Error(`there is no plugin for kind ${kind}`);
      const known = loading.get(entry.id);
      const plugin = known ?? load(entry, setupOf(ports, entry, secrets));
      loading.set(entry.id, plugin);
      const forget = () => loading.get(entry.id) === plugin && loading.delete(entry.id);
      // After a failed or aborted load, the next call loads the plugin again.
      signal.addEventListener("abort", forget);
      void plugin.then(() => signal.removeEventListener("abort", forget), forget);
      return plugin;
    },
    resources: (holder: Holder): ResourceManager => resourcesOf(ports, holder),
    storeOf: ports.openStores?.(secrets) ?? (() => NO_STORE),
    platformOf: ports.platformOf ?? (() => NO_PLATFORM),
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
    must(typeof call === "function", `load returned a plugin whose ${name} is not a function`);
  }
  must(id === entry.id, `load returned a plugin with the id ${String(id)}`);
  must(properties === undefined || isJsonObject(properties), "properties must be an object");
  const {
    generatedNameLengthMax: length = TASK_NAME_LENGTHS.max,
    generatedNameLengthMin: min = TASK_NAME_LENGTHS.min,
  } = properties ?? {};
  const isLength = Number.isInteger(length) && length >= NAME_LENGTH_MIN;
  must(isLength, `properties.generatedNameLengthMax must be a whole number of at least ${NAME_LENGTH_MIN}`);
  const isMin = Number.isInteger(min) && min >= 0 && min <= length;
  must(isMin, `properties.generatedNameLengthMin is ${min}: it must be a whole number from 0 to ${length}`);
  return plugin as Plugin;
}

function setupOf<Holder>(
  { wakeJob, tokens, pluginCounted, pluginTimed }: PluginHostPorts<Holder>,
  { id }: PluginEntry,
  secrets: SecretManager,
): SetupContext {
  return {
    enqueueOwner: wakeJob,
    secrets,
    ownerKind: OWNER_KIND,
    metrics: metricsScope({
      counted: (facts) => pluginCounted?.({ plugin: id, ...facts }),
      timed: (facts) => pluginTimed?.({ plugin: id, ...facts }),
    }),
    registerResourceQuota: async (pool, amount) => {
      if (typeof pool !== "string" || !isPoolName(pool)) {
        throw new Error(
          "a pool's name must be like gpu/h100 or ex:warehouse: letters, digits, - _ . and / or : between them",
        );
      }
      checkAmounts({ [`the quota of pool ${pool}`]: amount }, 0);
      const { poolExists, registerPool } = countersOf(tokens);
      // An admin may have changed the pool since: it stays as it is.
      if (await poolExists(pool)) return;
      const outcome = await registerPool(pool, amount, `plugin/${id}`);
      if (outcome !== "done") throw new Error(`pool ${pool} cannot be registered: ${outcome}`);
    },
  };
}

function resourcesOf<Holder extends { readonly taskName: string }>(
  { tokens }: PluginHostPorts<Holder>,
  holder: Holder,
): ResourceManager {
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
      return countersOf(tokens).allocate(holder, { pool, token, amount, ...caps });
    },
    release: async ({ pool, token = taskName }) => {
      checkNames({ pool, token });
      await countersOf(tokens).release(holder, { pool, token });
    },
  };
}

/** Refuses names that one of the stores could not keep. */
function checkNames(names: Readonly<Record<string, unknown>>): void {
  for (const [member, name] of Object.entries(names)) {
    if (typeof name === "string" && NAME.test(name)) continue;
    throw new Error(`${member} must be 1 to 253 characters of text without control characters`);
  }
}

function checkAmounts(amounts: Readonly<Record<string, unknown>>, min: number): void {
  for (const [member, amount] of Object.entries(amounts)) {
    if (amount === null || (Number.isSafeInteger(amount) && Number(amount) >= min)) continue;
    throw new Error(`${member} must be a whole number of at least ${min}`);
  }
}

function countersOf<Tokens>(tokens: Tokens | null): Tokens {
  if (tokens !== null) return tokens;
  throw new UnavailableError("this process has no token counters: set REDIS_URL, so that workers share them");
}

function secretsIn(directory: string | null): SecretManager {
  return {
    get: async (name) => {
      if (!SECRET_NAME.test(name)) {
        throw new Error("a secret's name must be 1 to 253 letters, digits, dashes, dots and underscores");
      }
      if (directory === null) throw new Error(`there is no secret ${name}: GANGWAY_SECRETS is not set`);
      const value = await readBoundedFile(join(directory, name), SECRET_LIMIT).catch((error: unknown) => {
        if (!(error instanceof FileTooLarge)) return null;
        throw new Error(`the secret ${name} has more than ${error.bytesMax} bytes`);
      });
      if (value === null) throw new Error(`there is no secret ${name} in the folder that GANGWAY_SECRETS names`);
      return value.replace(/\r?\n$/, "");
    },
  };
}
