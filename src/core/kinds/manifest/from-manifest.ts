/**
 * Reads a job from a manifest. It serves users who bring manifests of Kubeflow, or write those of Gangway, and who must
 * see every wrong field at once.
 */
import { canonicalJson, isJsonObject, type Json, type JsonObject, objectAt } from "../../../runtime/json.ts";
import type {
  FieldError,
  SentReplicaSpec,
  SentRunPolicy,
  SentSchedulingPolicy,
  SentSpec,
} from "../../job/request/sent.ts";
import { CLEAN_POD_POLICIES, PARTIAL_POLICIES, RESTART_SCOPES, type RestartPolicy } from "../../job/spec.ts";
import { isService, type Kind, type OlderForm } from "../kind.ts";
import { type Registry, UNSERVED_KINDS } from "../registry.ts";
import { foreignSettings } from "./foreign-settings.ts";
import { managedBy } from "./managed-by.ts";
import { inTodaysForm } from "./older-form.ts";
import type { ManifestFacts } from "./read-spec.ts";
import { readDeadline, readTtl } from "./read-times.ts";
import { readWish } from "./read-wish.ts";
import type { SentManifest, SentMetadata } from "./sent-manifest.ts";
import { SentReader, sentOnly } from "./sent-reader.ts";
import type { SettingValues } from "./settings.ts";

/** What a command line says about all jobs of its manifests. */
export type ManifestRules = {
  /** In place of what a manifest says. Omitted: none. */
  readonly settings?: SettingValues | undefined;
  /** True: the job is suspended. Omitted: as the manifest says. */
  readonly suspended?: boolean | undefined;
  /** The runtimes that TrainJobs may name. Omitted: none. */
  readonly runtimeOf?: ManifestFacts["runtimeOf"] | undefined;
};

type ManifestOutcome =
  | { readonly kind: "read"; readonly manifest: SentManifest }
  | { readonly kind: "refused"; readonly errors: readonly FieldError[] };

const RESTART_POLICIES: readonly RestartPolicy[] = ["Always", "OnFailure", "Never", "ExitCode"];
const OWN_API_VERSION = "gangway.dev/v1";
/** The members of the spec of a manifest in Gangway's own form. */
export const OWN_SPEC_FIELDS = [
  "kind",
  "replicaSpecs",
  "runPolicy",
  "kindSpec",
  "inputs",
  "priority",
  "priorityClassName",
  "placement",
];

/**
 * Reads a manifest. `kubeflow.org/v1`: the kind's own members of `spec` become the kind spec. `gangway.dev/v1`: the
 * JSON names of the API. Sets no defaults, names every wrong field, and never throws.
 */
export function fromManifest(doc: JsonObject, kinds: Registry, rules: ManifestRules = {}): ManifestOutcome {
  const reader = new SentReader();
  const apiVersion = reader.text(doc["apiVersion"], "apiVersion");
  const own = apiVersion === OWN_API_VERSION;
  const named = readKind(reader, { doc, apiVersion, own }, kinds);
  if (named === null) return { kind: "refused", errors: reader.errors };
  const metadata = readMetadata(reader, reader.object(doc["metadata"], "metadata") ?? {});
  checkApiVersion(reader, apiVersion, named);
  if (reader.errors.length > 0) return { kind: "refused", errors: reader.errors };
  const spec = reader.object(doc["spec"], "spec") ?? reader.fail("spec", "is required") ?? {};
  const known = { runtimeOf: rules.runtimeOf ?? (() => null) };
  const older = apiVersion === named.kind.olderForm?.apiVersion ? named.kind.olderForm : undefined;
  const read = own
    ? inOwnWords(readOwn(reader, named, spec))
    : readForeign(reader, named, { spec, metadata, older, known });
  const manifest = foreignSettings(reader, { metadata, ...read }, { isForeign: !own, ...rules });
  if (reader.errors.length > 0) return { kind: "refused", errors: reader.errors };
  return { kind: "read", manifest };
}

/** A kind that is served, and the name that a document gives it: the default kind serves other names too. */
type NamedKind = { readonly name: string; readonly kind: Kind };

/** The kind that a document names. Null if it is not served. */
function readKind(
  reader: SentReader,
  {
    doc,
    apiVersion,
    own,
  }: { readonly doc: JsonObject; readonly apiVersion: string | undefined; readonly own: boolean },
  kinds: Registry,
): NamedKind | null {
  const outer = reader.text(doc["kind"], "kind") ?? "";
  if (own) return readOwnKind(reader, { outer, spec: objectAt(doc, "spec") }, kinds);
  const foreign = kinds.ofManifest(apiVersion ?? "", outer);
  if (foreign !== undefined) return { name: foreign.name, kind: foreign };
  return served(reader, { name: outer, path: "kind" }, kinds);
}

