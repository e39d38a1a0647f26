/** The training runtimes of a case, and those that are always there. */
import type { ManifestFacts } from "../../../../src/core/kinds/manifest/read-spec.ts";
import { SHIPPED_RUNTIMES } from "../../../../src/core/kinds/trainjob/shipped-runtimes.ts";
import { type Json, type JsonObject, objectAt, stringAt } from "../../../../src/runtime/json.ts";

/** `made`: the runtimes of the case's namespace. */
export function runtimesOf(made: readonly Json[]): ManifestFacts["runtimeOf"] {
  const own = new Map(made.map((one) => [stringAt(objectAt(one, "metadata"), "name") ?? "", objectAt(one, "spec")]));
  return ({ kind, name }) => {
    if (kind === "TrainingRuntime") return withoutDropped(own.get(name) ?? null);
    return SHIPPED_RUNTIMES.find((shipped) => shipped.name === name)?.spec ?? null;
  };
}

/** The API servers of the cases had dropped a member of Trainer 2.1 that Gangway takes. */
function withoutDropped(spec: JsonObject | null): JsonObject | null {
  if (spec === null) return null;
  const policies = objectAt(spec, "mlPolicy");
  const { numProcPerNode: _dropped, ...torch } = objectAt(policies, "torch");
  return policies["torch"] === undefined ? spec : { ...spec, mlPolicy: { ...policies, torch } };
}

/** The same of a manifest. */
export function asStored(manifest: JsonObject): JsonObject {
  if (manifest["kind"] !== "TrainJob") return manifest;
  const { podTemplateOverrides: _dropped, ...spec } = objectAt(manifest, "spec");
  return { ...manifest, spec };
}
