/** Serves on-call engineers: the log lines and the measurements of every event that the service reports. */
import pino, { type Logger } from "pino";
import type { AuditEntry } from "../core/admin/audit.ts";
import type { PluginMeasure } from "../core/kinds/plugin-services.ts";
import { REDIS_STATES, type RedisState } from "../core/quota/redis-state.ts";
import type { ClockEvents } from "../runtime/decision-clock.ts";
import { FOREIGN_BYTES_MAX, foreignText } from "../runtime/foreign-text.ts";
import type { LogFormat } from "../runtime/log-format.ts";
import { boundedLabel, boundedReadings, OTHER } from "./bounded-labels.ts";
import { openLog } from "./log-output.ts";
import { formatted } from "./log-text.ts";
import type { Meter } from "./metrics.ts";
import { type QuotaTelemetry, quotaTelemetry } from "./quota-telemetry.ts";

/** Reports to the operator, one function for each event. An event writes a log line, measures, or both. */
export type Telemetry = ClockEvents & {
  readonly serviceStarted: (facts: {
    readonly address: string;
    /** Where it serves HTTP. Omitted: it does not. */
    readonly web?: string;
    readonly directory: string;
  }) => void;
  /** A process of `gangway serve` has started. A null address: it does not serve the API. */
  readonly processStarted: (facts: {
    readonly roles: readonly string[];
    readonly address: string | null;
    readonly web?: string;
  }) => void;
  readonly serviceStopped: () => void;
  /** The database works, but lacks something that this process asks for. The warning says what to set. */
  readonly databaseWarned: (facts: { readonly warning: string }) => void;
  /** The platform's settings for pods have changed. They apply to jobs that are created from now on. */
  readonly podConfigRead: (facts: { readonly file: string }) => void;
  /** A member of the platform's settings for pods has no effect here. The note says what has. */
  readonly podConfigNoted: (facts: { readonly file: string; readonly note: string }) => void;
  /** The certificate of the listeners has changed. Connections that exist keep theirs. */
  readonly certificateRead: (facts: { readonly file: string }) => void;
  /** The API is served to other machines, and lacks `encryption`, `authentication` or both. */
  readonly servedInsecurely: (facts: { readonly address: string; readonly lacks: readonly string[] }) => void;
  /** A round of a stage's loop failed. The loop continues after a pause. */
  readonly loopFailed: (facts: { readonly loop: string; readonly error: unknown }) => void;
  /** A call was answered with INTERNAL and this reference. */
  readonly callFailed: (facts: { readonly reference: string; readonly error: unknown }) => void;
  /** `cluster` null: the failure concerns all clusters. */
  readonly clusterFailed: (facts: {
    readonly cluster: string | null;
    readonly what: string;
    readonly error: unknown;
  }) => void;
  /** A call was answered with UNAUTHENTICATED before anything of it was read. */
  readonly callRefused: (facts: { readonly method: string }) => void;
  /** Requests, or items of one, passed a declared limit. They were refused before they were decoded. */
  readonly requestBeyondLimit: (facts: { readonly method: string; readonly count: number }) => void;
  /** A browser logged in. `peer`: from where. */
  readonly sessionBegun: (facts: { readonly subject: string; readonly method: string; readonly peer: string }) => void;
  /** The login of a browser is over before its time. */
  readonly sessionEnded: (facts: { readonly subject: string; readonly why: string }) => void;
  /** A request of a browser was turned away before its caller was known. */
  readonly requestTurnedAway: (facts: { readonly reason: string }) => void;
  /** A caller that is known lacks a permission, or may not see what the call is about. */
  readonly callDenied: (facts: { readonly rpc: string }) => void;
  /** An entry of the audit log was committed. */
  readonly audited: (entry: AuditEntry) => void;
  /** Roles and bindings of the file were read again, because it has changed. */
  readonly accessFileRead: (facts: { readonly file: string }) => void;
  /** Limits of callers were read again, because their file has changed. */
  readonly limitsFileRead: (facts: { readonly file: string }) => void;
  /** The keys of credentials were read again, because their file has changed. `keys`: their names. */
  readonly credentialKeysRead: (facts: {
    readonly file: string;
    readonly current: string | null;
    readonly keys: readonly string[];
  }) => void;
  /** Credentials of these clusters cannot be decrypted, because this process lacks their key. */
  readonly credentialKeyMissing: (facts: { readonly key: string; readonly clusters: readonly string[] }) => void;
  /** A call was refused because its caller has reached a limit. */
  readonly callLimited: (facts: { readonly limit: string }) => void;
  /** The methods of authentication were read again, because their file has changed. */
  readonly authenticationFileRead: (facts: { readonly file: string }) => void;
  /** A unary call was answered. `code` is gRPC's name, such as `NOT_FOUND`. */
  readonly callEnded: (facts: { readonly method: string; readonly code: string; readonly tookMs: number }) => void;
  /** The planner has decided. `depths`: how many jobs wait in each queue, queues without any included. */
  readonly planned: (facts: {
    readonly planMs: number;
    readonly depths: ReadonlyMap<string, number>;
    readonly reservations: number;
  }) => void;
  /** This process' planner does not lead: what it knew of queues may be wrong by now. */
  readonly plannerRested: () => void;
  /** The planner's state was compared with the store. `wrong`: entities of which it has missed a change. */
  readonly plannerStateChecked: (facts: { readonly wrong: readonly string[]; readonly tookMs: number }) => void;
  readonly gangAdmitted: (facts: { readonly queue: string; readonly waitedMs: number }) => void;
  /** A gang's admission is to be undone for another gang: `reason` is Kueue's, and `queue` that of the other gang. */
  readonly gangPreempted: (facts: { readonly reason: string; readonly queue: string }) => void;
  /** A transaction on the ledger of tokens has ended. If it threw, the outcome is `failed`. */
  readonly ledgerCommitted: (facts: {
    readonly kind: "grant" | "release" | "confirm";
    readonly outcome: string;
    readonly tookMs: number;
  }) => void;
  readonly stepEnded: (facts: { readonly result: string; readonly tookMs: number; readonly lagMs: number }) => void;
  /** The buckets that this worker holds have changed: so many were `taken` from free ones, or have `left`. */
  readonly bucketsHeld: (held: number, moved?: { readonly change: "taken" | "left"; readonly buckets: number }) => void;
  /** Code of a step or of a plugin has run without a pause. */
  readonly codeRan: (facts: { readonly of: string; readonly tookMs: number }) => void;
  /** Code has blocked this process: of a step for its job, of the plugin `name`, or for an answer of the cluster. */
  readonly codeBlocked: (facts: {
    readonly of: string;
    readonly name: string;
    readonly jobUid: string | null;
    readonly tookMs: number;
  }) => void;
  /** How many jobs this worker is still to step one at a time, after two workers have ended. */
  readonly suspectsLeft: (left: number) => void;
  /** A pod has come to a node. `onPlan`: to the planned one. */
  readonly podPlaced: (facts: { readonly cluster: string; readonly onPlan: boolean }) => void;
  /** A job was set aside: its step has stopped workers. */
  readonly jobSetAside: (facts: { readonly job: string; readonly uid: string; readonly reason: string }) => void;
  /** A Kubernetes API server has throttled a write, or has answered it too late. */
  readonly clusterThrottled: (facts: { readonly cluster: string }) => void;
  /** A cluster has not answered for so long that it counts as lost. */
  readonly clusterLost: (facts: { readonly cluster: string }) => void;
  /** Clusters that do not answer do not count as lost by themselves: too much of the fleet is silent. */
  readonly clustersHeld: (facts: { readonly clusters: readonly string[] }) => void;
  /** A call to a Kubernetes API server has ended. `code` is `2xx`, the status of a refusal, or `unreachable`. */
  readonly kubernetesCalled: (facts: {
    readonly cluster: string;
    readonly verb: string;
    readonly resource: string;
    readonly code: string;
    readonly tookMs: number;
  }) => void;
  /** A job was created, restarted, has ended or was deleted; `cluster` is null for one that is in none. */
  readonly jobChanged: (facts: {
    readonly kind: string;
    readonly cluster: string | null;
    readonly change: string;
  }) => void;
  /** A job has ended in this phase; `reason` is why it has failed, else empty. */
  readonly jobEnded: (facts: { readonly phase: string; readonly reason: string }) => void;
  /** Objects of a job were created or deleted, attempts to do so failed, or pods failed. */
  readonly objectsChanged: (facts: {
    readonly kind: string;
    readonly cluster: string | null;
    readonly object: string;
    readonly change: string;
    readonly count: number;
  }) => void;
  /** Last lines of failed containers were kept, or could not be read: the reason of each. */
  readonly failureLogsKept: (facts: { readonly bytes: number; readonly problems: readonly string[] }) => void;
  /** A call of a plugin has ended: `answered`, `failed` (also for an invalid answer) or `cut_off`. */
  readonly pluginCalled: (facts: {
    readonly kind: string;
    readonly call: string;
    readonly outcome: string;
    readonly tookMs: number;
  }) => void;
  /** A job without pods has entered a phase of its plugin. */
  readonly taskPhaseReached: (facts: { readonly kind: string; readonly phase: string }) => void;
  /** A plugin's request for tokens was answered with this outcome, or has `failed`. */
  readonly pluginAsked: (facts: { readonly kind: string; readonly pool: string; readonly outcome: string }) => void;
  /** A plugin has counted something of its own. */
  readonly pluginCounted: (facts: PluginMeasure & { readonly by: number }) => void;
  /** A plugin has measured a time of its own. */
  readonly pluginTimed: (facts: PluginMeasure & { readonly tookMs: number }) => void;
  /** The number of this worker's jobs that lack tokens of a pool. */
  readonly pluginsWait: (facts: { readonly kind: string; readonly pool: string; readonly jobs: number }) => void;
  /** The database refused a query or a transaction for lack of something, such as room on its disk. */
  readonly databaseShort: (facts: { readonly shortage: string }) => void;
  /** Whether Redis grants tokens now: `ok`, or what it lacks. */
  readonly redisSeen: (facts: { readonly state: RedisState }) => void;
  /** Changes got their positions in the event log. `lagMs` is how long the oldest of them waited. */
  readonly changesSequenced: (facts: { readonly lagMs: number }) => void;
  /** The log of changes has begun anew, after a restore or a fail-over: watches get GAP. */
  readonly logBegunAnew: (facts: { readonly incarnation: string; readonly position: number }) => void;
  /** A page of rows that are older than they are kept was deleted. */
  readonly rowsPruned: (facts: { readonly kind: string; readonly rows: number }) => void;
  readonly quota: QuotaTelemetry;
};

