/** The training runtimes that every installation has, for tests without a service. */
import type { ManifestFacts } from "../../src/core/kinds/manifest/read-spec.ts";
import { SHIPPED_RUNTIMES } from "../../src/core/kinds/trainjob/shipped-runtimes.ts";

export const shippedRuntimeOf: ManifestFacts["runtimeOf"] = ({ kind, name }) => {
  if (kind !== "ClusterTrainingRuntime") return null;
  return SHIPPED_RUNTIMES.find((runtime) => runtime.name === name)?.spec ?? null;
};

export async function findShippedRuntime({ namespace, name }: { readonly namespace: string; readonly name: string }) {
  return namespace === "" ? shippedRuntimeOf({ kind: "ClusterTrainingRuntime", name }) : null;
}
