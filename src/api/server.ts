/**
 * Serves the API to clients on one address, with health checks and reflection, and stops without cutting off running
 * calls.
 */
import type { Http2SecureServer } from "node:http2";
import { Server, ServerCredentials } from "@grpc/grpc-js";
import type { LimitCalls } from "../core/access/call-limits.ts";
import type { Authenticate } from "../core/access/identity.ts";
import { NAMESPACE_RULES, type NamespaceRules } from "../core/admin/namespace.ts";
import type { Registry } from "../core/kinds/registry.ts";
import type { LogTemplate } from "../core/pods/pod-config.ts";
import { AccessService } from "../gen/gangway/v1/access_service_pb.ts";
import { ClusterService } from "../gen/gangway/v1/cluster_service_pb.ts";
import { JobService } from "../gen/gangway/v1/job_service_pb.ts";
import { NamespaceService } from "../gen/gangway/v1/namespace_service_pb.ts";
import { PriorityClassService } from "../gen/gangway/v1/priority_class_service_pb.ts";
import { QueueService } from "../gen/gangway/v1/queue_service_pb.ts";
import { ResourceManager as ResourceManagerService } from "../gen/gangway/v1/resource_manager_pb.ts";
import { RuntimeService } from "../gen/gangway/v1/runtime_service_pb.ts";
import { Health as HealthService } from "../gen/grpc/health/v1/health_pb.ts";
import { ServerReflection } from "../gen/grpc/reflection/v1/reflection_pb.ts";
import type { Clock } from "../runtime/clock.ts";
import { FairStart } from "../runtime/fair-start.ts";
import { formatAddress, listenError, tryListen } from "../runtime/listen-address.ts";
import type { ServerTls } from "../runtime/server-tls.ts";
import { accessService } from "./access/access-service.ts";
import { CallsUnderWay } from "./calls-under-way.ts";
import { clusterService } from "./cluster/cluster-service.ts";
import {
  bePatient,
  boundConnections,
  boundOptions,
  CONNECTION_BOUNDS,
  type ConnectionBounds,
  listenersOf,
} from "./connection-bounds.ts";
import { allowedAddress, type Exposure } from "./exposure.ts";
import { createHealth } from "./health/health.ts";
import { jobService } from "./job/job-service.ts";
import { namespaceService } from "./namespace/namespace-service.ts";
import { PeerCertificates } from "./peer-certificates.ts";
import type {
  AccessAdmin,
  Admin,
  Authorization,
  ClusterAdmin,
  ForeseeJob,
  JobIntake,
  JobLogs,
  JobPods,
  JobReads,
  JobWatch,
  Logins,
  PriorityClasses,
  Robots,
  SimulateJob,
  TrainingRuntimes,
} from "./ports.ts";
import { priorityClassService } from "./priority-class/priority-class-service.ts";
import { queueService } from "./queue/queue-service.ts";
import { readDescriptors, reflectionService } from "./reflection/reflection.ts";
import { keepRepeatedCredentials } from "./repeated-credentials.ts";
import type { TokenOperations } from "./resource-manager/quota-ports.ts";
import { resourceManager } from "./resource-manager/resource-manager.ts";
import { authenticationInterceptor } from "./rpc/authentication.ts";
import type { CallCuts, CallEnvironment, ObserveCall, OnBeyondLimit } from "./rpc/call.ts";
import { type ServedService, serve } from "./rpc/handler.ts";
import type { OnInternalError } from "./rpc/rpc-error.ts";
import { refusingUnreadable } from "./rpc/transport-errors.ts";
import { runtimeService } from "./runtime/runtime-service.ts";
import { SERVICES } from "./services.ts";
import { TlsCredentials } from "./tls-credentials.ts";
import type { WebPorts } from "./web/door.ts";
import { checkWeb, openWeb, type WebListen, type WebOutcome } from "./web/open-web.ts";
import type { WebDoor } from "./web/web-server.ts";