/** A `kind: Job` of `gangway.dev/v1` may name another kind in `spec.kind`, as the JSON of the API does. */
function readOwnKind(
  reader: SentReader,
  { outer, spec }: { readonly outer: string; readonly spec: JsonObject },
  kinds: Registry,
): NamedKind | null {
  const inner = reader.text(spec["kind"], "spec.kind") ?? "";
  const name = outer === "Job" && inner !== "" ? inner : outer;
  const kind = served(reader, { name, path: name === outer ? "kind" : "spec.kind" }, kinds);
  if (kind !== null && inner !== "" && inner !== name) {
    reader.fail("spec.kind", `must be ${outer}, the kind of the document`);
  }
  return kind;
}

function served(
  reader: SentReader,
  { name, path }: { readonly name: string; readonly path: string },
  kinds: Registry,
): NamedKind | null {
  const refusal = refusedKind(name, kinds);
  if (refusal !== null) reader.fail(path, refusal);
  const kind = kinds.kindOf(name);
  return kind === undefined ? null : { name, kind };
}

/** The message for a kind that is not served. Null for a kind that is. */
export function refusedKind(name: string, kinds: Registry): string | null {
  if (kinds.kindOf(name) !== undefined) return null;
  const reason = UNSERVED_KINDS.get(name);
  if (reason !== undefined) return `kind ${name} is not served: ${reason}`;
  const served = kinds.all.map((kind) => kind.name).join(", ");
  return `unknown kind ${name === "" ? "(none)" : name}; the served kinds are ${served}`;
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

/** Refuses other versions of a kind: their fields differ. */
function checkApiVersion(reader: SentReader, apiVersion: string | undefined, { name, kind }: NamedKind): void {
  const served = [kind.apiVersion, ...(kind.olderForm === undefined ? [] : [kind.olderForm.apiVersion])];
  if (apiVersion === OWN_API_VERSION || served.some((version) => version === apiVersion)) return;
  reader.fail("apiVersion", `must be ${served.join(" or ")} for kind ${name}, not ${apiVersion ?? "omitted"}`);
}

/** Reads the spec of a manifest that is not in Gangway's own form. `older`: the form of an earlier operator. */
function readForeign(
  reader: SentReader,
  named: NamedKind,
  of: {
    readonly spec: JsonObject;
    readonly metadata: SentMetadata;
    readonly older: OlderForm | undefined;
    readonly known: ManifestFacts;
  },
): ReadManifestSpec {
  const { spec, metadata, older, known } = of;
  const { readSpec, replicaSpecsField } = named.kind;
  if (readSpec !== undefined) {
    const read = readSpec(reader, spec, metadata, known);
    return { spec: { kind: named.name, ...read.spec }, sources: read.sources };
  }
  const pathOf = (role: string) => `spec.${replicaSpecsField}.${role}`;
  if (older === undefined) return inOwnWords(readKubeflow(reader, named, { spec, pathOf }));
  const today = inTodaysForm(reader, spec, { older, kind: named.kind });
  return inOwnWords(readKubeflow(reader, named, { spec: today, pathOf: () => `spec.${older.replicaSpecField}` }));
}

/** A spec, and the members of the manifest that have the values of its members, where that is not plain. */
type ReadManifestSpec = Pick<SentManifest, "spec" | "sources">;

function inOwnWords(spec: SentSpec): ReadManifestSpec {
  return { spec, sources: new Map() };
}

function readKubeflow(
  reader: SentReader,
  { name, kind }: NamedKind,
  { spec, pathOf }: { readonly spec: JsonObject; readonly pathOf: PathOfRole },
): SentSpec {
  const field = kind.replicaSpecsField;
  const { [field]: replicaSpecs, runPolicy, ...rest } = spec;
  const { policy, kindSpec } = liftRunPolicy(reader, { runPolicy, rest });
  return withOptional(reader, {
    kind: name,
    replicaSpecs: readReplicas(reader, replicaSpecs, { path: `spec.${field}`, pathOf }),
    runPolicy: managedHere(reader, policy),
    kindSpec: Object.keys(kindSpec).length === 0 ? undefined : kindSpec,
  });
}

const KUBEFLOW_CONTROLLER = "kubeflow.org/training-operator";

/** A run policy without `managedBy`. Fails if that names another manager. */
function managedHere(reader: SentReader, policy: Json | undefined): Json | undefined {
  if (!isJsonObject(policy)) return policy;
  const { managedBy: manager, ...rest } = policy;
  managedBy(reader, manager, "spec.runPolicy.managedBy", KUBEFLOW_CONTROLLER);
  return rest;
}

/** Members of a run policy that older manifests have in the spec itself, as MPIJob still has `cleanPodPolicy`. */
const LIFTED = [
  "cleanPodPolicy",
  "ttlSecondsAfterFinished",
  "activeDeadlineSeconds",
  "backoffLimit",
  "schedulingPolicy",
];

type LiftedPolicy = { readonly policy: Json | undefined; readonly kindSpec: JsonObject };

/** Moves such members into the run policy. Fails if the policy has another value for one of them. */
function liftRunPolicy(
  reader: SentReader,
  { runPolicy, rest }: { readonly runPolicy: Json | undefined; readonly rest: JsonObject },
): LiftedPolicy {
  const old = Object.entries(rest).filter(([name, value]) => LIFTED.includes(name) && (value ?? null) !== null);
  const kindSpec = Object.fromEntries(Object.entries(rest).filter(([name]) => !LIFTED.includes(name)));
  if (old.length === 0 || (runPolicy !== undefined && runPolicy !== null && !isJsonObject(runPolicy))) {
    return { policy: runPolicy, kindSpec };
  }
  const policy: Record<string, Json | undefined> = { ...(isJsonObject(runPolicy) ? runPolicy : {}) };
  for (const [name, value] of old) {
    const present = policy[name] ?? null;
    if (present !== null && canonicalJson(present) !== canonicalJson(value)) {
      reader.fail(`spec.${name}`, `must be omitted, or equal to spec.runPolicy.${name}`);
    }
    policy[name] = value;
  }
  return { policy, kindSpec };
}

function readOwn(reader: SentReader, { name, kind }: NamedKind, spec: JsonObject): SentSpec {
  reader.onlyKnown(spec, "spec", OWN_SPEC_FIELDS);
  const sent = withOptional(reader, {
    kind: name,
    replicaSpecs: isWithoutReplicas(kind, spec) ? {} : readReplicas(reader, spec["replicaSpecs"], OWN_REPLICAS),
    runPolicy: spec["runPolicy"],
    kindSpec: spec["kindSpec"],
  });
  const placement = reader.object(spec["placement"], "spec.placement");
  return {
    ...sent,
    ...sentOnly({
      inputs: reader.object(spec["inputs"], "spec.inputs"),
      priority: reader.wholeNumber(spec["priority"], "spec.priority"),
      priorityClassName: reader.text(spec["priorityClassName"], "spec.priorityClassName"),
      placement: placement && readPlacement(reader, placement),
    }),
  };
}

/** Jobs without pods may omit `replicaSpecs`. */
function isWithoutReplicas(kind: Kind, spec: JsonObject): boolean {
  return isService(kind) && (spec["replicaSpecs"] ?? null) === null;
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

/** Where a manifest has the spec of a replica type. */
type PathOfRole = (role: string) => string;

const OWN_REPLICAS = { path: "spec.replicaSpecs", pathOf: (role: string) => `spec.replicaSpecs.${role}` };

function readReplicas(
  reader: SentReader,
  value: Json | undefined,
  { path, pathOf }: { readonly path: string; readonly pathOf: PathOfRole },
): Record<string, SentReplicaSpec> {
  const replicas: Record<string, SentReplicaSpec> = {};
  const roles = reader.object(value, path) ?? reader.fail(path, "is required") ?? {};
  for (const [role, inner] of Object.entries(roles)) {
    const at = pathOf(role);
    const spec = reader.object(inner, at) ?? {};
    reader.onlyKnown(spec, at, ["replicas", "restartPolicy", "template", "topology"]);
    replicas[role] = sentOnly({
      replicas: reader.wholeNumber(spec["replicas"], `${at}.replicas`, { least: 0, most: 10_000 }),
      restartPolicy: reader.word(spec["restartPolicy"], `${at}.restartPolicy`, RESTART_POLICIES),
      template: reader.object(spec["template"], `${at}.template`),
      topology: readWish(reader, spec["topology"], `${at}.topology`),
    });
  }
  return replicas;
}

/** The members of a run policy in a manifest. */
export const RUN_POLICY_FIELDS = [
  "cleanPodPolicy",
  "cleanPodPolicyAtLimit",
  "ttlSecondsAfterFinished",
  "activeDeadlineSeconds",
  "backoffLimit",
  "systemBackoffLimit",
  "startBackoffLimit",
  "interruptibleFailureThreshold",
  "restartScope",
  "suspend",
  "interruptible",
  "maxRuntime",
  "moveAfter",
  "backfill",
  "cacheKey",
  "schedulingPolicy",
];

function readRunPolicy(reader: SentReader, policy: JsonObject): SentRunPolicy {
  const at = "spec.runPolicy";
  reader.onlyKnown(policy, at, RUN_POLICY_FIELDS);
  const scheduling = reader.object(policy["schedulingPolicy"], `${at}.schedulingPolicy`);
  return sentOnly({
    cleanPodPolicy: reader.word(policy["cleanPodPolicy"], `${at}.cleanPodPolicy`, CLEAN_POD_POLICIES),
    cleanPodPolicyAtLimit: reader.word(
      policy["cleanPodPolicyAtLimit"],
      `${at}.cleanPodPolicyAtLimit`,
      CLEAN_POD_POLICIES,
    ),
    ttlSecondsAfterFinished: readTtl(reader, policy, at),
    activeDeadlineSeconds: readDeadline(reader, policy, at),
    backoffLimit: reader.wholeNumber(policy["backoffLimit"], `${at}.backoffLimit`, { least: 0 }),
    systemBackoffLimit: reader.wholeNumber(policy["systemBackoffLimit"], `${at}.systemBackoffLimit`, { least: 0 }),
    startBackoffLimit: reader.wholeNumber(policy["startBackoffLimit"], `${at}.startBackoffLimit`, { least: 1 }),
    interruptibleFailureThreshold: reader.wholeNumber(
      policy["interruptibleFailureThreshold"],
      `${at}.interruptibleFailureThreshold`,
      { wide: true, least: 1, most: 2 ** 31 - 1 },
    ),
    restartScope: reader.word(policy["restartScope"], `${at}.restartScope`, RESTART_SCOPES),
    suspend: reader.flag(policy["suspend"], `${at}.suspend`),
    interruptible: reader.flag(policy["interruptible"], `${at}.interruptible`),
    maxRuntimeMs: reader.durationMs(policy["maxRuntime"], `${at}.maxRuntime`),
    moveAfterMs: reader.durationMs(policy["moveAfter"], `${at}.moveAfter`),
    backfill: reader.flag(policy["backfill"], `${at}.backfill`),
    cacheKey: reader.text(policy["cacheKey"], `${at}.cacheKey`),
    schedulingPolicy: scheduling && readScheduling(reader, scheduling, `${at}.schedulingPolicy`),
  });
}

/** The members of a scheduling policy in a manifest. */
export const SCHEDULING_FIELDS = [
  "minAvailable",
  "queue",
  "minResources",
  "priorityClass",
  "scheduleTimeoutSeconds",
  "maxPreemptions",
  "partial",
];

function readScheduling(reader: SentReader, policy: JsonObject, at: string): SentSchedulingPolicy {
  reader.onlyKnown(policy, at, SCHEDULING_FIELDS);
  return sentOnly({
    minAvailable: reader.wholeNumber(policy["minAvailable"], `${at}.minAvailable`, { least: 1 }),
    queue: reader.text(policy["queue"], `${at}.queue`),
    minResources: reader.textMap(policy["minResources"], `${at}.minResources`, true),
    priorityClass: reader.text(policy["priorityClass"], `${at}.priorityClass`),
    scheduleTimeoutSeconds: reader.wholeNumber(policy["scheduleTimeoutSeconds"], `${at}.scheduleTimeoutSeconds`, {
      least: 0,
    }),
    maxPreemptions: reader.wholeNumber(policy["maxPreemptions"], `${at}.maxPreemptions`, { least: 0 }),
    partial: reader.word(policy["partial"], `${at}.partial`, PARTIAL_POLICIES),
  });
}

function readPlacement(reader: SentReader, placement: JsonObject): NonNullable<SentSpec["placement"]> {
  reader.onlyKnown(placement, "spec.placement", ["clusters", "clusterSelector", "gpuModels", "topology"]);
  return sentOnly({
    clusters: reader.texts(placement["clusters"], "spec.placement.clusters"),
    clusterSelector: reader.textMap(placement["clusterSelector"], "spec.placement.clusterSelector"),
    gpuModels: reader.texts(placement["gpuModels"], "spec.placement.gpuModels"),
    topology: readWish(reader, placement["topology"], "spec.placement.topology"),
  });
}
