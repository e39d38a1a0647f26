import pino, { type Logger } from "pino";
import type { Meter } from "./metrics.ts";
import { type QuotaTelemetry, quotaTelemetry } from "./quota-telemetry.ts";

/** Everything that the service tells its operator, one function per event; some write one structured line, some measure, some both. */
export type Telemetry = {
  readonly serviceStarted: (facts: { readonly address: string; readonly directory: string }) => void;
  /** A process of a service that may have several; `address` where it serves the API. */
  readonly processStarted: (facts: { readonly roles: readonly string[]; readonly address: string | null }) => void;
  readonly serviceStopped: () => void;
  /** What the platform gives to pods has changed, and is in force for jobs that are made from now on. */
  readonly podConfigRead: (facts: { readonly file: string }) => void;
  /** A stage's loop failed and goes on after a pause. */
  readonly loopFailed: (facts: { readonly loop: string; readonly error: unknown }) => void;
  /** A call was answered INTERNAL; `reference` is what its caller was told. */
  readonly callFailed: (facts: { readonly reference: string; readonly error: unknown }) => void;
  readonly clusterFailed: (facts: { readonly cluster: string; readonly what: string; readonly error: unknown }) => void;
  /** A unary call was answered; `code` as gRPC names it, `NOT_FOUND`. */
  readonly callEnded: (facts: { readonly method: string; readonly code: string; readonly tookMs: number }) => void;
  /** The planner has read who waits: how many jobs in each queue, also where none does. */
  readonly queuesRead: (waiting: ReadonlyMap<string, number>) => void;
  readonly planned: (facts: { readonly planMs: number }) => void;
  readonly gangAdmitted: (facts: { readonly queue: string; readonly waitedMs: number }) => void;
  /** A transaction on the ledger of tokens has ended, or thrown: then the outcome is `failed`. */
  readonly ledgerCommitted: (facts: {
    readonly kind: "grant" | "release" | "confirm";
    readonly outcome: string;
    readonly tookMs: number;
  }) => void;
  readonly stepEnded: (facts: { readonly result: string; readonly tookMs: number; readonly lagMs: number }) => void;
  readonly bucketsHeld: (held: number) => void;
  /** A call to an API server was answered; `code` is `2xx`, the status of a refusal, or `unreachable`. */
  readonly kubernetesCalled: (facts: {
    readonly cluster: string;
    readonly verb: string;
    readonly resource: string;
    readonly code: string;
    readonly tookMs: number;
  }) => void;
  /** A job was created, restarted, has ended or was deleted; `cluster` is empty for one that is in none. */
  readonly jobChanged: (facts: { readonly kind: string; readonly cluster: string; readonly change: string }) => void;
  /** Something of a job was created or deleted, or could not be; or a pod has failed. */
  readonly objectsChanged: (facts: {
    readonly kind: string;
    readonly cluster: string;
    readonly object: string;
    readonly change: string;
    readonly count: number;
  }) => void;
  /** A plugin was called; `outcome` is `answered`, `failed` (rubbish, too) or `cut_off`. */
  readonly pluginCalled: (facts: {
    readonly kind: string;
    readonly call: string;
    readonly outcome: string;
    readonly tookMs: number;
  }) => void;
  /** A job without pods has come to another phase, as plugins name them. */
  readonly taskPhaseReached: (facts: { readonly kind: string; readonly phase: string }) => void;
  /** A plugin has asked for tokens; `outcome` as it was told, or `failed`. */
  readonly pluginAsked: (facts: { readonly kind: string; readonly pool: string; readonly outcome: string }) => void;
  /** So many jobs of this worker lack tokens of a pool. */
  readonly pluginsWait: (facts: { readonly kind: string; readonly pool: string; readonly jobs: number }) => void;
  /** Changes got their places in the event log; the oldest of them waited so long. */
  readonly changesSequenced: (facts: { readonly lagMs: number }) => void;
  readonly quota: QuotaTelemetry;
};

export type TelemetryOptions = {
  readonly level: string;
  /** Where lines go: a file, which is made if it is not there, or standard output for null. */
  readonly file: string | null;
  /** Null: nothing is measured. */
  readonly meter?: Meter | null;
  /** What each line is joined to its trace by; absent: nothing is traced. */
  readonly traceIds?: (() => Readonly<Record<string, string>>) | undefined;
};

