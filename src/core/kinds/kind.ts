import type { JsonObject } from "../../runtime/json.ts";
import { hasSlices } from "../job/placement/topology-wish.ts";
import type { KindDefaults } from "../job/request/defaults.ts";
import type { FieldError, SentSpec } from "../job/request/sent.ts";
import type { JobSpec } from "../job/spec.ts";
import type { PodIdentity } from "../pods/build/pod-identity.ts";
import type { PodPlacing } from "../pods/build/pod-placing.ts";
import type { KindRules } from "./kind-rules.ts";
import type { ReadSpec } from "./manifest/read-spec.ts";

/** The number of pods that a kind allows of a replica type. `min` 1: the type is required. `max` null: no limit. */
export type RoleBounds = {
  readonly name: string;
  readonly min: number;
  readonly max: number | null;
  /** True: the type has one pod, whose name has no index: `<job>-launcher`. */
  readonly unnumbered?: true;
  /** True: its program serves the others and never ends by itself, such as a parameter server. */
  readonly neverEnds?: boolean;
};

/** An admitted gang, for which a kind makes the cluster spec and other objects. */
export type Gang = {
  readonly jobName: string;
  readonly jobUid: string;
  readonly namespace: string;
  readonly admission: number;
  readonly spec: JobSpec;
  /** The number of replicas of each type. It changes during an admission if the kind is elastic. */
  readonly members: Readonly<Record<string, number>>;
  /** The DNS domain after `svc`, such as `cluster.local`. Empty: names end in `svc`. */
  readonly clusterDomain: string;
  /** The image of init containers that wait until the name of the master resolves. */
  readonly initImage: string;
  /** The image of init containers that copy `kubectl` into the pod. */
  readonly kubectlImage: string;
};

/** One replica of an admitted gang. */
export type Replica = Gang & {
  readonly role: string;
  /** Of the member; for a kind with rules, of the part of the work that it does. */
  readonly index: number;
  /** The attempt that the pod is for, from 1. Omitted: the first. */
  readonly attempt?: number;
  /** How many attempts at this part of the work have failed and counted. Omitted: none. */
  readonly failures?: number;
  /** How often the gang has restarted as a whole by the rules of its kind. Omitted: never. */
  readonly restarts?: number;
  /** The labels of the node that the pod of another part is bound to. Omitted, or null: none that is known. */
  readonly nodeLabelsOf?: (part: number) => Readonly<Record<string, string>> | null;
};

/** An environment variable with its value, or with the source that Kubernetes reads it from. */
export type EnvVar = { readonly name: string; readonly value?: string; readonly valueFrom?: JsonObject };

/** The parts that a kind adds to the pod of a replica, so that the members of the gang find each other. */
export type ClusterSpec = PodIdentity & {
  /**
   * Environment by container name. Other containers get none. A variable takes the place of one of the same name that
   * the template sets: without it, the members would not find each other.
   */
  readonly env: Readonly<Record<string, readonly EnvVar[]>>;
  /**
   * The same for variables that a template may set itself: its own ones stay. Init containers get them too. Omitted:
   * none.
   */
  readonly defaultEnv?: Readonly<Record<string, readonly EnvVar[]>>;
  readonly initContainers: readonly JsonObject[];
  readonly volumes?: readonly JsonObject[];
  /** By container name. */
  readonly volumeMounts?: Readonly<Record<string, readonly JsonObject[]>>;
  /** By container name: the command of a container whose template has none. */
  readonly command?: Readonly<
    Record<string, { readonly command: readonly string[]; readonly args: readonly string[] }>
  >;
  /** The service account of a pod whose template names none. */
  readonly serviceAccount?: string;
  /** Which nodes may take the pod, beside what its template says. */
  readonly placing?: PodPlacing;
};

/** A headless service of a whole gang, which gives its pods DNS names below its own. */
export type GangService = {
  readonly name: string;
  /** Labels of the pods, beside those of the admission. */
  readonly selector: Readonly<Record<string, string>>;
  readonly publishNotReadyAddresses: boolean;
};

/** The counts of one replica type, from which a kind decides its verdict. */
export type RoleState = {
  readonly role: string;
  readonly members: number;
  readonly active: number;
  readonly succeeded: number;
  /** Failures that are not retried. */
  readonly failedForGood: number;
  /** True if replica 0 succeeded and its default container ended with exit code 0. */
  readonly firstExitedZero: boolean;
};

/** A form of manifests in which the spec has one replica type, without its name. */
export type OlderForm = {
  readonly apiVersion: string;
  /** The member of the spec that holds the only replica spec: `replicas` and `template`. */
  readonly replicaSpecField: string;
  readonly role: string;
  /** Other spellings of members of the spec, each with the member of the kind spec that has its value. */
  readonly spellings: Readonly<Record<string, string>>;
  /** Members of the kind spec that a manifest in this form has if it omits them. */
  readonly defaults: JsonObject;
};

/** The state of a job as its replicas show it. Null: unchanged. */
export type Verdict = "running" | "succeeded" | "failed" | null;