/** Everything that the services need from the rest of the process. */
export type ApiPorts = {
  readonly kinds: Registry;
  readonly intake: JobIntake;
  readonly reads: JobReads;
  readonly simulate: SimulateJob;
  /** Omitted: jobs that can never run are created without a warning. */
  readonly foresee?: ForeseeJob;
  readonly watch: JobWatch;
  readonly logs: JobLogs;
  readonly pods: JobPods;
  /** Templates of links to logs of pods outside their clusters. Omitted: none. */
  readonly logTemplates?: () => readonly LogTemplate[];
  readonly admin: Admin;
  readonly priorityClasses: PriorityClasses;
  readonly runtimes: TrainingRuntimes;
  /** Omitted: `NAMESPACE_RULES`. */
  readonly namespaceRules?: NamespaceRules;
  readonly clusters: ClusterAdmin;
  readonly resources: TokenOperations;
  /**
   * Called once after each change of a queue or of a cluster's flavors: gives the counters the new limits, and wakes
   * the planner.
   */
  readonly limitsChanged: () => Promise<void>;
  /** Called after other changes of a cluster, which may allow an admission. */
  readonly wakePlanner: () => void;
  readonly authenticate: Authenticate;
  /** Refuses calls beyond the limits of their callers. */
  readonly limits: LimitCalls;
  /** Null: every caller may do everything. */
  readonly authorization: Authorization | null;
  readonly access: AccessAdmin;
  readonly robots: Robots;
  /** Logins of browsers. Null: the service asks nobody for credentials. Omitted: null. */
  readonly logins?: Logins | null;
  /** Called for each call that is answered with UNAUTHENTICATED. */
  readonly callRefused?: (method: string) => void;
  /** Called for each request of a browser that is turned away before its caller is known. */
  readonly requestTurnedAway?: WebPorts["onTurnedAway"];
  /** Called for each request, and each item with an answer of its own, that passes a declared limit. */
  readonly requestBeyondLimit?: OnBeyondLimit;
  readonly clock: Clock;
  readonly onInternalError: OnInternalError;
  /** Runs each unary call, to measure or trace it. */
  readonly observeCall?: ObserveCall;
};

type ApiOptions = Exposure & {
  readonly tls: ServerTls | null;
  /** Omitted: `CONNECTION_BOUNDS`. */
  readonly bounds?: ConnectionBounds;
  /** How long `close` waits for calls that are under way. Omitted: `DRAIN_MS`. */
  readonly drainMs?: number;
  /** The listener for browsers. Omitted: there is none. */
  readonly web?: WebListen | null;
};

/** A server that is listening. */
export type Api = {
  /** HOST:PORT with the actual port. */
  readonly address: string;
  /** The listener for browsers. */
  readonly web: WebOutcome;
  /** Reports NOT_SERVING and ends streams with UNAVAILABLE. Unary calls continue. */
  readonly drain: () => void;
  /**
   * Drains and takes no more connections and calls. Gives calls that are under way `drainMs` to end, answers the others
   * with UNAVAILABLE, then closes every connection. May be called again.
   */
  readonly close: () => Promise<void>;
};

/** Enough for a batch of jobs. A template alone may have 1 MiB. */
const RECEIVE_BYTES_MAX = 16 * 1024 * 1024;
const DRAIN_MS = 15_000;
/** The last answers have left by then, if their clients read. */
const LEAVE_MS = 500;

/** Serves the API. Throws if it cannot listen on the address, or if calls would not be protected there. */
export async function startApi(ports: ApiPorts, options: ApiOptions): Promise<Api> {
  const { host, port } = allowedAddress(options);
  const bounds = options.bounds ?? CONNECTION_BOUNDS;
  const { tls } = options;
  const certificates = new PeerCertificates();
  const starts = new FairStart({
    monotonicMs: ports.clock.monotonicMs,
    nextPass: setImmediate,
    soon: (run) => setTimeout(run, 1),
    idleMs: () => performance.eventLoopUtilization().idle,
  });
  const entering = { ...ports, starts, onRefused: ports.callRefused ?? (() => {}) };
  const authentication = authenticationInterceptor({
    ...entering,
    certificateOf: (connection) => certificates.of(connection),
    messageBytesMax: RECEIVE_BYTES_MAX,
  });
  const asksCertificates = tls !== null && tls.clients !== "none";
  const server = new Server({
    "grpc.max_receive_message_length": RECEIVE_BYTES_MAX,
    interceptors: [refusingUnreadable(authentication)],
    ...boundOptions(bounds, asksCertificates),
  });
  bePatient(server);
  const stopping = new AbortController();
  const cuts: CallCuts = new Set();
  const { health, served } = addServices(server, ports, { stopping: stopping.signal, cuts });
  const { onInternalError, clock, logins = null, requestTurnedAway: onTurnedAway = () => {} } = ports;
  const webPorts = { served, entering, clock, logins, onInternalError, onTurnedAway };
  const { web, shown } = await openWeb(webPorts, { ...options, bounds, bytesMax: RECEIVE_BYTES_MAX });
  const bound = await bind(server, formatAddress({ host, port }), tls).catch(async (error: unknown) => {
    await web?.close();
    throw error;
  });
  if (asksCertificates) for (const listener of listenersOf(server)) certificates.follow(listener as Http2SecureServer);
  keepRepeatedCredentials(server);
  const calls = new CallsUnderWay(server);
  boundConnections(server, { ...bounds, isSecure: tls !== null }, ports.clock);
  health.set("SERVING");
  const drain = () => {
    health.set("NOT_SERVING");
    stopping.abort();
  };
  let closed: Promise<void> | null = null;
  const close = () => {
    drain();
    closed ??= shutDown({ server, calls, web, cuts, drainMs: options.drainMs ?? DRAIN_MS }, ports.clock);
    return closed;
  };
  return { address: formatAddress({ host, port: bound }), web: shown, drain, close };
}

