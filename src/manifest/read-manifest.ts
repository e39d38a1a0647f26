import { create } from "@bufbuild/protobuf";
import type { FieldError, FieldNote, SentSpec } from "../core/job/request/sent.ts";
import { checkSent } from "../core/kinds/check-sent.ts";
import type { Kind } from "../core/kinds/kind.ts";
import { fromManifest, type ManifestRules } from "../core/kinds/manifest/from-manifest.ts";
import type { SentMetadata } from "../core/kinds/manifest/sent-manifest.ts";
import type { Registry } from "../core/kinds/registry.ts";
import { type Job, JobSchema } from "../gen/gangway/v1/job_pb.ts";
import type { Json, JsonObject } from "../runtime/json.ts";
import { isJsonObject, objectAt, stringAt } from "../runtime/json.ts";
import { ignoredMembers } from "./ignored-members.ts";
import { isRuntimeManifest } from "./read-runtime.ts";
import { sentToProto } from "./sent-to-proto.ts";
import { pathSpeller, sourceSpeller } from "./spell-paths.ts";

/** The job of a manifest, or its errors. */
export type ManifestJob =
  | {
      readonly kind: "job";
      readonly job: Job;
      readonly warnings: readonly FieldNote[];
      /** What was taken from members of other systems. */
      readonly notes: readonly FieldNote[];
      /** Renames the service's fields in a text to those of the manifest. */
      readonly spelled: (text: string) => string;
    }
  | { readonly kind: "invalid"; readonly errors: readonly FieldNote[] };

export type { ManifestRules };

/** The namespace for manifests that name none. `isExplicit`: the user set it with --namespace. */
export type DefaultNamespace = { readonly name: string; readonly isExplicit: boolean };

const GANGWAY_VERSION = "gangway.dev/v1";
/** Kinds are DNS labels in Kubernetes. Messages cut longer text. */
const KIND_SHOWN_MAX = 63;
/** Names of other objects may be DNS names. */
const NAME_SHOWN_MAX = 253;

/**
 * Reads a manifest: a job as users of Kubeflow or Kubernetes write it, or a job of gangway.dev/v1, whose spec is the
 * API's JobSpec as JSON. An ignored field is a warning if the job runs the same without it, else an error. The
 * manifest's namespace overrides the default one, but must equal an explicit one.
 */
export function readManifest(
  document: Json,
  { kinds, namespace, ...rules }: ManifestRules & { readonly kinds: Registry; readonly namespace: DefaultNamespace },
): ManifestJob {
  if (!isJsonObject(document))
    return invalid([{ field: "", message: "must be an object with apiVersion, kind, metadata and spec" }]);
  const { apiVersion = null } = document;
  const versions = servedVersions(kinds);
  if (apiVersion === null) return invalid([{ field: "apiVersion", message: `is required: ${versions}` }]);
  if (isRuntimeManifest(document)) return invalid([{ field: "", message: runtimeRefusal(document) }]);
  if (!isOfJob(document, kinds)) {
    const given = `${JSON.stringify(apiVersion)}${ofKind(document["kind"])}`;
    return invalid([{ field: "apiVersion", message: `must be ${versions}, not ${given}` }]);
  }
  const read = fromManifest(document, kinds, rules);
  if (read.kind === "refused")
    return invalid(read.errors.map(({ path, ...error }) => ({ field: path === "kind" ? "" : path, ...error })));
  const { metadata, spec, sources, notes } = read.manifest;
  const kind = kinds.kindOf(spec.kind);
  const bySource = sourceSpeller(sources);
  const ofSpec = specErrors(document, spec, kind).map(({ field, ...error }) => ({ field: bySource(field), ...error }));
  const errors = [...metadataErrors(metadata, namespace), ...ofSpec];
  if (errors.length > 0) return invalid(errors);
  const job = create(JobSchema, {
    metadata: { ...metadata, namespace: metadata.namespace ?? namespace.name },
    spec: sentToProto(spec),
  });
  const form = { isForeign: isForeign(document), kind };
  const places = form.isForeign && kind?.readSpec !== undefined ? OWN_PLACES : replicasIn(document, kind);
  const spelled = pathSpeller({ ...places, liftsKindSpec: form.isForeign, sources });
  const warnings = [...ignoredMembers(document, form), ...read.manifest.warnings];
  return { kind: "job", job, warnings, notes, spelled };
}