/** What the names of a job's pods are made of. */
export type NamedJob = { readonly name: string; readonly spec: Pick<JobSpec, "kindSpec"> };

/**
 * A kind of job: everything that differs between PyTorchJob, TFJob, Job and others. All functions are pure: the same
 * arguments give the same result. No code outside `core/kinds` knows a kind by its name. A new kind is one file and one
 * line of the registry.
 */
export type Kind = {
  /** Two kinds with one name in manifests have the version and the group in their own: `Job.v1.batch`. */
  readonly name: string;
  /** The `kind` of its manifests. Omitted: its name. */
  readonly manifestKind?: string;
  /** Reads the spec of a manifest of its `apiVersion`. Omitted: it has the form of Kubeflow's. */
  readonly readSpec?: ReadSpec;
  /** `pods`: each job is a gang of pods. `service`: a plugin runs each job at a service. Omitted: `pods`. */
  readonly runs?: "pods" | "service";
  /** One sentence that helps users to choose a kind. */
  readonly description: string;
  /** The `apiVersion` of its manifests. */
  readonly apiVersion: string;
  /** The member of a manifest's spec that holds the replica specs. */
  readonly replicaSpecsField: string;
  /** The form of its manifests under another `apiVersion`, which is read as well. Omitted: there is none. */
  readonly olderForm?: OlderForm;
  /** The value of the label `training.kubeflow.org/operator-name` of its pods. */
  readonly operatorName: string;
  /**
   * The container that decides how a pod ended and which port it serves. Null, or a template without such a container:
   * the first one.
   */
  readonly defaultContainer: string | null;
  /** True: every template must have a container of that name. */
  readonly containerRequired: boolean;
  /** The port of its services. Null: it has no services. */
  readonly defaultPort: { readonly name: string; readonly number: number } | null;
  /** Its replica types. Null: any name. */
  readonly roles: readonly RoleBounds[] | null;
  /** Spells a replica type as the kind does, from any case. Unknown names come back unchanged. */
  readonly roleName: (role: string) => string;
  readonly defaults: KindDefaults;
  /** The JSON Schema of `kindSpec`. `podKind` lists the supported keywords. */
  readonly kindSpecSchema: JsonObject;
  /**
   * Returns the errors that a schema cannot express, such as members that contradict each other. Runs after the schema.
   */
  readonly validate: (sent: SentSpec) => readonly FieldError[];
  /** Returns probable mistakes, with which a job may run. Omitted: none are looked for. */
  readonly warn?: (sent: SentSpec) => readonly FieldError[];
  /** A manifest that can be submitted as it is. */
  readonly example: JsonObject;
  readonly clusterSpec: (replica: Replica) => ClusterSpec;
  /**
   * Returns manifests of the objects that the gang needs beside pods and services: ConfigMap, ServiceAccount, Role and
   * RoleBinding, with apiVersion, kind, metadata.name and content. Gangway adds namespace, labels and owner, creates
   * them before the pods, and updates them when the members change. Only config maps are watched: if any object depends
   * on the members, a config map must depend on them too.
   */
  readonly objects: (gang: Gang) => readonly JsonObject[];
  /** The headless service of the whole gang. Null, or omitted: there is none. */
  readonly service?: (gang: Gang) => GangService | null;
  /**
   * The init containers that `clusterSpec` adds to the pods of a replica type, with their resources alone: the planner
   * counts them. Omitted: it adds none, or they request nothing to speak of.
   */
  readonly countedInit?: (spec: JobSpec, role: string) => readonly JsonObject[];
  /** True for the pod that gets the label `training.kubeflow.org/job-role: master`. */
  readonly isMaster: (members: Readonly<Record<string, number>>, role: string, index: number) => boolean;
  /**
   * The name of the pod that does a part of the work. Omitted: made of the names of job and replica type, and of the
   * index.
   */
  readonly podName?: (job: NamedJob, role: string, part: number) => string;
  /** Omitted: `verdict`, restart policies and the budgets of the run policy decide. */
  readonly rules?: KindRules;
  /** The replica types of a job that may grow and shrink while it runs, with their bounds. Omitted: none. */
  readonly elasticRoles?: (spec: JobSpec) => readonly RoleBounds[];
  /** Decides the state of a job. `states` are in the order of `compareRoles`. */
  readonly verdict: (states: readonly RoleState[], kindSpec: JsonObject) => Verdict;
};

/**
 * The replica types of a job that may grow and shrink while it runs. None if the kind is not elastic, or unknown, or if
 * members run in slices.
 */
export function elasticRolesOf(kind: Pick<Kind, "elasticRoles"> | undefined, spec: JobSpec): readonly RoleBounds[] {
  return hasSlices(spec) ? [] : (kind?.elasticRoles?.(spec) ?? []);
}

/** True if the kind runs its jobs at a service, without pods. */
export function isService(kind: Pick<Kind, "runs"> | undefined): boolean {
  return kind?.runs === "service";
}
