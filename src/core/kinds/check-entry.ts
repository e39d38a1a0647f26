import { isJsonObject } from "../../runtime/json.ts";
import { checkKind } from "./check-kind.ts";
import type { PluginEntry } from "./plugin.ts";

const ID = /^[A-Za-z0-9][-A-Za-z0-9._/@]{0,127}$/;
const MEMBERS: readonly (keyof PluginEntry)[] = ["id", "kinds", "isDefault", "load"];

/** Looks at what a module says its plugin is, whatever that may be. @throws Error naming the member and what it must be. */
export function checkEntry(entry: unknown): asserts entry is PluginEntry {
  if (!isJsonObject(entry)) throw new Error("a plugin must be an object with id and kinds");
  const { id, kinds, isDefault, load } = entry as Record<string, unknown>;
  if (typeof id !== "string" || !ID.test(id)) {
    throw new Error("a plugin's id must be 1 to 128 letters, digits, dashes, dots, slashes and @");
  }
  const must = (holds: boolean, what: string) => {
    if (!holds) throw new Error(`plugin ${id}: ${what}`);
  };
  const unknown = Object.keys(entry).find((member) => !MEMBERS.some((known) => known === member));
  must(unknown === undefined, `${unknown} is no member of a plugin; these are: ${MEMBERS.join(", ")}`);
  must(Array.isArray(kinds) && kinds.length > 0, "kinds must be a list of one kind or more");
  must(isDefault === undefined || typeof isDefault === "boolean", "isDefault must be true or false");
  must(load === undefined || typeof load === "function", "load must be a function");
  for (const kind of kinds as readonly unknown[]) checkKind(kind, must);
  const services = (kinds as PluginEntry["kinds"]).filter(({ runs }) => runs === "service");
  must(services.length === 0 || load !== undefined, `load is needed, because ${services[0]?.name} runs a service`);
}
