/**
 * The contract between Gangway and the kinds that it runs, after Flyte's core plugins. It is what `gangway/plugin` exports: whoever adds a kind
 * needs this file and nothing else of the source.
 */
import type { JsonObject } from "../../runtime/json.ts";
import type { KindDefaults } from "../job/defaults.ts";
import type { FailureKind } from "../job/status.ts";
import type { ExternalResource, LogLink, PluginState, ReasonInfo, TaskPhase } from "../job/task-info.ts";
import type { Kind } from "./kind.ts";
import { kindSpecSchema } from "./kind-spec.ts";
import { everyoneVerdict } from "./verdicts.ts";

export type { Json, JsonObject } from "../../runtime/json.ts";
export type { KindDefaults } from "../job/defaults.ts";
export type { FieldError, SentSpec } from "../job/sent.ts";
export type { JobSpec, ReplicaSpec, RestartPolicy, RestartScope, RunPolicy } from "../job/spec.ts";
export type { FailureKind } from "../job/status.ts";
export type { CacheStatus, ExternalResource, LogLink, PluginState, ReasonInfo, TaskPhase } from "../job/task-info.ts";
export type { ClusterSpec, EnvVar, Gang, Kind, Replica, RoleBounds, RoleState, Verdict } from "./kind.ts";

/** What a module of kinds exports as `plugins`: an id, the kinds that it is for, and how to get the plugin that runs them. */
export type PluginEntry = {
  /** Unique in the system. */
  readonly id: string;
  /** Kinds of pods need no plugin of their own: what they are made of is all in here. */
  readonly kinds: readonly Kind[];
  /** Its first kind also serves kinds of jobs that nobody else does. At most one entry says so. */
  readonly isDefault?: boolean;
  /**
   * Called once in each process that works on its jobs, before the first call of the plugin: not when Gangway starts. Needed where a kind runs a
   * service. One that fails, or lasts longer than a call may, counts as a failure of the call that it was needed for, and is tried again with it.
   */
  readonly load?: (setup: SetupContext) => Plugin | Promise<Plugin>;
};

/** What is there while a plugin is loaded. */
export type SetupContext = {
  /** Has a job looked at again soon, by its uid. A hint. */
  readonly enqueueOwner: (jobUid: string) => void;
  /** Makes a pool of that many tokens. One that is there already stays as it is: its quota is the admins'. */
  readonly registerResourceQuota: (pool: string, quota: number) => Promise<void>;
  readonly secrets: SecretManager;
};

/** Secrets by reference: neither a job nor a record holds their values. */
export type SecretManager = {
  /** The value of a secret that the operator has made known by this name. Throws where there is none. */
  readonly get: (name: string) => Promise<string>;
};

export type PluginProperties = {
  /** Its jobs are never answered by an earlier job's result. */
  readonly disableCaching?: boolean;
  /** The greatest length of `taskName`, 14 or more; 50 if absent. A name that would be longer is a hash of 14 characters instead. */
  readonly generatedNameLengthMax?: number;
};

/**
 * Runs the jobs of a kind without pods. Each function may be called again with the same context after it has done its work, since its answer
 * may be lost; calling it twice must be the same as calling it once. None waits for the job: each says what is so now and returns. What takes
 * longer than the call's deadline is cut off: its signal is aborted, and it counts as failed.
 */
export type Plugin = {
  /** That of its entry. */
  readonly id: string;
  readonly properties?: PluginProperties;
  /** Brings the task one step further and says how it is. */
  readonly handle: (context: TaskContext) => Promise<Transition>;
  /** Ends what runs at the service; resolves once it is ended or there was nothing. */
  readonly abort: (context: TaskContext) => Promise<void>;
  /** Always called after the last `handle` or `abort` of an attempt, and before the job is forgotten. */
  readonly finalize: (context: TaskContext) => Promise<void>;
};

/** One round of one attempt of a job. */
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
   * Made of the job's uid, admission and attempt: the same in every round of an attempt, and never another's. What is started under it can be
   * found again, however often a round is repeated. Letters in lower case, digits and dashes.
   */
  readonly taskName: string;
  /** As the last recorded round left it; version 0 and null in the first round of an attempt. */
  readonly state: PluginState;
  readonly nowMs: number;
  /** Aborted at the call's deadline, and when this process is to stop. */
  readonly signal: AbortSignal;
  readonly resources: ResourceManager;
  readonly secrets: SecretManager;
};

/** A call's own caps on what its project and namespace use of the pool; absent: the pool's default. */
export type ResourceConstraints = { readonly project?: number; readonly namespace?: number };

/**
 * Tokens of pools, held by the job's admission. They do not lapse; what an attempt does not give back is given back after its `finalize`.
 * Throws while the counters are away: a call that does so counts as failed and is repeated.
 */
export type ResourceManager = {
  /** Idempotent by the token's name, which is the task's if absent. An amount that is absent is 1. */
  readonly allocate: (of: {
    readonly pool: string;
    readonly token?: string;
    readonly amount?: number;
    readonly constraints?: ResourceConstraints;
  }) => Promise<
    | { readonly status: "GRANTED" }
    | { readonly status: "EXHAUSTED" | "NAMESPACE_QUOTA_EXCEEDED"; readonly message: string }
  >;
  /** Giving back what is not held changes nothing. */
  readonly release: (of: { readonly pool: string; readonly token?: string }) => Promise<void>;
};

