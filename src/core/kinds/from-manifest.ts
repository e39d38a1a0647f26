import { canonicalJson, isJsonObject, type Json, type JsonObject, objectAt } from "../../runtime/json.ts";
import type { FieldError, SentReplicaSpec, SentRunPolicy, SentSchedulingPolicy, SentSpec } from "../job/sent.ts";
import type { CleanPodPolicy, RestartPolicy, RestartScope } from "../job/spec.ts";
import { isService } from "./kind.ts";
import { kindOf, servedKinds, UNSERVED_KINDS } from "./registry.ts";
import { SentReader, sentOnly } from "./sent-reader.ts";

/** The metadata that a manifest may give a job. */
export type SentMetadata = {
  readonly name?: string;
  readonly generateName?: string;
  readonly namespace?: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
};

export type Manifest = { readonly metadata: SentMetadata; readonly spec: SentSpec };

export type ManifestOutcome =
  | { readonly kind: "read"; readonly manifest: Manifest }
  | { readonly kind: "refused"; readonly errors: readonly FieldError[] };

const CLEAN_POD_POLICIES: readonly CleanPodPolicy[] = ["All", "Running", "None"];
const RESTART_POLICIES: readonly RestartPolicy[] = ["Always", "OnFailure", "Never", "ExitCode"];
const RESTART_SCOPES: readonly RestartScope[] = ["REPLICA", "GANG"];
const OWN_API_VERSION = "gangway.dev/v1";
const OWN_SPEC_FIELDS = ["kind", "replicaSpecs", "runPolicy", "kindSpec", "inputs", "priority", "placement"];

/**
 * Reads a manifest: Kubeflow's (`kubeflow.org/v1`, whose own members of `spec` become the kind spec) or ours (`gangway.dev/v1`, the
 * proto's JSON names). Nothing is defaulted. Refused with every wrong field; never throws, whatever the JSON holds.
 */
export function fromManifest(doc: JsonObject): ManifestOutcome {
  const reader = new SentReader();
  const apiVersion = reader.text(doc["apiVersion"], "apiVersion");
  const own = apiVersion === OWN_API_VERSION;
  const kindName = readKindName(reader, doc, own);
  if (kindName === null) return { kind: "refused", errors: reader.errors };
  const metadata = readMetadata(reader, reader.object(doc["metadata"], "metadata") ?? {});
  checkApiVersion(reader, { apiVersion, kindName });
  if (reader.errors.length > 0) return { kind: "refused", errors: reader.errors };
  const spec = reader.object(doc["spec"], "spec") ?? reader.fail("spec", "is required") ?? {};
  const sent = own ? readOwn(reader, kindName, spec) : readKubeflow(reader, { kindName, spec });
  if (reader.errors.length > 0) return { kind: "refused", errors: reader.errors };
  return { kind: "read", manifest: { metadata, spec: sent } };
}

/** The kind that a document asks for, null if it is not served. `kind: Job` of ours may name another in `spec.kind`, as the API's JSON does. */
function readKindName(reader: SentReader, doc: JsonObject, own: boolean): string | null {
  const outer = reader.text(doc["kind"], "kind") ?? "";
  const inner = own ? (reader.text(objectAt(doc, "spec")["kind"], "spec.kind") ?? "") : "";
  const name = outer === "Job" && inner !== "" ? inner : outer;
  const refusal = refusedKind(name);
  if (refusal !== null) reader.fail(name === outer ? "kind" : "spec.kind", refusal);
  else if (inner !== "" && inner !== name) reader.fail("spec.kind", `must be ${outer}, as the document's kind`);
  return refusal === null ? name : null;
}

/** What to say of a kind that is not served; null for one that is. */
export function refusedKind(name: string): string | null {
  if (kindOf(name) !== undefined) return null;
  const reason = UNSERVED_KINDS.get(name);
  if (reason !== undefined) return `kind ${name} is not served: ${reason}`;
  return `unknown kind ${name === "" ? "(none)" : name}; served are ${servedKinds()
    .map((kind) => kind.name)
    .join(", ")}`;
}

function readMetadata(reader: SentReader, metadata: JsonObject): SentMetadata {
  return sentOnly({
    name: reader.text(metadata["name"], "metadata.name"),
    generateName: reader.text(metadata["generateName"], "metadata.generateName"),
    namespace: reader.text(metadata["namespace"], "metadata.namespace"),
    labels: reader.textMap(metadata["labels"], "metadata.labels"),
    annotations: reader.textMap(metadata["annotations"], "metadata.annotations"),
  });
}