/** Throws what `startApi` would throw because of its addresses, before anything else is started. */
export async function checkAddresses({ web, ...exposure }: Exposure & Pick<ApiOptions, "web">): Promise<void> {
  await tryListen(allowedAddress(exposure));
  if (web !== undefined) await checkWeb(exposure, web);
}

function addServices(server: Server, ports: ApiPorts, ends: Pick<CallEnvironment, "stopping" | "cuts">) {
  const environment: CallEnvironment = {
    onInternalError: ports.onInternalError,
    ...ends,
    clock: ports.clock,
    authenticate: ports.authenticate,
    authorization: ports.authorization,
    ...(ports.requestBeyondLimit === undefined ? null : { onBeyondLimit: ports.requestBeyondLimit }),
    ...(ports.observeCall === undefined ? null : { observe: ports.observeCall }),
  };
  const served: readonly ServedService[] = [
    serve(server, AccessService, accessService(ports), environment),
    serve(server, JobService, jobService(ports), environment),
    serve(server, QueueService, queueService(ports), environment),
    serve(server, ResourceManagerService, resourceManager(ports), environment),
    serve(server, ClusterService, clusterService(ports), environment),
    serve(server, NamespaceService, namespaceService(ports, ports.namespaceRules ?? NAMESPACE_RULES), environment),
    serve(server, PriorityClassService, priorityClassService(ports.priorityClasses), environment),
    serve(server, RuntimeService, runtimeService(ports.runtimes), environment),
  ];
  const names: string[] = SERVICES.map((service) => service.typeName);
  const listed = [...names, HealthService.typeName, ServerReflection.typeName].sort();
  serve(server, ServerReflection, reflectionService(readDescriptors(), listed), environment);
  const health = createHealth(names);
  // A watch of health outlives the drain, to tell it. Neither metrics nor traces count health checks.
  const { observe: _, ...unobserved } = environment;
  serve(server, HealthService, health.handlers, { ...unobserved, stopping: new AbortController().signal });
  return { health, served };
}

function bind(server: Server, address: string, tls: ServerTls | null): Promise<number> {
  const credentials = tls === null ? ServerCredentials.createInsecure() : new TlsCredentials(tls);
  return new Promise((resolve, reject) => {
    server.bindAsync(address, credentials, (error, port) => {
      if (error) reject(listenError(address, error));
      else resolve(port);
    });
  });
}

/** Streams of health and reflection are open until the end: they would never end. */
async function shutDown(
  of: {
    readonly server: Server;
    readonly calls: CallsUnderWay;
    readonly web: WebDoor | null;
    readonly cuts: CallCuts;
    readonly drainMs: number;
  },
  clock: Clock,
): Promise<void> {
  const { server, calls, web, cuts, drainMs } = of;
  const ended = async () => void (await Promise.all([calls.ended(), web?.ended()]));
  // Closes the listeners, and tells every connection by GOAWAY that it takes no more calls.
  const left = new Promise<void>((resolve) => server.tryShutdown(() => resolve()));
  web?.stop();
  await within(ended(), drainMs, clock);
  for (const cut of cuts) cut();
  await within(ended(), LEAVE_MS, clock);
  // A connection that is destroyed loses answers that wait in this process to be written.
  await within(left, LEAVE_MS, clock);
  server.forceShutdown();
  await web?.close();
}

async function within(ended: Promise<void>, maxMs: number, clock: Clock): Promise<void> {
  const stop = new AbortController();
  await Promise.race([ended, clock.sleep(maxMs, stop.signal)]);
  stop.abort();
}
