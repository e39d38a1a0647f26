/** What Gangway does for plugins beside tokens and secrets: places of data, events, and facts about the platform. */
import type { Json, JsonObject } from "../../runtime/json.ts";
import type { PodConfig } from "../pods/pod-config.ts";

/** The most bytes of one object that a plugin reads or writes. */
export const OBJECT_BYTES_MAX = 10 * 1024 * 1024;

/**
 * Objects by their URL, such as `s3://bucket/path` or `file:///folder/path`. Only the places that the operator has
 * opened for the job's namespace can be reached; every other URL is an error. Every function throws if the place cannot
 * be reached.
 */
export type DataStore = {
  /** The size of an object. Null: there is none. */
  readonly head: (url: string) => Promise<{ readonly bytes: number } | null>;
  /** Null: there is none. Throws if it is larger than `bytesMax` of the context. */
  readonly read: (url: string) => Promise<Uint8Array | null>;
  /** Replaces an object that exists. */
  readonly write: (url: string, data: Uint8Array | string) => Promise<void>;
  /** Succeeds without effect if there is none. */
  readonly delete: (url: string) => Promise<void>;
};

/** An event of the job that a plugin records. A call that is repeated records it again. */
export type PluginEvent = {
  /** A letter, then up to 62 letters and digits. */
  readonly reason: string;
  readonly message: string;
  /** True: a Warning. Omitted: a Normal event. */
  readonly isWarning?: boolean;
};

export type EventsRecorder = {
  /** Adds an event to the job's. At most 20 in one call; throws for more, and for wrong members. */
  readonly record: (event: PluginEvent) => void;
};

/**
 * Measures of a plugin's own, among Gangway's metrics. A name is a small letter, then up to 62 small letters, digits
 * and `_`; a label has at most 63 characters. The first 200 names with their labels are shown by themselves, others
 * together. Both functions throw for other names and labels.
 */
export type MetricsScope = {
  /** Adds to `gangway_plugin_own_total`. Omitted: 1, without a label. */
  readonly count: (name: string, of?: { readonly by?: number; readonly label?: string }) => void;
  /** Adds a time to `gangway_plugin_own_seconds`. */
  readonly time: (name: string, of: { readonly tookMs: number; readonly label?: string }) => void;
};

/** What the platform gives to pods of the job's namespace, for plugins that start something alike elsewhere. */
export type PlatformFacts = {
  readonly environment: Readonly<Record<string, string>>;
  /** Empty: the namespace's default. */
  readonly serviceAccount: string;
  /** A Kubernetes PodSecurityContext and SecurityContext. Null: none. */
  readonly podSecurityContext: JsonObject | null;
  readonly securityContext: JsonObject | null;
  /** Defaults and limits, as Kubernetes quantities by resource. */
  readonly resources: {
    readonly defaults: Readonly<Record<string, string>>;
    readonly limits: Readonly<Record<string, string>>;
  };
};

/** How often a job may be tried. */
export type AttemptLimits = {
  /** The job fails at this number of failures of the user. Null: no limit. */
  readonly user: number | null;
  /** The same of the system. */
  readonly system: number;
};

/** What a platform's settings give to the namespace. */
export function platformFacts(config: PodConfig, namespace: string): PlatformFacts {
  const own = config.namespaces[namespace];
  return {
    environment: config.defaultEnvVars,
    serviceAccount: own?.serviceAccount ?? config.serviceAccount,
    podSecurityContext: config.defaultPodSecurityContext ?? null,
    securityContext: config.defaultSecurityContext ?? null,
    resources: own?.resources ?? config.resources ?? NO_PLATFORM.resources,
  };
}

const METRIC_NAME = /^[a-z][a-z0-9_]{0,62}$/;
const LABEL_CHARS_MAX = 63;

/** Something that a plugin measures itself, by a name and a label of its own. */
export type PluginMeasure = { readonly plugin: string; readonly name: string; readonly label: string };

type OwnMeasure = Omit<PluginMeasure, "plugin">;

/** Checks what a plugin measures, and passes it on. */
export function metricsScope(of: {
  readonly counted: (facts: OwnMeasure & { readonly by: number }) => void;
  readonly timed: (facts: OwnMeasure & { readonly tookMs: number }) => void;
}): MetricsScope {
  const check = (name: string, label: string, amount: number) => {
    if (typeof name !== "string" || !METRIC_NAME.test(name)) {
      throw new Error("a metric's name must be a small letter, then up to 62 small letters, digits and _");
    }
    if (typeof label !== "string" || label.length > LABEL_CHARS_MAX) {
      throw new Error(`a metric's label must be text of at most ${LABEL_CHARS_MAX} characters`);
    }
    if (!Number.isFinite(amount) || amount < 0) throw new Error("a metric's amount must be a number of at least 0");
  };
  return {
    count: (name, { by = 1, label = "" } = {}) => {
      check(name, label, by);
      of.counted({ name, label, by });
    },
    time: (name, { tookMs, label = "" }) => {
      check(name, label, tookMs);
      of.timed({ name, label, tookMs });
    },
  };
}

const EVENTS_MAX = 20;
const REASON = /^[A-Za-z][A-Za-z0-9]{0,62}$/;

/** Keeps the events of one call. */
export function eventsOfCall(): { readonly recorder: EventsRecorder; readonly events: readonly PluginEvent[] } {
  const events: PluginEvent[] = [];
  const record = ({ reason, message, isWarning = false }: PluginEvent) => {
    if (typeof reason !== "string" || !REASON.test(reason)) {
      throw new Error("reason must be a letter, then up to 62 letters and digits");
    }
    if (typeof message !== "string") throw new Error("message must be text");
    if (events.length >= EVENTS_MAX) throw new Error(`a call may record ${EVENTS_MAX} events`);
    events.push({ reason, message, isWarning });
  };
  return { recorder: { record }, events };
}

/** A platform that gives nothing. */
export const NO_PLATFORM: PlatformFacts = {
  environment: {},
  serviceAccount: "",
  podSecurityContext: null,
  securityContext: null,
  resources: { defaults: {}, limits: {} },
};

async function unreachable(): Promise<never> {
  throw new Error("this process reaches no objects: set GANGWAY_OBJECT_STORES");
}

/** Reaches nothing. */
export const NO_STORE: DataStore = {
  head: unreachable,
  read: unreachable,
  write: unreachable,
  delete: unreachable,
};

/** The names and values of inputs or outputs. */
export type TaskValues = Readonly<Record<string, Json | undefined>>;