/** Other versions of a kind have another shape: what they hold is not read. */
function checkApiVersion(
  reader: SentReader,
  { apiVersion, kindName }: { readonly apiVersion: string | undefined; readonly kindName: string },
): void {
  const served = kindOf(kindName)?.apiVersion;
  if (apiVersion === served || apiVersion === OWN_API_VERSION) return;
  reader.fail("apiVersion", `must be ${served} for kind ${kindName}, not ${apiVersion ?? "absent"}`);
}

type KubeflowDoc = { readonly kindName: string; readonly spec: JsonObject };

function readKubeflow(reader: SentReader, { kindName, spec }: KubeflowDoc): SentSpec {
  const field = kindOf(kindName)?.replicaSpecsField ?? "replicaSpecs";
  const { [field]: replicaSpecs, runPolicy, ...rest } = spec;
  const { policy, kindSpec } = liftRunPolicy(reader, { runPolicy, rest });
  return withOptional(reader, {
    kind: kindName,
    replicaSpecs: readReplicas(reader, replicaSpecs, `spec.${field}`),
    runPolicy: managedHere(reader, policy),
    kindSpec: Object.keys(kindSpec).length === 0 ? undefined : kindSpec,
  });
}

/** Who Kubeflow's manifests say manages a job: its own controller, in whose place we stand. */
const MANAGER = "kubeflow.org/training-operator";

/** A run policy without `managedBy`, which may not name somebody else. */
function managedHere(reader: SentReader, policy: Json | undefined): Json | undefined {
  if (!isJsonObject(policy)) return policy;
  const { managedBy, ...rest } = policy;
  const path = "spec.runPolicy.managedBy";
  const manager = reader.text(managedBy, path);
  if (manager && manager !== MANAGER) {
    reader.fail(path, `must be ${MANAGER} or absent, not ${manager}: nobody else can manage a job that is sent here`);
  }
  return rest;
}

/** Run policies stood in the spec itself before there was `runPolicy`, and MPIJob's `cleanPodPolicy` still does. */
const LIFTED = [
  "cleanPodPolicy",
  "ttlSecondsAfterFinished",
  "activeDeadlineSeconds",
  "backoffLimit",
  "schedulingPolicy",
];

type Lifted = { readonly policy: Json | undefined; readonly kindSpec: JsonObject };

/** A run policy with what stands at its old places, which may not say otherwise than the new ones, and what else the spec holds. */
function liftRunPolicy(
  reader: SentReader,
  { runPolicy, rest }: { readonly runPolicy: Json | undefined; readonly rest: JsonObject },
): Lifted {
  const old = Object.entries(rest).filter(([name, value]) => LIFTED.includes(name) && (value ?? null) !== null);
  const kindSpec = Object.fromEntries(Object.entries(rest).filter(([name]) => !LIFTED.includes(name)));
  if (old.length === 0 || (runPolicy !== undefined && runPolicy !== null && !isJsonObject(runPolicy))) {
    return { policy: runPolicy, kindSpec };
  }
  const policy: Record<string, Json | undefined> = { ...(isJsonObject(runPolicy) ? runPolicy : {}) };
  for (const [name, value] of old) {
    const said = policy[name] ?? null;
    if (said !== null && canonicalJson(said) !== canonicalJson(value)) {
      reader.fail(`spec.${name}`, `says otherwise than spec.runPolicy.${name}`);
    }
    policy[name] = value;
  }
  return { policy, kindSpec };
}

function readOwn(reader: SentReader, kindName: string, spec: JsonObject): SentSpec {
  reader.onlyKnown(spec, "spec", OWN_SPEC_FIELDS);
  const sent = withOptional(reader, {
    kind: kindName,
    replicaSpecs: isWithoutReplicas(kindName, spec)
      ? {}
      : readReplicas(reader, spec["replicaSpecs"], "spec.replicaSpecs"),
    runPolicy: spec["runPolicy"],
    kindSpec: spec["kindSpec"],
  });
  const placement = reader.object(spec["placement"], "spec.placement");
  return {
    ...sent,
    ...sentOnly({
      inputs: reader.object(spec["inputs"], "spec.inputs"),
      priority: reader.wholeNumber(spec["priority"], "spec.priority"),
      placement: placement && readPlacement(reader, placement),
    }),
  };
}

/** Jobs without pods need not say that they have none. */
function isWithoutReplicas(kindName: string, spec: JsonObject): boolean {
  return isService(kindOf(kindName)) && (spec["replicaSpecs"] ?? null) === null;
}