export type TelemetryOptions = {
  readonly level: string;
  /** The file of the log, which is created if it does not exist. Null: standard output. */
  readonly file: string | null;
  /** Omitted: lines are JSON. */
  readonly format?: LogFormat;
  /** Omitted or null: nothing is measured. */
  readonly meter?: Meter | null;
  /** Fields that join a line to its trace. Omitted: nothing is traced. */
  readonly traceIds?: (() => Readonly<Record<string, string>>) | undefined;
};

export function createTelemetry(options: TelemetryOptions): Telemetry {
  const { level, file, format = "json", meter = null, traceIds } = options;
  const log: Logger = pino(
    {
      level,
      base: null,
      serializers: { error: shownError },
      ...(traceIds === undefined ? null : { mixin: traceIds }),
    },
    formatted(
      openLog(file, {
        onDropped: (reason) => meter?.record("logLinesDropped", 1, { reason }),
        onResumed: (dropped) => log.warn(dropped, "log lines dropped before this one"),
      }),
      format,
    ),
  );
  return telemetryOn(log, meter);
}

/** The longest stack that one line has. It begins with the message. */
const STACK_BYTES_MAX = 2 * FOREIGN_BYTES_MAX;

const AGGREGATED_MAX = 4;

/** An error as a log line shows it. Its words may be those of a cluster, a plugin or a database. */
export function shownError(error: unknown): unknown {
  if (!(error instanceof Error)) return typeof error === "string" ? foreignText(error) : error;
  const members = Object.entries(pino.stdSerializers.err(error)).flatMap(([name, value]) => {
    if (typeof value === "object") return [];
    const bytesMax = name === "stack" ? STACK_BYTES_MAX : FOREIGN_BYTES_MAX;
    return [[name, typeof value === "string" ? foreignText(value, bytesMax) : value] as const];
  });
  const { errors = [] } = error as { readonly errors?: readonly unknown[] };
  const aggregateErrors = errors.slice(0, AGGREGATED_MAX).map(shownError);
  return { ...Object.fromEntries(members), ...(aggregateErrors.length === 0 ? {} : { aggregateErrors }) };
}

