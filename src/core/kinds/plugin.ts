/**
 * The contract between Gangway and the kinds of job that it runs. It follows Flyte's core plugins. The package exports
 * this file as `gangway/plugin`: the author of a kind needs nothing else of the source.
 */
import type { JsonObject } from "../../runtime/json.ts";
import type { KindDefaults } from "../job/request/defaults.ts";
import type { FailureKind } from "../job/status.ts";
import type { ExternalResource, LogLink, PluginState, ReasonInfo, TaskPhase } from "../job/task-info.ts";
import type { Kind } from "./kind.ts";
import { kindSpecSchema } from "./kind-spec.ts";
import type {
  AttemptLimits,
  DataStore,
  EventsRecorder,
  MetricsScope,
  PlatformFacts,
  TaskValues,
} from "./plugin-services.ts";
import { everyoneVerdict } from "./verdicts.ts";

export type { Json, JsonObject } from "../../runtime/json.ts";
export type { KindDefaults } from "../job/request/defaults.ts";
export type { FieldError, SentSpec } from "../job/request/sent.ts";
export type { JobSpec, ReplicaSpec, RestartPolicy, RestartScope, RunPolicy } from "../job/spec.ts";
export type { FailureKind } from "../job/status.ts";
export type { CacheStatus, ExternalResource, LogLink, PluginState, ReasonInfo, TaskPhase } from "../job/task-info.ts";
export type { ClusterSpec, EnvVar, Gang, GangService, Kind, Replica, RoleBounds, RoleState, Verdict } from "./kind.ts";
export type {
  AttemptLimits,
  DataStore,
  EventsRecorder,
  MetricsScope,
  PlatformFacts,
  PluginEvent,
  TaskValues,
} from "./plugin-services.ts";

/**
 * The version of this contract. It rises when members are added; plugins that were written for an earlier version run
 * unchanged. 1: kinds, tokens, secrets, state, phases. 2: inputs and outputs, object stores, facts about the platform
 * and attempts, metrics, events. 3: labels, annotations, host names and subdomains of pods. 4: nodes that may take a
 * pod, and a service of the whole gang.
 */
export const CONTRACT_VERSION = 4;

/**
 * One plugin: its id, its kinds, and the function that loads the code which runs them. A module of plugins exports a
 * list of these as `plugins`.
 */
export type PluginEntry = {
  /** Unique among all plugins. */
  readonly id: string;
  /** A kind of pods is complete with this. A kind that runs a service also needs `load`. */
  readonly kinds: readonly Kind[];
  /** True: the first kind also serves the names that no other kind has. At most one entry sets this. */
  readonly isDefault?: boolean;
  /**
   * Returns the plugin. Required if one of the kinds runs a service. Each process calls this once, before its first
   * call of the plugin, and not when Gangway starts. If `load` throws or takes longer than a call may, the call that
   * needed it fails; the retry of that call loads again.
   */
  readonly load?: (setup: SetupContext) => Plugin | Promise<Plugin>;
};

/** The services of Gangway that `load`, and later the plugin, may use. */
export type SetupContext = {
  /** Asks for another round of a job soon, by the job's uid. This is a hint: it may be lost. */
  readonly enqueueOwner: (jobUid: string) => void;
  /** Creates a pool with this many tokens. An existing pool stays unchanged: admins own its quota. */
  readonly registerResourceQuota: (pool: string, quota: number) => Promise<void>;
  readonly secrets: SecretManager;
  /** What a job is called by `enqueueOwner`: `gangway.dev/Job`. */
  readonly ownerKind: string;
  readonly metrics: MetricsScope;
};

/** Gives secrets by name. Jobs and records never hold the values. */
export type SecretManager = {
  /** Returns the value of the secret that the operator stored under this name. Throws if there is none. */
  readonly get: (name: string) => Promise<string>;
};