function withOptional(
  reader: SentReader,
  sent: {
    readonly kind: string;
    readonly replicaSpecs: Readonly<Record<string, SentReplicaSpec>>;
    readonly runPolicy: Json | undefined;
    readonly kindSpec: Json | undefined;
  },
): SentSpec {
  const runPolicy = reader.object(sent.runPolicy, "spec.runPolicy");
  const optional = sentOnly({
    runPolicy: runPolicy && readRunPolicy(reader, runPolicy),
    kindSpec: reader.object(sent.kindSpec, "spec.kindSpec"),
  });
  return { kind: sent.kind, replicaSpecs: sent.replicaSpecs, ...optional };
}

function readReplicas(reader: SentReader, value: Json | undefined, path: string): Record<string, SentReplicaSpec> {
  const replicas: Record<string, SentReplicaSpec> = {};
  const roles = reader.object(value, path) ?? reader.fail(path, "is required") ?? {};
  for (const [role, inner] of Object.entries(roles)) {
    const at = `${path}.${role}`;
    const spec = reader.object(inner, at) ?? {};
    reader.onlyKnown(spec, at, ["replicas", "restartPolicy", "template"]);
    replicas[role] = sentOnly({
      replicas: reader.wholeNumber(spec["replicas"], `${at}.replicas`),
      restartPolicy: reader.word(spec["restartPolicy"], `${at}.restartPolicy`, RESTART_POLICIES),
      template: reader.object(spec["template"], `${at}.template`),
    });
  }
  return replicas;
}

const RUN_POLICY_FIELDS = [
  "cleanPodPolicy",
  "ttlSecondsAfterFinished",
  "activeDeadlineSeconds",
  "backoffLimit",
  "systemBackoffLimit",
  "interruptibleFailureThreshold",
  "restartScope",
  "suspend",
  "interruptible",
  "cacheKey",
  "schedulingPolicy",
];

function readRunPolicy(reader: SentReader, policy: JsonObject): SentRunPolicy {
  const at = "spec.runPolicy";
  reader.onlyKnown(policy, at, RUN_POLICY_FIELDS);
  const scheduling = reader.object(policy["schedulingPolicy"], `${at}.schedulingPolicy`);
  return sentOnly({
    cleanPodPolicy: reader.word(policy["cleanPodPolicy"], `${at}.cleanPodPolicy`, CLEAN_POD_POLICIES),
    ttlSecondsAfterFinished: reader.wholeNumber(policy["ttlSecondsAfterFinished"], `${at}.ttlSecondsAfterFinished`),
    activeDeadlineSeconds: reader.wholeNumber(policy["activeDeadlineSeconds"], `${at}.activeDeadlineSeconds`, true),
    backoffLimit: reader.wholeNumber(policy["backoffLimit"], `${at}.backoffLimit`),
    systemBackoffLimit: reader.wholeNumber(policy["systemBackoffLimit"], `${at}.systemBackoffLimit`),
    interruptibleFailureThreshold: reader.wholeNumber(
      policy["interruptibleFailureThreshold"],
      `${at}.interruptibleFailureThreshold`,
      true,
    ),
    restartScope: reader.word(policy["restartScope"], `${at}.restartScope`, RESTART_SCOPES),
    suspend: reader.flag(policy["suspend"], `${at}.suspend`),
    interruptible: reader.flag(policy["interruptible"], `${at}.interruptible`),
    cacheKey: reader.text(policy["cacheKey"], `${at}.cacheKey`),
    schedulingPolicy: scheduling && readScheduling(reader, scheduling, `${at}.schedulingPolicy`),
  });
}

function readScheduling(reader: SentReader, policy: JsonObject, at: string): SentSchedulingPolicy {
  reader.onlyKnown(policy, at, ["minAvailable", "queue", "minResources", "priorityClass", "scheduleTimeoutSeconds"]);
  return sentOnly({
    minAvailable: reader.wholeNumber(policy["minAvailable"], `${at}.minAvailable`),
    queue: reader.text(policy["queue"], `${at}.queue`),
    minResources: reader.textMap(policy["minResources"], `${at}.minResources`, true),
    priorityClass: reader.text(policy["priorityClass"], `${at}.priorityClass`),
    scheduleTimeoutSeconds: reader.wholeNumber(policy["scheduleTimeoutSeconds"], `${at}.scheduleTimeoutSeconds`),
  });
}

function readPlacement(reader: SentReader, placement: JsonObject): NonNullable<SentSpec["placement"]> {
  reader.onlyKnown(placement, "spec.placement", ["clusters", "clusterSelector", "gpuModels"]);
  return sentOnly({
    clusters: reader.texts(placement["clusters"], "spec.placement.clusters"),
    clusterSelector: reader.textMap(placement["clusterSelector"], "spec.placement.clusterSelector"),
    gpuModels: reader.texts(placement["gpuModels"], "spec.placement.gpuModels"),
  });
}
