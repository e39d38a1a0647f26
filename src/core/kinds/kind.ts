import type { Json, JsonObject } from "../../runtime/json.ts";
import type { KindDefaults } from "../job/defaults.ts";
import type { JobSpec } from "../job/spec.ts";

/** How many pods of a replica type a kind allows; `max` null: any number. */
export type RoleBounds = { readonly name: string; readonly min: number; readonly max: number | null };

/** One replica of an admitted gang: whom a cluster spec is made for. */
export type Replica = {
  readonly jobName: string;
  readonly namespace: string;
  readonly spec: JobSpec;
  /** How many replicas of each type the gang has, as it was admitted. */
  readonly members: Readonly<Record<string, number>>;
  readonly role: string;
  readonly index: number;
  /** The DNS domain after `svc`, e.g. `cluster.local`; empty: names end in `svc`. */
  readonly clusterDomain: string;
  /** The image of init containers that wait for a master's name. */
  readonly initImage: string;
};

export type EnvVar = { readonly name: string; readonly value: string };

/** What a kind adds to a replica's pod so that the gang finds itself. */
export type ClusterSpec = {
  /** Environment by container name; containers that are not named get none. */
  readonly env: Readonly<Record<string, readonly EnvVar[]>>;
  readonly initContainers: readonly JsonObject[];
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

/** A kind of job: everything that differs between PyTorchJob, TFJob, Job and their like. All functions are pure. */
export type Kind = {
  readonly name: string;
  /** One sentence for whoever chooses a kind. */
  readonly description: string;
  /** The `apiVersion` of its manifests and the member of their spec that holds the replica specs. */
  readonly apiVersion: string;
  readonly replicaSpecsField: string;
  readonly operatorName: string;
  /** The container whose end counts and whose ports are looked at; null: the first. */
  readonly defaultContainer: string | null;
  /** The port of its services; null: it has none. */
  readonly defaultPort: { readonly name: string; readonly number: number } | null;
  /** Its replica types; null: any name that `roleName` lets through. */
  readonly roles: readonly RoleBounds[] | null;
  /** A replica type as the kind spells it, from any case; unknown ones come back unchanged. */
  readonly roleName: (role: string) => string;
  readonly defaults: KindDefaults;
  /** Of each member of `kindSpec` that it takes: what is wrong with a value, or null. */
  readonly kindSpecFields: Readonly<Record<string, (value: Json) => string | null>>;
  /** Members that Kubeflow knows and we do not serve. */
  readonly unservedFields: readonly string[];
  /** JSON Schema of `kindSpec`. */
  readonly kindSpecSchema: JsonObject;
  /** A manifest that can be submitted as it is. */
  readonly example: JsonObject;
  readonly clusterSpec: (replica: Replica) => ClusterSpec;
  /** Which pod carries the job role `master`. */
  readonly isMaster: (members: Readonly<Record<string, number>>, role: string, index: number) => boolean;
  /** Judges replica types in our order (see `compareRoles`). */
  readonly verdict: (states: readonly RoleState[]) => Verdict;
};
