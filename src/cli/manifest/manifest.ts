import { create } from "@bufbuild/protobuf";
import type { FieldError, FieldNote, SentSpec } from "../../core/job/sent.ts";
import { checkSent } from "../../core/kinds/check-sent.ts";
import { fromManifest, type Manifest } from "../../core/kinds/from-manifest.ts";
import { kindOf } from "../../core/kinds/registry.ts";
import { type Job, JobSchema } from "../../gen/gangway/v1/job_pb.ts";
import type { Json, JsonObject } from "../../runtime/json.ts";
import { isJsonObject, objectAt } from "../../runtime/json.ts";
import { sentToProto } from "./sent-to-proto.ts";

/** A manifest as a job that can be sent, or everything that is wrong with it. */
export type ManifestOutcome =
  | { readonly kind: "job"; readonly job: Job; readonly warnings: readonly FieldNote[] }
  | { readonly kind: "invalid"; readonly errors: readonly FieldNote[] };

/** The namespace of manifests that name none; explicit if the user asked for it. */
export type DefaultNamespace = { readonly name: string; readonly isExplicit: boolean };

const MEMBERS = ["apiVersion", "kind", "metadata", "spec"];
const METADATA = ["name", "generateName", "namespace", "labels", "annotations"];
const KUBEFLOW = "kubeflow.org/v1";
const OURS = "gangway.dev/v1";
/** Kinds are DNS labels in Kubernetes; what is longer is none. */
const KIND_SHOWN_MAX = 63;

/**
 * Reads a manifest: a job of kubeflow.org/v1 as Kubeflow's users write it, or a job of gangway.dev/v1, whose spec is the
 * proto's in JSON. What would run another job than was meant is an error, what makes no difference is a warning. A namespace in the
 * manifest goes before the default, and conflicts with another one that was asked for.
 */
export function readManifest(document: Json, namespace: DefaultNamespace): ManifestOutcome {
  if (!isJsonObject(document))
    return invalid({ field: "", message: "must be an object with apiVersion, kind, metadata and spec" });
  const { apiVersion = null } = document;
  if (apiVersion === null) {
    return invalid({ field: "apiVersion", message: `is required: ${KUBEFLOW} or ${OURS}` });
  }
  // Other versions of Kubeflow's kinds are refused by the kind's name.
  if (!`${apiVersion}`.startsWith("kubeflow.org/") && apiVersion !== OURS) {
    return invalid({
      field: "apiVersion",
      message: `must be ${KUBEFLOW} or ${OURS}, not ${JSON.stringify(apiVersion)}${ofKind(document["kind"])}`,
    });
  }
  const read = fromManifest(document);
  if (read.kind === "refused")
    return invalid(...read.errors.map(({ path, message }) => ({ field: path === "kind" ? "" : path, message })));
  const { metadata, spec } = read.manifest;
  const errors = [...metadataErrors(metadata, namespace), ...specErrors(document, spec)];
  if (errors.length > 0) return invalid(...errors);
  const job = create(JobSchema, {
    metadata: { ...metadata, namespace: metadata.namespace ?? namespace.name },
    spec: sentToProto(spec),
  });
  return { kind: "job", job, warnings: otherMembers(document) };
}

/** Says which object of a file with several it is about. */
function ofKind(kind: Json | undefined): string {
  return typeof kind === "string" && kind !== "" ? `, the version of this ${kind.slice(0, KIND_SHOWN_MAX)}` : "";
}

function invalid(...errors: readonly FieldNote[]): ManifestOutcome {
  return { kind: "invalid", errors };
}

function metadataErrors(metadata: Manifest["metadata"], namespace: DefaultNamespace): FieldNote[] {
  const errors: FieldNote[] = [];
  if (!(metadata.name || metadata.generateName)) errors.push({ field: "metadata.name", message: "is required" });
  const own = metadata.namespace ?? namespace.name;
  if (namespace.isExplicit && own !== namespace.name) {
    errors.push({ field: "metadata.namespace", message: `is ${own}, but --namespace says ${namespace.name}` });
  }
  return errors;
}

/** What the kind finds wrong, at the fields as this manifest spells them. */
function specErrors(document: JsonObject, spec: SentSpec): FieldNote[] {
  const kind = kindOf(spec.kind);
  if (kind === undefined) return [];
  const isKubeflow = document["apiVersion"] === KUBEFLOW;
  const spelled = ({ path, message }: FieldError): FieldNote => {
    const field = isKubeflow
      ? path.replace(/^spec\.kindSpec\./, "spec.").replace(/^spec\.replicaSpecs\b/, `spec.${kind.replicaSpecsField}`)
      : path;
    return { field, message };
  };
  return checkSent(kind, spec).map(spelled);
}

/** Members that say nothing about the job to make, such as the status of one that was read back. */
function otherMembers(document: JsonObject): FieldNote[] {
  const outer = Object.keys(document).filter((member) => !MEMBERS.includes(member));
  const inner = Object.keys(objectAt(document, "metadata")).filter((member) => !METADATA.includes(member));
  return [...outer, ...inner.map((member) => `metadata.${member}`)].map((field) => ({ field, message: "is ignored" }));
}
