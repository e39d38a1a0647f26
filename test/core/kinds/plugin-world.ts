import { type PluginEntry, serviceKind } from "../../../src/core/kinds/plugin.ts";

/** A kind without pods, for tests that call the plugin themselves. */
export const ETL = serviceKind({
  name: "EtlJob",
  description: "Runs a query at a warehouse.",
  kindSpec: { query: { type: "string" } },
});

export const etlEntry: PluginEntry = {
  id: "etl",
  kinds: [ETL],
  load: () => {
    throw new Error("these tests call nothing");
  },
};
