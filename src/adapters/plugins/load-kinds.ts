/**
 * Loads the modules that GANGWAY_PLUGINS names, so that a team can serve kinds of jobs that Gangway does not bring.
 */

import { createRequire } from "node:module";
import { isAbsolute, join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import type { PluginEntry } from "../../core/kinds/plugin.ts";
import { createRegistry, OWN_ENTRY, type Registry } from "../../core/kinds/registry.ts";
import { append } from "../../runtime/lists.ts";
import { thrownText } from "../../runtime/thrown-text.ts";

/** A module may wait for something that never comes. Its import fails after this time. */
const IMPORT_MS_MAX = 30_000;

/**
 * Loads the kinds of these modules, to be served beside the kinds that Gangway brings. A name that begins with `.` or
 * `/` is a path, relative to the working directory; any other name is a package.
 * @throws Error naming the module and what is wrong with it.
 */
export async function loadKinds(
  modules: readonly string[],
  workingDirectory: string,
  importMsMax = IMPORT_MS_MAX,
): Promise<Registry> {
  const entries: PluginEntry[] = [];
  for (const name of modules) {
    append(entries, await entriesOf(name, { workingDirectory, importMsMax }));
  }
  try {
    return createRegistry([OWN_ENTRY, ...entries]);
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

/** The timer keeps the process running: without it, Node would exit silently if nothing else is pending. */
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
    // A package that has only ES modules does not resolve here. The import then resolves it from this file.
    return name;
  }
}

/**
 * Reports a rejection that a plugin does not handle instead of ending the process, until the parts are closed. Does
 * nothing if no plugin is loaded. An exception outside of any promise still ends the process, as everywhere in Node.
 */
export function surviveUnhandledRejections(
  parts: AsyncDisposableStack,
  kinds: Registry,
  onError: (error: unknown) => void,
): void {
  if (kinds.all.length === OWN_ENTRY.kinds.length) return;
  process.on("unhandledRejection", onError);
  parts.defer(() => void process.off("unhandledRejection", onError));
}