/** How many entities of a wrong state one line names. */
const WRONG_LOGGED = 20;

/** A metric by queue names so many queues by themselves. */
const QUEUES_MAX = 1_000;
/** Plugins and programs of users can name reasons of their own. */
const REASONS_MAX = 100;

/** The names with their labels that all plugins of a process may give to measures of their own. */
const OWN_NAMES_MAX = 200;

const NO_METER: Meter = { record: () => {}, read: () => {} };

function telemetryOn(log: Logger, measuring: Meter | null): Telemetry {
  const meter = measuring ?? NO_METER;
  const loopFailed: Telemetry["loopFailed"] = (facts) => {
    log.error(facts, "loop failed and continues");
    // The rest of the name is a job's uid: each would be a series of its own.
    meter.record("loopFailures", 1, { loop: facts.loop.split(" of job ")[0] ?? facts.loop });
  };
  return {
    serviceStarted: (facts) => log.info(facts, "service started"),
    processStarted: (facts) => log.info(facts, "process started"),
    serviceStopped: () => log.info("service stopped"),
    logBegunAnew: (facts) => log.warn(facts, "the database was restored or failed over: watches begin anew"),
    databaseWarned: (facts) => log.warn(facts, "database set up incompletely"),
    podConfigRead: (facts) => log.info(facts, "pod settings read again"),
    podConfigNoted: (facts) => log.warn(facts, "pod settings have a member without effect"),
    certificateRead: (facts) => log.info(facts, "certificate read again"),
    authenticationFileRead: (facts) => log.info(facts, "methods of authentication read again"),
    accessFileRead: (facts) => log.info(facts, "roles and bindings read again"),
    limitsFileRead: (facts) => log.info(facts, "limits of callers read again"),
    credentialKeysRead: (facts) => log.info(facts, "keys of credentials read again"),
    credentialKeyMissing: (facts) => log.error(facts, "key of credentials missing: put it back into the file"),
    sessionBegun: (facts) => log.info(facts, "browser logged in"),
    sessionEnded: (facts) => log.info(facts, "session of a browser ended"),
    audited: (audit) => log.info({ audit }, "audited"),
    servedInsecurely: (facts) => log.warn(facts, "serving without protection, because of --insecure"),
    loopFailed,
    ...clockEvents(log, meter),
    quota: quotaTelemetry(log, meter, { monotonicMs: () => performance.now(), loopFailed }),
    callFailed: (facts) => {
      log.error(facts, "call answered with INTERNAL");
      meter.record("internalErrors", 1);
    },
    clusterThrottled: ({ cluster }) => meter.record("clusterWritesThrottled", 1, { cluster }),
    clusterFailed: (facts) => {
      log.warn(facts, "cluster call failed");
      meter.record("clusterFailures", 1, { cluster: facts.cluster ?? "" });
    },
    clusterLost: (facts) => log.error(facts, "cluster counts as lost: gangs that never ran there go elsewhere"),
    clustersHeld: (facts) =>
      log.error(facts, "clusters are silent, and too much of the fleet is: declare them lost if they are"),
    codeBlocked: (facts) => {
      log.warn(facts, "code blocked this process");
      meter.record("codeBlocked", 1, { of: facts.of, name: facts.name });
    },
    podPlaced: ({ cluster, onPlan }) => {
      meter.record("podsPlaced", 1, { cluster });
      if (!onPlan) meter.record("podsOffPlan", 1, { cluster });
    },
    jobSetAside: (facts) => {
      log.error(facts, "job set aside: its step has stopped workers");
      meter.record("jobsSetAside", 1, { reason: facts.reason });
    },
    plannerStateChecked: ({ wrong, tookMs }) => {
      const facts = { wrong: wrong.slice(0, WRONG_LOGGED), count: wrong.length, tookMs };
      if (wrong.length > 0) log.error(facts, "the planner's state had missed changes; it is loaded again");
      meter.record("plannerStateChecks", 1, { outcome: wrong.length === 0 ? "right" : "wrong" });
    },
    ...measurements(meter),
  };
}