/** The member of a manifest's spec that holds the replica specs. `onlyRole`: the type of one that has no name. */
function replicasIn(document: JsonObject, kind: Kind | undefined): { replicaSpecsField: string; onlyRole?: string } {
  const { olderForm } = kind ?? {};
  if (olderForm !== undefined && document["apiVersion"] === olderForm.apiVersion)
    return { replicaSpecsField: olderForm.replicaSpecField, onlyRole: olderForm.role };
  return { replicaSpecsField: (isForeign(document) && kind?.replicaSpecsField) || "replicaSpecs" };
}

/** True for a manifest in the form of another system, such as Kubeflow. */
function isForeign(document: JsonObject): boolean {
  return document["apiVersion"] !== GANGWAY_VERSION;
}

/** True for a job, or for what may be meant as one: `fromManifest` names what is wrong. */
function isOfJob(document: JsonObject, kinds: Registry): boolean {
  const [apiVersion = "", kind = ""] = [stringAt(document, "apiVersion"), stringAt(document, "kind")];
  const isOwn = apiVersion.startsWith("kubeflow.org/") || apiVersion === GANGWAY_VERSION;
  return isOwn || kinds.ofManifest(apiVersion, kind) !== undefined;
}

/** `kubeflow.org/v1, batch/v1 or gangway.dev/v1`. */
function servedVersions({ all }: Registry): string {
  const others = new Set(all.map(({ apiVersion }) => apiVersion).filter((version) => version !== GANGWAY_VERSION));
  return `${[...others].join(", ")} or ${GANGWAY_VERSION}`;
}

/** `Service web`: kind and name of an object of another API. Null for a job, and for what is no object of any API. */
export function foreignName(document: Json, kinds: Registry): string | null {
  const apiVersion = stringAt(document, "apiVersion");
  const kind = stringAt(document, "kind");
  if (!apiVersion || !kind) return null;
  if (isJsonObject(document) && isOfJob(document, kinds)) return null;
  const { name } = objectAt(document, "metadata");
  return `${kind.slice(0, KIND_SHOWN_MAX)} ${typeof name === "string" ? name.slice(0, NAME_SHOWN_MAX) : ""}`.trim();
}

/** Says how a runtime, which stands beside its TrainJobs in many files, gets to the service. */
function runtimeRefusal(document: JsonObject): string {
  const kind = stringAt(document, "kind");
  return `a ${kind} is no job; apply it first with "gangway runtime apply -f FILE", and then submit the jobs`;
}

/** Names the kind in an error, because a file may have several objects. */
function ofKind(kind: Json | undefined): string {
  return typeof kind === "string" && kind !== "" ? `, the version of this ${kind.slice(0, KIND_SHOWN_MAX)}` : "";
}

function invalid(errors: readonly FieldNote[]): ManifestJob {
  return { kind: "invalid", errors };
}

function metadataErrors(metadata: SentMetadata, namespace: DefaultNamespace): FieldNote[] {
  const errors: FieldNote[] = [];
  if (!(metadata.name || metadata.generateName)) errors.push({ field: "metadata.name", message: "is required" });
  const own = metadata.namespace ?? namespace.name;
  if (namespace.isExplicit && own !== namespace.name) {
    errors.push({ field: "metadata.namespace", message: `is ${own}, but --namespace is ${namespace.name}` });
  }
  return errors;
}

/** Returns the kind's errors, with the fields as this manifest spells them. */
function specErrors(document: JsonObject, spec: SentSpec, kind: Kind | undefined): FieldNote[] {
  if (kind === undefined) return [];
  const isKubeflow = isForeign(document) && kind.readSpec === undefined;
  const { replicaSpecsField, onlyRole } = replicasIn(document, kind);
  const replicas = onlyRole === undefined ? [REPLICA_SPECS] : [`${REPLICA_SPECS}.${onlyRole}`, REPLICA_SPECS];
  const spelled = ({ path, ...error }: FieldError): FieldNote => {
    if (!isKubeflow) return { field: path, ...error };
    const before = replicas.find((one) => path === one || path.startsWith(`${one}.`));
    const own = before === undefined ? path : `spec.${replicaSpecsField}${path.slice(before.length)}`;
    return { field: own.replace(/^spec\.kindSpec\./, "spec."), ...error };
  };
  return checkSent(kind, spec).map(spelled);
}

const REPLICA_SPECS = "spec.replicaSpecs";
/** For kinds that say themselves where their manifests have each member. */
const OWN_PLACES = { replicaSpecsField: "replicaSpecs" };
