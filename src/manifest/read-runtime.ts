/** Reads a training runtime as users of Kubeflow Trainer write it. */
import { joinErrors } from "../core/job/request/notes.ts";
import type { FieldNote } from "../core/job/request/sent.ts";
import { SentReader } from "../core/kinds/manifest/sent-reader.ts";
import { runtimeErrors } from "../core/kinds/trainjob/check-runtime.ts";
import {
  RUNTIME_KINDS,
  type RuntimeName,
  type RuntimeSettings,
  runtimeKind,
  TRAINER_API_VERSION,
  TRAINER_GROUP,
} from "../core/kinds/trainjob/training-runtime.ts";
import { type Json, type JsonObject, stringAt } from "../runtime/json.ts";

/** The runtime of a manifest, or its errors. */
type ManifestRuntime =
  | { readonly kind: "runtime"; readonly runtime: RuntimeSettings }
  | { readonly kind: "invalid"; readonly errors: readonly FieldNote[] };

/** The namespace for manifests that name none. `isExplicit`: the user set it with --namespace. */
type DefaultNamespace = { readonly name: string; readonly isExplicit: boolean };

/** True for a TrainingRuntime and a ClusterTrainingRuntime, of any version. */
export function isRuntimeManifest(document: Json): document is JsonObject {
  const isOfTrainer = stringAt(document, "apiVersion")?.startsWith(`${TRAINER_GROUP}/`) === true;
  return isOfTrainer && RUNTIME_KINDS.some((kind) => kind === stringAt(document, "kind"));
}

/**
 * Reads a manifest of a runtime. Members of its metadata that a cluster writes are ignored. The manifest's namespace
 * overrides the default one, but must equal an explicit one.
 */
export function readRuntime(document: JsonObject, namespace: DefaultNamespace): ManifestRuntime {
  const reader = new SentReader();
  if (document["apiVersion"] !== TRAINER_API_VERSION) reader.fail("apiVersion", `must be ${TRAINER_API_VERSION}`);
  reader.onlyKnown(document, "", ["apiVersion", "kind", "metadata", "spec", "status"]);
  const metadata = reader.object(document["metadata"], "metadata") ?? {};
  const name = reader.text(metadata["name"], "metadata.name") ?? "";
  if (name === "") reader.fail("metadata.name", "is required");
  const labels = reader.textMap(metadata["labels"], "metadata.labels") ?? {};
  const own = readNamespace(reader, metadata["namespace"], { kind: document["kind"], namespace });
  const spec = reader.object(document["spec"] ?? {}, "spec");
  const errors = joinErrors("", reader.errors, spec === undefined ? [] : runtimeErrors(spec));
  if (spec !== undefined && errors.length === 0)
    return { kind: "runtime", runtime: { namespace: own, name, labels, spec } };
  return { kind: "invalid", errors: errors.map(({ path, ...error }) => ({ field: path, ...error })) };
}

/** The namespace of a runtime; empty for one of the installation. */
function readNamespace(
  reader: SentReader,
  value: Json | undefined,
  { kind, namespace }: { readonly kind: Json | undefined; readonly namespace: DefaultNamespace },
): string {
  const path = "metadata.namespace";
  const own = reader.text(value, path) || undefined;
  if (kind === "ClusterTrainingRuntime") {
    if (own !== undefined) reader.fail(path, "must be omitted: a ClusterTrainingRuntime belongs to the installation");
    return "";
  }
  if (namespace.isExplicit && own !== undefined && own !== namespace.name) {
    reader.fail(path, `is ${own}, but --namespace is ${namespace.name}`);
  }
  return own ?? namespace.name;
}

/** The manifest of a runtime. Omitted spec: the runtime comes from a list. */
export function runtimeManifest(
  runtime: RuntimeName & { readonly labels: Readonly<Record<string, string>>; readonly spec?: JsonObject | undefined },
): JsonObject {
  const { namespace, name, labels, spec } = runtime;
  return {
    apiVersion: TRAINER_API_VERSION,
    kind: runtimeKind(runtime),
    metadata: {
      name,
      ...(namespace === "" ? {} : { namespace }),
      ...(Object.keys(labels).length === 0 ? {} : { labels }),
    },
    ...(spec === undefined ? {} : { spec }),
  };
}
