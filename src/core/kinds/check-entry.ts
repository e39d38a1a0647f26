import { isJsonObject } from "../../runtime/json.ts";
import type { PluginEntry } from "./plugin.ts";

const ID = /^[A-Za-z0-9][-A-Za-z0-9._/@]{0,127}$/;
const KIND_NAME = /^[A-Za-z][A-Za-z0-9]{0,62}$/;
const TEXTS = ["description", "apiVersion", "replicaSpecsField", "operatorName"] as const;
const FUNCTIONS = ["roleName", "validate", "clusterSpec", "objects", "isMaster", "verdict"] as const;
const OBJECTS = ["defaults", "kindSpecSchema", "example"] as const;

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
  must(Array.isArray(kinds) && kinds.length > 0, "kinds must be a list of one kind or more");
  must(isDefault === undefined || typeof isDefault === "boolean", "isDefault must be true or false");
  must(load === undefined || typeof load === "function", "load must be a function");
  for (const kind of kinds as readonly unknown[]) checkKind(kind, must);
  const services = (kinds as PluginEntry["kinds"]).filter(({ runs }) => runs === "service");
  must(services.length === 0 || load !== undefined, `load is needed, because ${services[0]?.name} runs a service`);
}

function checkKind(kind: unknown, must: (holds: boolean, what: string) => void): void {
  must(isJsonObject(kind), "a kind must be an object, as podKind and serviceKind make them");
  const members = kind as Record<string, unknown>;
  const { name, runs = "pods", roles } = members;
  must(typeof name === "string" && KIND_NAME.test(name), "a kind's name must be a letter, then letters and digits");
  must(runs === "pods" || runs === "service", `${name}.runs must be pods or service`);
  must(roles === null || Array.isArray(roles), `${name}.roles must be a list or null`);
  for (const member of TEXTS) must(typeof members[member] === "string", `${name}.${member} must be text`);
  for (const member of FUNCTIONS) must(typeof members[member] === "function", `${name}.${member} must be a function`);
  for (const member of OBJECTS) must(isJsonObject(members[member]), `${name}.${member} must be an object`);
}