/** Lines are written before the call returns, so that a kill loses none. */
export function createTelemetry({ level, file, meter = null, traceIds }: TelemetryOptions): Telemetry {
  const log = pino(
    {
      level,
      base: null,
      serializers: { error: pino.stdSerializers.err },
      ...(traceIds === undefined ? null : { mixin: traceIds }),
    },
    pino.destination({ dest: file ?? 1, mkdir: true, sync: true }),
  );
  return telemetryOn(log, meter);
}

const NOBODY_MEASURES: Meter = { record: () => {}, read: () => {} };

function telemetryOn(log: Logger, measuring: Meter | null): Telemetry {
  const meter = measuring ?? NOBODY_MEASURES;
  const loopFailed: Telemetry["loopFailed"] = (facts) => {
    log.error(facts, "loop failed, goes on");
    // What follows names one job, which would make a series of its own.
    meter.record("loopFailures", 1, { loop: facts.loop.split(" of job ")[0] ?? facts.loop });
  };
  return {
    serviceStarted: (facts) => log.info(facts, "service started"),
    processStarted: (facts) => log.info(facts, "process started"),
    serviceStopped: () => log.info("service stopped"),
    podConfigRead: (facts) => log.info(facts, "pod config read"),
    loopFailed,
    quota: quotaTelemetry(log, meter, { monotonicMs: () => performance.now(), loopFailed }),
    callFailed: (facts) => {
      log.error(facts, "call failed");
      meter.record("internalErrors", 1);
    },
    clusterFailed: (facts) => {
      log.warn(facts, "cluster call failed");
      meter.record("clusterFailures", 1, { cluster: facts.cluster });
    },
    ...measurements(meter),
  };
}

function measurements(meter: Meter) {
  let queues: ReadonlyMap<string, number> = new Map();
  return {
    callEnded: ({ method, code, tookMs }) => meter.record("apiCallDuration", seconds(tookMs), { method, code }),
    queuesRead: (waiting) => {
      for (const queue of queues.keys()) if (!waiting.has(queue)) meter.record("queueDepth", 0, { queue });
      for (const [queue, jobs] of waiting) meter.record("queueDepth", jobs, { queue });
      queues = waiting;
    },
    planned: ({ planMs }) => meter.record("planDuration", seconds(planMs)),
    gangAdmitted: ({ queue, waitedMs }) => meter.record("admissionWait", seconds(waitedMs), { queue }),
    ledgerCommitted: ({ kind, outcome, tookMs }) => {
      meter.record("ledgerCommits", 1, { kind, outcome });
      meter.record("ledgerCommitDuration", seconds(tookMs), { kind });
    },
    stepEnded: ({ result, tookMs, lagMs }) => {
      meter.record("reconcileDuration", seconds(tookMs), { result });
      meter.record("reconcileLag", seconds(lagMs));
    },
    bucketsHeld: (held) => meter.record("bucketsHeld", held),
    kubernetesCalled: ({ cluster, verb, resource, code, tookMs }) => {
      meter.record("kubernetesCalls", 1, { cluster, verb, resource, code });
      meter.record("kubernetesCallDuration", seconds(tookMs), { cluster, verb });
    },
    jobChanged: ({ kind, cluster, change }) => meter.record("jobChanges", 1, { kind, cluster, change }),
    objectsChanged: ({ count, ...labels }) => meter.record("objectChanges", count, labels),
    pluginCalled: ({ tookMs, ...labels }) => meter.record("pluginCallDuration", seconds(tookMs), labels),
    taskPhaseReached: (labels) => meter.record("pluginPhases", 1, labels),
    pluginAsked: (labels) => meter.record("pluginAllocations", 1, labels),
    pluginsWait: ({ jobs, ...labels }) => meter.record("pluginTokensWaiting", jobs, labels),
    changesSequenced: ({ lagMs }) => meter.record("watchLag", seconds(lagMs)),
  } satisfies Partial<Telemetry>;
}

/** A clock of another machine may be ahead: no duration is below 0. */
function seconds(durationMs: number): number {
  return Math.max(0, durationMs) / 1000;
}
