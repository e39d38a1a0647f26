import type { IntakeFacts } from "../../src/intake/ports.ts";

/** The priority classes of an installation that has none. */
export const NO_CLASSES: IntakeFacts["priorityClasses"] = {
  default: null,
  find: async () => null,
  names: async () => [],
};
