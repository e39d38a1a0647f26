import { status as grpcStatus } from "@grpc/grpc-js";
import type { FleetSurvey } from "../core/admin/fleet-survey.ts";
import type { Job } from "../core/job/job.ts";
import { type ActedLike, countActions, countCreated } from "./count-changes.ts";
import type { Telemetry } from "./events.ts";
import { showSurvey } from "./fleet-gauges.ts";
import type { Meter, MetricKey } from "./metrics.ts";
import { observeKubeClient } from "./observe-kube-client.ts";
import {
  type ObservePorts,
  observeLedger,
  observePlannerStore,
  observeWatchStore,
  observeWorkerStore,
} from "./observe-stores.ts";
import type { Tracing } from "./tracing.ts";

type WriteFacts = { readonly limit: number; readonly inFlight: number; readonly waiting: number };
type HeardCluster = {
  readonly name: string;
  readonly lastHeardMs: () => number | null;
  readonly writes: () => WriteFacts;
};
type UnaryCall = { readonly method: string; readonly headers: Readonly<Record<string, unknown>> };

/** A method, whose parameter may be more precise in the intake that is wrapped. */
type IntakeLike = {
  submit(submission: unknown): Promise<unknown>;
  submitAll(submissions: readonly unknown[]): Promise<readonly unknown[]>;
};

/**
 * Wraps stores, clients and ports of stages, so that the operator sees what passes. If nothing is measured and nothing
 * traced, each wrapper returns its argument and each set of ports is empty: a stage runs exactly as without it.
 */
export type Instrumentation = {
  readonly plannerStore: <Store>(store: Store & Parameters<typeof observePlannerStore>[0]) => Store;
  readonly ledger: <Ledger>(ledger: Ledger & Parameters<typeof observeLedger>[0]) => Ledger;
  readonly workerStore: <Store>(store: Store & Parameters<typeof observeWorkerStore>[0]) => Store;
  readonly watchStore: <Store>(store: Store & Parameters<typeof observeWatchStore>[0]) => Store;
  readonly kubeClient: (cluster: string) => { readonly wrapClient?: typeof identity };
  readonly intake: <Intake extends IntakeLike>(intake: Intake) => Intake;
  /** For the intake's ports: the trace that new jobs are joined to. */
  readonly intakePorts: { readonly traceParent?: () => string | undefined };
  /** For the planner's ports. */
  readonly plannerPorts: {
    readonly onPlanned?: Telemetry["planned"];
    readonly onRested?: Telemetry["plannerRested"];
  };
  /** For the worker's ports. */
  readonly workerPorts: {
    readonly traceStep?: <T>(job: Job, run: () => Promise<T>) => Promise<T>;
    readonly onActed?: (job: Job, acted: readonly ActedLike[]) => void;
  };
  /** For the worker's options. */
  readonly workerOptions: {
    readonly onStep?: Telemetry["stepEnded"];
    readonly onPodPlaced?: Telemetry["podPlaced"];
    readonly onBuckets?: Telemetry["bucketsHeld"];
    readonly pluginEvents?: Pick<Telemetry, "pluginCalled" | "pluginAsked" | "pluginsWait">;
  };
  /** For the API's ports. */
  readonly apiPorts: {
    readonly observeCall?: <T extends { readonly code: number }>(call: UnaryCall, run: () => Promise<T>) => Promise<T>;
  };
  /** Measures the silence of these clusters at each scrape. */
  readonly clusters: (clusters: () => readonly HeardCluster[]) => void;
  /** Counts the connections of the listener for browsers at each scrape. */
  readonly consoleConnections: (count: () => number) => void;
  /** Shows the last survey of the fleet at each scrape. Null: nothing is measured. */
  readonly showSurvey: ((survey: () => FleetSurvey | null) => void) | null;
};

const identity = <T>(value: T): T => value;

const OFF: Instrumentation = {
  plannerStore: identity,
  ledger: identity,
  workerStore: identity,
  watchStore: identity,
  kubeClient: () => ({}),
  intake: identity,
  intakePorts: {},
  plannerPorts: {},
  workerPorts: {},
  workerOptions: {},
  apiPorts: {},
  clusters: () => {},
  consoleConnections: () => {},
  showSurvey: null,
};

