import { fromJson } from "@bufbuild/protobuf";
import type { FieldNote } from "../../core/job/sent.ts";
import type { Job } from "../../gen/gangway/v1/job_pb.ts";
import { JobSchema, JobSpecSchema, MetadataSchema } from "../../gen/gangway/v1/job_pb.ts";
import type { Json, JsonObject } from "../../runtime/json.ts";
import { isJsonObject, stringAt } from "../../runtime/json.ts";
import { type Found, KUBEFLOW_KINDS, readKubeflowSpec } from "./kubeflow.ts";
import { readProtoJson } from "./proto-json.ts";

/** A manifest as a job that can be sent, or everything that is wrong with it. */
export type ManifestOutcome =
  | { readonly kind: "job"; readonly job: Job; readonly warnings: readonly FieldNote[] }
  | { readonly kind: "invalid"; readonly errors: readonly FieldNote[] };

/** The namespace of manifests that name none; explicit if the user asked for it. */
export type DefaultNamespace = { readonly name: string; readonly isExplicit: boolean };

const KUBEFLOW = "kubeflow.org/v1";
const OURS = "gangway.dev/v1";
const SERVED_KINDS = [...KUBEFLOW_KINDS, "Job"];
/** Known kinds that are not served; any other name is unknown. */
const UNSERVED_KINDS = ["MPIJob", "XGBoostJob", "PaddleJob", "JAXJob", "Caffe2Job"];

const METADATA = ["name", "generateName", "namespace", "labels", "annotations"];
/** What a manifest carries that was read back from a cluster; it says nothing about the job to make. */
const READ_BACK = ["uid", "resourceVersion", "generation", "creationTimestamp", "managedFields", "selfLink"];

/**
 * Reads a manifest: a PyTorchJob or TFJob of kubeflow.org/v1 as Kubeflow's users write it, or a job of gangway.dev/v1, whose spec is the
 * proto's in JSON. `namespace` is for manifests that name none; another one in the manifest is a conflict if it was asked for explicitly.
 */
export function readManifest(document: Json, namespace: DefaultNamespace): ManifestOutcome {
  if (!isJsonObject(document)) return invalid("", "must be an object with apiVersion, kind, metadata and spec");
  const apiVersion = stringAt(document, "apiVersion") ?? "";
  const kind = stringAt(document, "kind") ?? "";
  const refusal = headProblem(apiVersion, kind);
  if (refusal !== null) return { kind: "invalid", errors: [refusal] };

  const found: Found = { errors: [], warnings: [] };
  noteOtherMembers(document, found);
  const metadata = readMetadata(document["metadata"] ?? null, found);
  const spec = readSpec(apiVersion, kind, document["spec"] ?? null, found);
  const ownNamespace = stringAt(metadata, "namespace") ?? "";
  if (namespace.isExplicit && ownNamespace !== "" && ownNamespace !== namespace.name) {
    const message = `is ${ownNamespace}, but --namespace says ${namespace.name}`;
    found.errors.push({ field: "metadata.namespace", message });
  }
  if (found.errors.length > 0) return { kind: "invalid", errors: found.errors };
  const job = fromJson(JobSchema, {
    metadata: { ...metadata, namespace: ownNamespace || namespace.name },
    spec,
  } as never);
  return { kind: "job", job, warnings: found.warnings };
}

function invalid(field: string, message: string): ManifestOutcome {
  return { kind: "invalid", errors: [{ field, message }] };
}

function headProblem(apiVersion: string, kind: string): FieldNote | null {
  if (apiVersion !== KUBEFLOW && apiVersion !== OURS) {
    const given = apiVersion === "" ? "is missing; it must be" : `is ${apiVersion}, but must be`;
    return { field: "apiVersion", message: `${given} ${KUBEFLOW} or ${OURS}` };
  }
  if (kind === "") return { field: "kind", message: `is missing; there are ${SERVED_KINDS.join(", ")}` };
  if (UNSERVED_KINDS.includes(kind)) return { field: "kind", message: `${kind} is not served yet` };
  if (!SERVED_KINDS.includes(kind)) {
    return { field: "kind", message: `${kind} is not known; there are ${SERVED_KINDS.join(", ")}` };
  }
  if (apiVersion === KUBEFLOW && !KUBEFLOW_KINDS.includes(kind)) {
    return { field: "apiVersion", message: `of a ${kind} must be ${OURS}` };
  }
  return null;
}

function noteOtherMembers(document: JsonObject, found: Found): void {
  for (const member of Object.keys(document)) {
    if (["apiVersion", "kind", "metadata", "spec"].includes(member)) continue;
    if (member === "status") found.warnings.push({ field: member, message: "is ignored" });
    else found.errors.push({ field: member, message: "is not a field; there are apiVersion, kind, metadata, spec" });
  }
}

function readMetadata(value: Json, found: Found): JsonObject {
  if (!isJsonObject(value)) {
    found.errors.push({ field: "metadata", message: "must be an object with at least a name" });
    return {};
  }
  const metadata: Record<string, Json> = {};
  for (const [member, inner] of Object.entries(value)) {
    const field = `metadata.${member}`;
    if (inner === undefined || inner === null) continue;
    if (READ_BACK.includes(member)) found.warnings.push({ field, message: "is ignored" });
    else if (!METADATA.includes(member)) {
      found.errors.push({ field, message: `is not a field; there are ${METADATA.join(", ")}` });
    } else metadata[member] = inner;
  }
  const read = readProtoJson(MetadataSchema, metadata, "metadata", found.errors);
  if (!(read["name"] || read["generateName"])) found.errors.push({ field: "metadata.name", message: "is missing" });
  return read;
}

function readSpec(apiVersion: string, kind: string, value: Json, found: Found): JsonObject {
  if (!isJsonObject(value)) {
    found.errors.push({ field: "spec", message: "must be an object" });
    return {};
  }
  if (apiVersion === KUBEFLOW) return readKubeflowSpec(kind, value, found);
  const spec = readProtoJson(JobSpecSchema, value, "spec", found.errors);
  if (spec["kind"] !== undefined && spec["kind"] !== kind) {
    found.errors.push({
      field: "spec.kind",
      message: `is ${String(spec["kind"])}, but the manifest's kind is ${kind}`,
    });
  }
  return { ...spec, kind };
}