export type PluginProperties = {
  /** True: its jobs never reuse the result of an earlier job. */
  readonly disableCaching?: boolean;
  /** The maximum length of `taskName`, at least 14. A longer name becomes a hash of 14 characters. Omitted: 50. */
  readonly generatedNameLengthMax?: number;
  /** The minimum length of `taskName`, at most its maximum. A shorter name gets `x` and zeros. Omitted: 0. */
  readonly generatedNameLengthMin?: number;
};

/**
 * Runs the jobs of a kind without pods. Every function must be idempotent: Gangway repeats a call with the same context
 * if its answer was lost. No function waits for the job to end: it reports the present state and returns. At the
 * deadline of a call its signal is aborted, and the call counts as failed.
 */
export type Plugin = {
  /** The id of its entry. */
  readonly id: string;
  readonly properties?: PluginProperties;
  /** Brings the task one step forward and reports its state. */
  readonly handle: (context: TaskContext) => Promise<Transition>;
  /** Ends the task at the service. Resolves once it has ended, or if there was none. */
  readonly abort: (context: TaskContext) => Promise<void>;
  /**
   * Cleans up. Always called after the last `handle` or `abort` of an attempt, and before the record of the job is
   * deleted.
   */
  readonly finalize: (context: TaskContext) => Promise<void>;
};

/** One call for one attempt of a job. */
export type TaskContext = {
  readonly job: {
    readonly uid: string;
    readonly namespace: string;
    readonly name: string;
    readonly project: string;
    readonly labels: Readonly<Record<string, string>>;
    readonly annotations: Readonly<Record<string, string>>;
    readonly kind: string;
    readonly kindSpec: JsonObject;
    readonly priority: number;
    readonly queue: string;
  };
  readonly admission: number;
  /** Counts from 1. */
  readonly attempt: number;
  /**
   * Made of the job's uid, admission and attempt: the same in all calls of one attempt, and unique. Start the task
   * under this name, so that a repeated call finds it again. Holds lower-case letters, digits and dashes.
   */
  readonly taskName: string;
  /** The state that the last recorded call returned. In the first call of an attempt: version 0, value null. */
  readonly state: PluginState;
  /** The job's `spec.inputs`, by name. Empty: it has none. */
  readonly inputs: TaskValues;
  /** How often the job may be tried; failures of user and system are counted apart. */
  readonly maxAttempts: AttemptLimits;
  /** Whether this attempt may run where work is taken away. */
  readonly interruptible: boolean;
  /** After so many failures of the system, attempts of an interruptible job are not interruptible. */
  readonly interruptibleFailureThreshold: number;
  readonly platform: PlatformFacts;
  readonly store: DataStore;
  /** The most bytes of one object that `store` reads or writes. */
  readonly bytesMax: number;
  readonly events: EventsRecorder;
  readonly nowMs: number;
  /** Aborted at the deadline of the call, and when this process stops. */
  readonly signal: AbortSignal;
  readonly resources: ResourceManager;
  readonly secrets: SecretManager;
};

/** The limits of the job's project and namespace in the pool. Omitted: the defaults of the pool. */
export type ResourceConstraints = { readonly project?: number; readonly namespace?: number };

/**
 * Grants tokens of pools to the job's admission. They do not expire. Tokens that an attempt still holds are released
 * after its `finalize`. Both functions throw while the token counters are unavailable; a call of the plugin that throws
 * counts as failed and is repeated.
 */
export type ResourceManager = {
  /** Idempotent by `token`. Omitted: `token` is the task's name, and `amount` is 1. */
  readonly allocate: (of: {
    readonly pool: string;
    readonly token?: string;
    readonly amount?: number;
    readonly constraints?: ResourceConstraints;
  }) => Promise<
    | { readonly status: "GRANTED" }
    | { readonly status: "EXHAUSTED" | "NAMESPACE_QUOTA_EXCEEDED"; readonly message: string }
  >;
  /** Succeeds without effect if the token is not held. */
  readonly release: (of: { readonly pool: string; readonly token?: string }) => Promise<void>;
};