/** Instruments a process. A null `meter` measures nothing; a null `tracing` makes no spans. */
export function createInstrumentation(ports: ObservePorts & { readonly meter: Meter | null }): Instrumentation {
  const { telemetry, tracing, meter, clock } = ports;
  if (meter === null && tracing === null) return OFF;
  return {
    plannerStore: (store) => observePlannerStore(store, ports),
    ledger: (ledger) => observeLedger(ledger, ports),
    workerStore: (store) => observeWorkerStore(store, ports),
    watchStore: (store) => observeWatchStore(store, ports),
    kubeClient: (cluster) => ({ wrapClient: (client) => observeKubeClient(client as never, cluster, ports) }),
    intake: (intake) => countCreated(ports, tracing === null ? intake : traceIntake(tracing, intake)),
    intakePorts: tracing === null ? {} : { traceParent: tracing.traceParent },
    plannerPorts: { onPlanned: telemetry.planned, onRested: telemetry.plannerRested },
    workerPorts: {
      onActed: (job, acted) => countActions(ports, job, acted),
      ...(tracing === null ? {} : { traceStep: traceStep(tracing) }),
    },
    workerOptions: {
      onStep: telemetry.stepEnded,
      onBuckets: telemetry.bucketsHeld,
      onPodPlaced: telemetry.podPlaced,
      pluginEvents: telemetry,
    },
    apiPorts: {
      observeCall: (call, run) => (tracing === null ? measured(ports, call, run) : traced(ports, tracing, call, run)),
    },
    clusters: (clusters) => {
      meter?.read("clusterSilence", () =>
        clusters().flatMap(({ name, lastHeardMs }) => {
          const heardMs = lastHeardMs();
          const value = heardMs === null ? 0 : (clock.monotonicMs() - heardMs) / 1000;
          return heardMs === null ? [] : [{ value, labels: { cluster: name } }];
        }),
      );
      const ofWrites = {
        clusterWritesLimit: "limit",
        clusterWritesInFlight: "inFlight",
        clusterWritesWaiting: "waiting",
      } as const satisfies Partial<Record<MetricKey, keyof WriteFacts>>;
      for (const [metric, fact] of Object.entries(ofWrites)) {
        meter?.read(metric as MetricKey, () =>
          clusters().map(({ name, writes }) => ({ value: writes()[fact], labels: { cluster: name } })),
        );
      }
    },
    consoleConnections: (count) => meter?.read("consoleConnections", () => [{ value: count(), labels: {} }]),
    showSurvey: meter === null ? null : (survey) => showSurvey(meter, survey),
  };
}

function traceIntake<Intake extends IntakeLike>(tracing: Tracing, intake: Intake): Intake {
  return {
    ...intake,
    submit: (submission) => tracing.span({ name: "intake submit" }, () => intake.submit(submission)),
  };
}

function traceStep(tracing: Tracing) {
  return <T>(job: Job, run: () => Promise<T>): Promise<T> => {
    const attributes = { "gangway.job.uid": job.uid, "gangway.job": `${job.namespace}/${job.name}` };
    return tracing.span({ name: "worker step", attributes, parent: { traceParent: job.traceParent } }, run);
  };
}

async function measured<T extends { readonly code: number }>(
  { clock, telemetry }: ObservePorts,
  { method }: UnaryCall,
  run: () => Promise<T>,
): Promise<T> {
  const startedMs = clock.monotonicMs();
  const answer = await run();
  telemetry.callEnded({ method, code: grpcStatus[answer.code] ?? "UNKNOWN", tookMs: clock.monotonicMs() - startedMs });
  return answer;
}

function traced<T extends { readonly code: number }>(
  ports: ObservePorts,
  tracing: Tracing,
  call: UnaryCall,
  run: () => Promise<T>,
): Promise<T> {
  const [service, method] = call.method.split("/");
  const attributes = { "rpc.system": "grpc", "rpc.service": service ?? "", "rpc.method": method ?? "" };
  return tracing.span(
    { name: call.method, kind: "server", attributes, parent: { headers: call.headers } },
    async (span) => {
      const answer = await measured(ports, call, run);
      span.setAttribute("rpc.grpc.status_code", answer.code);
      return answer;
    },
  );
}
