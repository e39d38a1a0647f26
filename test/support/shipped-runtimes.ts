/** The training runtimes that every installation has, for tests without a service. */
import type { ManifestFacts } from "../../src/core/kinds/manifest/read-spec.ts";
import { shippedRuntime } from "../../src/core/kinds/trainjob/shipped-runtimes.ts";
import type { RuntimeName } from "../../src/core/kinds/trainjob/training-runtime.ts";

export const shippedRuntimeOf: ManifestFacts["runtimeOf"] = ({ kind, name }) => {
  return kind === "ClusterTrainingRuntime" ? (shippedRuntime({ namespace: "", name })?.spec ?? null) : null;
};

export async function findShippedRuntime(named: RuntimeName) {
  return shippedRuntime(named)?.spec ?? null;
}