/** The answer of `handle`: at most 65,536 characters of JSON, with no other members. */
export type Transition = {
  readonly info: PhaseInfo;
  /**
   * The state that the next call receives, also if the phase does not change. `value` is any object of the plugin.
   * Omitted: the state stays unchanged.
   */
  readonly state?: PluginState;
  /**
   * The outputs of the job, as GetJob shows them: at most 100, named and valued as inputs may be. They replace those
   * that were returned before. The next attempt begins without. Omitted: they stay unchanged.
   */
  readonly outputs?: TaskValues;
  /** The longest time until the next call, at most one hour. 0: at once, after the state is recorded. Omitted: 5 s. */
  readonly recheckAfterMs?: number;
};

export type TaskFailure = { readonly code: string; readonly kind: FailureKind; readonly message: string };

/** Details of a task beside its phase, shown to users. */
export type TaskNews = {
  readonly logs?: readonly LogLink[];
  readonly externalResources?: readonly (Pick<ExternalResource, "externalId"> & Partial<ExternalResource>)[];
  readonly occurredAtMs?: number;
  readonly reportedAtMs?: number;
  readonly additionalReasons?: readonly (Pick<ReasonInfo, "reason"> & Partial<ReasonInfo>)[];
  readonly customInfo?: JsonObject;
};

/**
 * The state of a task. Gangway records an info if its phase is new, or if its version is higher than the last one of
 * the same phase. To report new details in the same phase, raise the version. Phases may follow in any order until one
 * ends the attempt: a success, a failure, or ABORTED. A job that has run stays RUNNING until then.
 */
export type PhaseInfo = {
  readonly phase: TaskPhase;
  readonly version: number;
  readonly reason: string;
  readonly task: TaskNews;
  /** Set for failures only. */
  readonly failure?: TaskFailure;
  /** True: `abort` is called before the attempt ends. */
  readonly cleanupOnFailure?: boolean;
};

type PhaseOptions = { readonly version?: number; readonly reason?: string; readonly task?: TaskNews };
type FailureOptions = {
  readonly code: string;
  readonly reason: string;
  /** Omitted: USER. */
  readonly kind?: FailureKind;
  readonly cleanup?: boolean;
  readonly task?: TaskNews;
};

function progress(phase: TaskPhase): (options?: PhaseOptions) => PhaseInfo {
  return ({ version = 0, reason = "", task = {} } = {}) => ({ phase, version, reason, task });
}

function failed(phase: TaskPhase): (options: FailureOptions) => PhaseInfo {
  return ({ code, reason, kind = "USER", cleanup = false, task = {} }) => ({
    phase,
    version: 0,
    reason,
    task,
    failure: { code, kind, message: reason },
    cleanupOnFailure: cleanup,
  });
}

/** Makes phase infos. `version` omitted: 0. */
export const phaseInfo = {
  /** The state is not known in this call. */
  undefined: progress("UNDEFINED"),
  notReady: progress("NOT_READY"),
  waitingForResources: progress("WAITING_FOR_RESOURCES"),
  waitingForCache: progress("WAITING_FOR_CACHE"),
  queued: progress("QUEUED"),
  initializing: progress("INITIALIZING"),
  running: progress("RUNNING"),
  success: progress("SUCCESS"),
  /** Another attempt follows if the budget of this kind of failure allows it. */
  retryableFailure: failed("RETRYABLE_FAILURE"),
  permanentFailure: failed("PERMANENT_FAILURE"),
  /** The task was ended from outside. */
  aborted: failed("ABORTED"),
} as const;

/**
 * Makes a log link from a template. Replaces `{{ .name }}` by the variable of that name, escaped for an address.
 * Unknown placeholders stay.
 */
export function logLink(name: string, template: string, variables: Readonly<Record<string, string>>): LogLink {
  const uri = template.replace(/\{\{\s*\.(\w+)\s*\}\}/g, (whole, variable: string) => {
    const value = Object.hasOwn(variables, variable) ? variables[variable] : undefined;
    return value === undefined ? whole : encodeURIComponent(value);
  });
  return { name, uri };
}

