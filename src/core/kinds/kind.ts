import type { JsonObject } from "../../runtime/json.ts";
import type { KindDefaults } from "../job/defaults.ts";
import type { FieldError, SentSpec } from "../job/sent.ts";
import type { JobSpec } from "../job/spec.ts";

/** How many pods of a replica type a kind allows: at least `min` (1: the type must be there), at most `max`; null: any number. */
export type RoleBounds = {
  readonly name: string;
  readonly min: number;
  readonly max: number | null;
  /** True where the type's only pod is named without an index: `<job>-launcher`. */
  readonly unnumbered?: true;
};

/** A gang as it is on board: whom a kind makes a cluster of. */
export type Gang = {
  readonly jobName: string;
  readonly jobUid: string;
  readonly namespace: string;
  readonly admission: number;
  readonly spec: JobSpec;
  /** How many replicas of each type the gang has; they change where its kind is elastic. */
  readonly members: Readonly<Record<string, number>>;
  /** The DNS domain after `svc`, e.g. `cluster.local`; empty: names end in `svc`. */
  readonly clusterDomain: string;
  /** The image of init containers that wait for a master's name. */
  readonly initImage: string;
  /** The image of init containers that bring `kubectl`. */
  readonly kubectlImage: string;
};

/** One replica of an admitted gang: whom a cluster spec is made for. */
export type Replica = Gang & { readonly role: string; readonly index: number };

/** A variable with its value, or with where Kubernetes takes it from. */
export type EnvVar = { readonly name: string; readonly value?: string; readonly valueFrom?: JsonObject };

/** What a kind adds to a replica's pod so that the gang finds itself. */
export type ClusterSpec = {
  /** Environment by container name; containers that are not named get none. */
  readonly env: Readonly<Record<string, readonly EnvVar[]>>;
  readonly initContainers: readonly JsonObject[];
  readonly volumes?: readonly JsonObject[];
  /** By container name. */
  readonly volumeMounts?: Readonly<Record<string, readonly JsonObject[]>>;
  /** By container name: what a container runs whose template names no command. */
  readonly command?: Readonly<
    Record<string, { readonly command: readonly string[]; readonly args: readonly string[] }>
  >;
  /** The account of a pod whose template names none. */
  readonly serviceAccount?: string;
};

/** How the pods of one replica type are doing, as far as a kind judges by it. */
export type RoleState = {
  readonly role: string;
  readonly members: number;
  readonly active: number;
  readonly succeeded: number;
  /** Failures that nothing restarts. */
  readonly failedForGood: number;
  /** True if replica 0 succeeded and its default container ended with exit code 0. */
  readonly firstExitedZero: boolean;
};

/** What the replicas say about the job; null: nothing new. */
export type Verdict = "running" | "succeeded" | "failed" | null;

/**
 * A kind of job, as a plugin: everything that differs between PyTorchJob, TFJob, Job and their like. All functions are pure and give the same
 * for the same. Nothing outside `core/kinds` knows a kind by name: a new one is one file and one line of the registry.
 */
export type Kind = {
  readonly name: string;
  /** What its jobs are: a gang of pods, or something that a plugin runs at another service, without replicas. Absent: pods. */
  readonly runs?: "pods" | "service";
  /** One sentence for whoever chooses a kind. */
  readonly description: string;
  /** The `apiVersion` of its manifests and the member of their spec that holds the replica specs. */
  readonly apiVersion: string;
  readonly replicaSpecsField: string;
  readonly operatorName: string;
  /** The container whose end counts and whose ports are looked at; null, or where a template has none of that name: the first. */
  readonly defaultContainer: string | null;
  /** Whether every template must have a container of that name. */
  readonly containerRequired: boolean;
  /** The port of its services; null: it has no services. */
  readonly defaultPort: { readonly name: string; readonly number: number } | null;
  /** Its replica types; null: any name that `roleName` lets through. */
  readonly roles: readonly RoleBounds[] | null;
  /** A replica type as the kind spells it, from any case; unknown ones come back unchanged. */
  readonly roleName: (role: string) => string;
  readonly defaults: KindDefaults;
  /** JSON Schema of `kindSpec`, which is checked by it (`podKind` says which words count). */
  readonly kindSpecSchema: JsonObject;
  /** What is wrong with a spec that a schema cannot say: members that contradict each other. The schema holds already. */
  readonly validate: (sent: SentSpec) => readonly FieldError[];
  /** A manifest that can be submitted as it is. */
  readonly example: JsonObject;
  readonly clusterSpec: (replica: Replica) => ClusterSpec;
  /**
   * What the gang needs beside pods and services, as manifests with apiVersion, kind, metadata.name and content: config maps, and the service
   * accounts, roles and role bindings that RBAC wants. They are owned by the anchor, made before the pods, and updated as members come and go; where anything of them follows the members,
   * a config map does too, since no other of them is watched. Namespace, labels and owner are added.
   */
  readonly objects: (gang: Gang) => readonly JsonObject[];
  /** Which pod carries the job role `master`. */
  readonly isMaster: (members: Readonly<Record<string, number>>, role: string, index: number) => boolean;
  /**
   * The replica types whose number may change while a gang is on board, and within which bounds it may, for a job of this spec. Absent: none.
   */
  readonly elasticRoles?: (spec: JobSpec) => readonly RoleBounds[];
  /** Judges replica types in our order (see `compareRoles`). */
  readonly verdict: (states: readonly RoleState[], kindSpec: JsonObject) => Verdict;
};

/** True for a kind whose jobs a plugin runs, without pods. */
export function isService(kind: Pick<Kind, "runs"> | undefined): boolean {
  return kind?.runs === "service";
}
