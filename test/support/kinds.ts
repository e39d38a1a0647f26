import type { PluginEntry } from "../../src/core/kinds/plugin.ts";
import { createRegistry, OWN_ENTRY, type Registry } from "../../src/core/kinds/registry.ts";

/** The kinds that are served without plugins. */
export const OWN_KINDS = kindsWith();

/** Our own kinds, and those of these plugins. */
export function kindsWith(...entries: readonly PluginEntry[]): Registry {
  return createRegistry([OWN_ENTRY, ...entries]);
}
