import { status as grpcStatus } from "@grpc/grpc-js";
import type { Job } from "../core/job/job.ts";
import { type ActedLike, countActions, countCreated } from "./count-changes.ts";
import type { Telemetry } from "./events.ts";
import type { Meter } from "./metrics.ts";
import { observeKubeClient } from "./observe-kube-client.ts";
import {
  type ObservePorts,
  observeLedger,
  observePlannerStore,
  observeWatchStore,
  observeWorkerStore,
} from "./observe-stores.ts";
import type { Tracing } from "./tracing.ts";

type Heard = { readonly name: string; readonly lastHeardMs: () => number | null };
type Call = { readonly method: string; readonly headers: Readonly<Record<string, unknown>> };

/** A method, whose parameter may be more precise in the intake that is wrapped. */
type SubmitsLike = {
  submit(submission: unknown): Promise<unknown>;
  submitAll(submissions: readonly unknown[]): Promise<readonly unknown[]>;
};

/**
 * What the composition root puts between the parts so that the operator sees what passes. Everything here is the identity or absent where
 * nothing is measured and nothing traced: then a stage runs exactly as without it.
 */
export type Observer = {
  readonly plannerStore: <Store>(store: Store & Parameters<typeof observePlannerStore>[0]) => Store;
  readonly ledger: <Ledger>(ledger: Ledger & Parameters<typeof observeLedger>[0]) => Ledger;
  readonly workerStore: <Store>(store: Store & Parameters<typeof observeWorkerStore>[0]) => Store;
  readonly watchStore: <Store>(store: Store & Parameters<typeof observeWatchStore>[0]) => Store;
  readonly kubeClient: (cluster: string) => { readonly wrapClient?: typeof identity };
  readonly intake: <Intake extends SubmitsLike>(intake: Intake) => Intake;
  /** For intake's ports: what new jobs are joined to. */
  readonly intakePorts: { readonly traceParent?: () => string | undefined };
  /** For the planner's ports. */
  readonly plannerPorts: { readonly onPlanned?: Telemetry["planned"] };
  /** For the worker's ports. */
  readonly workerPorts: {
    readonly traceStep?: <T>(job: Job, run: () => Promise<T>) => Promise<T>;
    readonly onActed?: (job: Job, acted: readonly ActedLike[]) => void;
  };
  /** For the worker's options. */
  readonly workerOptions: {
    readonly onStep?: Telemetry["stepEnded"];
    readonly onBuckets?: Telemetry["bucketsHeld"];
    readonly pluginEvents?: Pick<Telemetry, "pluginCalled" | "pluginAsked" | "pluginsWait">;
  };
  /** For the API's ports. */
  readonly apiPorts: {
    readonly observeCall?: <T extends { readonly code: number }>(call: Call, run: () => Promise<T>) => Promise<T>;
  };
  /** Shows how long clusters have been silent, asked for at each look. */
  readonly clusters: (clusters: () => readonly Heard[]) => void;
};

const identity = <T>(value: T): T => value;

const OFF: Observer = {
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
};

/** The observer of what is wanted: `meter` null measures nothing, `tracing` null makes no span. */
export function createObserver(ports: ObservePorts & { readonly meter: Meter | null }): Observer {
  const { telemetry, tracing, meter, clock } = ports;
  if (meter === null && tracing === null) return OFF;
  return {
    plannerStore: (store) => observePlannerStore(store, ports),
    ledger: (ledger) => observeLedger(ledger, ports),
    workerStore: (store) => observeWorkerStore(store, ports),
    watchStore: (store) => observeWatchStore(store, ports),
    kubeClient: (cluster) => ({ wrapClient: (client) => observeKubeClient(client as never, cluster, ports) }),
    intake: (intake) => countCreated(telemetry, tracing === null ? intake : traceIntake(tracing, intake)),
    intakePorts: tracing === null ? {} : { traceParent: tracing.traceParent },
    plannerPorts: { onPlanned: telemetry.planned },
    workerPorts: {
      onActed: (job, acted) => countActions(telemetry, job, acted),
      ...(tracing === null ? {} : { traceStep: traceStep(tracing) }),
    },
    workerOptions: { onStep: telemetry.stepEnded, onBuckets: telemetry.bucketsHeld, pluginEvents: telemetry },
    apiPorts: {
      observeCall: (call, run) => (tracing === null ? measured(ports, call, run) : traced(ports, tracing, call, run)),
    },
    clusters: (clusters) =>
      meter?.read("clusterSilence", () =>
        clusters().flatMap(({ name, lastHeardMs }) => {
          const heardMs = lastHeardMs();
          const value = heardMs === null ? 0 : (clock.monotonicMs() - heardMs) / 1000;
          return heardMs === null ? [] : [{ value, labels: { cluster: name } }];
        }),
      ),
  };
}

function traceIntake<Intake extends SubmitsLike>(tracing: Tracing, intake: Intake): Intake {
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
  { method }: Call,
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
  call: Call,
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