const API_VERSION = "gangway.dev/v1";
const DEFAULTS: KindDefaults = { restartPolicy: "OnFailure", restartScope: "GANG", backoffLimit: 6 };

/** The members that `podKind` and `serviceKind` both take. */
type KindBasics = {
  readonly name: string;
  readonly description: string;
  /**
   * A JSON Schema for each member of `kindSpec`. Jobs with other members are refused. Supported keywords: `type` (one
   * or several), `enum`, `pattern`, `minLength`, `minimum`, `maximum`, `minItems`, `items`, `properties`, `required`
   * and `additionalProperties: false`. A `pattern` has the syntax of RE2, which takes linear time: no look-around and
   * no references back. Use `validate` for all other rules. An integer without bounds must fit 32 bits. `x-allowed`
   * describes the allowed values in words. `x-ignored` says why a member has no effect.
   */
  readonly kindSpec?: JsonObject;
  /** Members of `kindSpec` that every job must set. */
  readonly required?: readonly string[];
};

/**
 * Makes a kind of pods. Members that are omitted are those of the plain kind `Job`. If `roles` are given, jobs may
 * spell them in any case, and the example has at least one pod of each.
 */
export function podKind({ name, description, kindSpec = {}, required = [], ...own }: KindBasics & Partial<Kind>): Kind {
  const { apiVersion = API_VERSION, replicaSpecsField = "replicaSpecs", defaultContainer = null, roles = null } = own;
  const spec = { [replicaSpecsField]: exampleReplicas(roles, defaultContainer ?? "main") };
  const base = {
    runs: "pods",
    apiVersion,
    replicaSpecsField,
    operatorName: `gangway-${String(name).toLowerCase()}`,
    defaultContainer,
    containerRequired: false,
    defaultPort: null,
    roles,
    roleName: spellerOf(roles),
    defaults: DEFAULTS,
    kindSpecSchema: { ...kindSpecSchema(name, kindSpec), ...(required.length === 0 ? {} : { required }) },
    validate: () => [],
    example: exampleOf({ apiVersion, kind: name, spec }),
    clusterSpec: () => ({ env: {}, initContainers: [] }),
    objects: () => [],
    isMaster: () => false,
    verdict: everyoneVerdict,
  } as const;
  return { ...base, ...own, name, description };
}

/** Makes a kind without pods: its plugin runs the jobs at a service. A job is described by its `kindSpec` alone. */
export function serviceKind({
  example = {},
  ...own
}: KindBasics & Partial<Pick<Kind, "validate" | "defaults">> & { readonly example?: JsonObject }): Kind {
  return {
    ...podKind(own),
    runs: "service",
    roles: [],
    example: exampleOf({ apiVersion: API_VERSION, kind: own.name, spec: { kindSpec: example } }),
    verdict: () => null,
  };
}

/** Spells a role as `roles` does, from any case. `roles` may hold anything here: registration checks it later. */
function spellerOf(roles: Kind["roles"]): (role: string) => string {
  const names = new Map(
    Array.isArray(roles) ? roles.map((role) => [String(role?.name).toLowerCase(), role?.name]) : [],
  );
  return (role) => names.get(role.toLowerCase()) ?? role;
}

function exampleReplicas(roles: Kind["roles"], container: string): JsonObject {
  const template = { spec: { containers: [{ name: container, image: "busybox:1.36" }] } };
  const named = Array.isArray(roles) && roles.length > 0 ? roles : [{ name: "Worker", min: 1 }];
  return Object.fromEntries(named.map((role) => [role?.name, { replicas: Math.max(role?.min, 1), template }]));
}

function exampleOf(of: { readonly apiVersion: string; readonly kind: string; readonly spec: JsonObject }): JsonObject {
  const { apiVersion, kind, spec } = of;
  return { apiVersion, kind, metadata: { name: String(kind).toLowerCase() }, spec };
}