/** What `handle` came to: JSON of 65,536 characters at most, with no other members. Without `state` it stays as it was. */
export type Transition = {
  readonly info: PhaseInfo;
  /** Kept for the next round, also where the phase stays as it is: `{ version, value }`, of which the value is an object of the plugin's own. */
  readonly state?: PluginState;
  /** When to look again if nothing is heard, up to an hour; absent: 5 s. 0: at once, with the state recorded. */
  readonly recheckAfterMs?: number;
};

export type TaskFailure = { readonly code: string; readonly kind: FailureKind; readonly message: string };

/** What a plugin may say of its task beside the phase. */
export type TaskNews = {
  readonly logs?: readonly LogLink[];
  readonly externalResources?: readonly (Pick<ExternalResource, "externalId"> & Partial<ExternalResource>)[];
  readonly occurredAtMs?: number;
  readonly reportedAtMs?: number;
  readonly additionalReasons?: readonly (Pick<ReasonInfo, "reason"> & Partial<ReasonInfo>)[];
  readonly customInfo?: JsonObject;
};

/**
 * How a task is. Phase and version together are what is told of: the same ones again are no news, so a plugin that has something new to say in
 * the same phase raises the version; a lower one is not told. Phases may follow each other in any order until one ends the attempt (a success, a
 * failure, ABORTED); a job that has run stays RUNNING meanwhile, whatever its info says.
 */
export type PhaseInfo = {
  readonly phase: TaskPhase;
  readonly version: number;
  readonly reason: string;
  readonly task: TaskNews;
  /** Only of failures. */
  readonly failure?: TaskFailure;
  /** `abort` is called before the attempt is over. */
  readonly cleanupOnFailure?: boolean;
};

type Said = { readonly version?: number; readonly reason?: string; readonly task?: TaskNews };
type SaidFailure = {
  readonly code: string;
  readonly reason: string;
  /** USER if absent. */
  readonly kind?: FailureKind;
  readonly cleanup?: boolean;
  readonly task?: TaskNews;
};

function going(phase: TaskPhase): (said?: Said) => PhaseInfo {
  return ({ version = 0, reason = "", task = {} } = {}) => ({ phase, version, reason, task });
}

function failed(phase: TaskPhase): (said: SaidFailure) => PhaseInfo {
  return ({ code, reason, kind = "USER", cleanup = false, task = {} }) => ({
    phase,
    version: 0,
    reason,
    task,
    failure: { code, kind, message: reason },
    cleanupOnFailure: cleanup,
  });
}

/** Makes phase infos. A version that is absent is 0. */
export const phaseInfo = {
  /** How it is could not be told in this round. */
  undefined: going("UNDEFINED"),
  notReady: going("NOT_READY"),
  waitingForResources: going("WAITING_FOR_RESOURCES"),
  waitingForCache: going("WAITING_FOR_CACHE"),
  queued: going("QUEUED"),
  initializing: going("INITIALIZING"),
  running: going("RUNNING"),
  success: going("SUCCESS"),
  /** Another attempt follows if the budget of its kind of failure allows. */
  retryableFailure: failed("RETRYABLE_FAILURE"),
  permanentFailure: failed("PERMANENT_FAILURE"),
  /** Somebody else has ended it. */
  aborted: failed("ABORTED"),
} as const;

/** A log link's address from a template: `{{ .name }}` is replaced by the variable of that name, escaped for an address; unknown ones stay. */
export function logLink(name: string, template: string, variables: Readonly<Record<string, string>>): LogLink {
  const uri = template.replace(/\{\{\s*\.(\w+)\s*\}\}/g, (whole, variable: string) => {
    const value = Object.hasOwn(variables, variable) ? variables[variable] : undefined;
    return value === undefined ? whole : encodeURIComponent(value);
  });
  return { name, uri };
}

const API_VERSION = "gangway.dev/v1";
const DEFAULTS: KindDefaults = { restartPolicy: "OnFailure", restartScope: "GANG", backoffLimit: 6 };

/** What every kind has to say of itself. */
type Named = {
  readonly name: string;
  readonly description: string;
  /**
   * JSON Schemas by member of `kindSpec`; other members are refused. These words count, and what none of them says is for `validate`: `type` (one
   * or several), `enum`, `pattern`, `minLength`, `minimum`, `maximum`, `minItems`, `items`, `properties`, `required` and `additionalProperties:
   * false`. Integers end at 32 bits where no bound is given. `x-allowed` says in words what a value may be, `x-ignored` why one does nothing.
   */
  readonly kindSpec?: JsonObject;
  /** Members of `kindSpec` that every job has to have. */
  readonly required?: readonly string[];
};

/**
 * A kind of pods with all that it does not say as a plain Job has it. Where it names its roles, jobs may spell them in any case, and its example
 * has one pod of each.
 */
export function podKind({ name, description, kindSpec = {}, required = [], ...own }: Named & Partial<Kind>): Kind {
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

/** A kind whose jobs have no pods: a plugin runs them at a service. All of a job is in its `kindSpec`. */
export function serviceKind({
  example = {},
  ...own
}: Named & Partial<Pick<Kind, "validate" | "defaults">> & { readonly example?: JsonObject }): Kind {
  return {
    ...podKind(own),
    runs: "service",
    roles: [],
    example: exampleOf({ apiVersion: API_VERSION, kind: own.name, spec: { kindSpec: example } }),
    verdict: () => null,
  };
}

/** A role as `roles` spells it, from any case. What is listed there may be anything: it is looked at when the kind is registered. */
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