function clockEvents(log: Logger, meter: Meter): ClockEvents {
  return {
    clockStepped: (facts) => {
      const use =
        facts.clock === "database"
          ? "decision time follows it by at most 10 % of the time that passes"
          : "only credentials and certificates are judged by it";
      log.warn(facts, `the clock of the ${facts.clock} stepped: ${use}`);
      meter.record("clockSteps", 1, { clock: facts.clock });
    },
    clockJumped: (facts) => log.info(facts, "the machine slept, or this process stood still"),
    clockMeasured: ({ aheadMs }) => meter.record("decisionTimeAhead", aheadMs / 1000),
  };
}

function measurements(meter: Meter) {
  let planned: { readonly depths: ReadonlyMap<string, number>; readonly reservations: number } | null = null;
  const bound = { label: "queue", most: QUEUES_MAX };
  meter.read("queueDepth", () =>
    boundedReadings(
      [...(planned?.depths ?? [])].map(([queue, value]) => ({ value, labels: { queue } })),
      bound,
    ),
  );
  meter.read("reservations", () => (planned === null ? [] : [{ value: planned.reservations, labels: {} }]));
  const queueLabel = boundedLabel(QUEUES_MAX);
  const own = ownLabels();
  const reasonLabel = boundedLabel(REASONS_MAX);
  return {
    callLimited: ({ limit }) => meter.record("callsLimited", 1, { limit }),
    callDenied: ({ rpc }) => meter.record("callsDenied", 1, { method: rpc }),
    callRefused: ({ method }) => meter.record("callsRefused", 1, { method: method.replace(/^\//, "") }),
    requestTurnedAway: ({ reason }) => meter.record("consoleRefused", 1, { reason }),
    requestBeyondLimit: ({ method, count }) => meter.record("requestsBeyondLimits", count, { method }),
    callEnded: ({ method, code, tookMs }) => meter.record("apiCallDuration", seconds(tookMs), { method, code }),
    planned: ({ planMs, depths, reservations }) => {
      meter.record("planDuration", seconds(planMs));
      planned = { depths, reservations };
    },
    plannerRested: () => {
      planned = null;
    },
    gangAdmitted: ({ queue, waitedMs }) =>
      meter.record("admissionWait", seconds(waitedMs), { queue: queueLabel(queue) }),
    gangPreempted: ({ reason, queue }) => meter.record("preemptions", 1, { reason, queue: queueLabel(queue) }),
    ledgerCommitted: ({ kind, outcome, tookMs }) => {
      meter.record("ledgerCommits", 1, { kind, outcome });
      meter.record("ledgerCommitDuration", seconds(tookMs), { kind });
    },
    stepEnded: ({ result, tookMs, lagMs }) => {
      meter.record("reconcileDuration", seconds(tookMs), { result });
      meter.record("reconcileLag", seconds(lagMs));
    },
    bucketsHeld: (held, moved) => {
      meter.record("bucketsHeld", held);
      if (moved !== undefined) meter.record("bucketMoves", moved.buckets, { change: moved.change });
    },
    codeRan: ({ of, tookMs }) => meter.record("codeDuration", seconds(tookMs), { of }),
    suspectsLeft: (left) => meter.record("suspects", left),
    kubernetesCalled: ({ cluster, verb, resource, code, tookMs }) => {
      meter.record("kubernetesCalls", 1, { cluster, verb, resource, code });
      meter.record("kubernetesCallDuration", seconds(tookMs), { cluster, verb });
    },
    jobChanged: ({ kind, cluster, change }) => meter.record("jobChanges", 1, { kind, cluster: cluster ?? "", change }),
    jobEnded: ({ phase, reason }) => meter.record("jobsEnded", 1, { phase, reason: reasonLabel(reason) }),
    objectsChanged: ({ count, cluster, ...labels }) =>
      meter.record("objectChanges", count, { ...labels, cluster: cluster ?? "" }),
    failureLogsKept: ({ bytes, problems }) => {
      if (bytes > 0) meter.record("failureLogBytes", bytes);
      for (const reason of problems) meter.record("failureLogProblems", 1, { reason });
    },
    pluginCalled: ({ tookMs, ...labels }) => meter.record("pluginCallDuration", seconds(tookMs), labels),
    taskPhaseReached: (labels) => meter.record("pluginPhases", 1, labels),
    pluginAsked: (labels) => meter.record("pluginAllocations", 1, labels),
    pluginCounted: ({ by, ...labels }) => meter.record("pluginOwnCounts", by, own(labels)),
    pluginTimed: ({ tookMs, ...labels }) => meter.record("pluginOwnDurations", seconds(tookMs), own(labels)),
    pluginsWait: ({ jobs, ...labels }) => meter.record("pluginTokensWaiting", jobs, labels),
    databaseShort: ({ shortage }) => meter.record("databaseShortages", 1, { shortage }),
    redisSeen: ({ state }) => {
      for (const one of REDIS_STATES) meter.record("redisState", one === state ? 1 : 0, { state: one });
    },
    changesSequenced: ({ lagMs }) => meter.record("watchLag", seconds(lagMs)),
    rowsPruned: ({ kind, rows }) => meter.record("rowsPruned", rows, { kind }),
  } satisfies Partial<Telemetry>;
}

/** The names of all plugins beyond the first ones count together. */
function ownLabels(): (measure: PluginMeasure) => PluginMeasure {
  const known = boundedLabel(OWN_NAMES_MAX);
  return (measure) => {
    const { plugin, name, label } = measure;
    return known(JSON.stringify([plugin, name, label])) === OTHER ? { plugin, name: OTHER, label: "" } : measure;
  };
}

/** Never below 0, although another machine's clock may be ahead. */
function seconds(durationMs: number): number {
  return Math.max(0, durationMs) / 1000;
}
