import { Server, ServerCredentials } from "@grpc/grpc-js";
import type { LogTemplate } from "../core/pods/pod-config.ts";
import { ClusterService } from "../gen/gangway/v1/cluster_service_pb.ts";
import { JobService } from "../gen/gangway/v1/job_service_pb.ts";
import { NamespaceService } from "../gen/gangway/v1/namespace_service_pb.ts";
import { QueueService } from "../gen/gangway/v1/queue_service_pb.ts";
import { ResourceManager as ResourceManagerService } from "../gen/gangway/v1/resource_manager_pb.ts";
import { Health as HealthService } from "../gen/grpc/health/v1/health_pb.ts";
import { ServerReflection } from "../gen/grpc/reflection/v1/reflection_pb.ts";
import type { Clock } from "../runtime/clock.ts";
import { formatAddress, isLoopback, parseListenAddress } from "../runtime/listen-address.ts";
import type { ObserveCall } from "./call.ts";
import { clusterService } from "./cluster-service.ts";
import { serve } from "./handler.ts";
import { addHealth } from "./health.ts";
import { jobService } from "./job-service.ts";
import { namespaceService } from "./namespace-service.ts";
import type { Admin, ClusterAdmin, JobIntake, JobLogs, JobReads, JobWatch } from "./ports.ts";
import { queueService } from "./queue-service.ts";
import type { ResourceManager } from "./quota-ports.ts";
import { readDescriptors, reflectionService } from "./reflection.ts";
import { resourceManager } from "./resource-manager.ts";
import type { OnInternalError } from "./rpc-error.ts";

/** Everything that the services need of the rest of the process. */
export type ApiPorts = {
  readonly intake: JobIntake;
  readonly reads: JobReads;
  readonly watch: JobWatch;
  readonly logs: JobLogs;
  /** Where the logs of pods are found beside their clusters; absent: nowhere. */
  readonly logTemplates?: () => readonly LogTemplate[];
  readonly admin: Admin;
  readonly clusters: ClusterAdmin;
  readonly resources: ResourceManager;
  /** Called after a change of queues, pools or clusters that may let a gang go. */
  readonly wakePlanner: () => void;
  readonly clock: Clock;
  readonly onInternalError: OnInternalError;
  /** Runs each unary call, to measure or trace it. */
  readonly observeCall?: ObserveCall;
};

export type ApiOptions = {
  /** HOST:PORT; port 0 takes any that is free. */
  readonly listen: string;
  /** Allows an address that other machines reach, without encryption and authentication. */
  readonly insecure: boolean;
};

/** A server that listens. */
export type Api = {
  /** HOST:PORT with the port that it got. */
  readonly address: string;
  /** Says NOT_SERVING and ends streams as UNAVAILABLE; calls that run go on. */
  readonly drain: () => void;
  /** Drains, gives running calls `CLOSE_GRACE_MS`, then closes every connection. Safe to call again. */
  readonly close: () => Promise<void>;
};

/** A batch of jobs, each with templates of up to 1 MiB. */
const RECEIVE_BYTES_MAX = 16 * 1024 * 1024;
const CLOSE_GRACE_MS = 500;
const SERVER_OPTIONS = {
  "grpc.max_receive_message_length": RECEIVE_BYTES_MAX,
  // Half-open connections of watchers are found and freed within a minute.
  "grpc.keepalive_time_ms": 40_000,
  "grpc.keepalive_timeout_ms": 15_000,
  "grpc.max_concurrent_streams": 1000,
};
const SERVICES = [JobService, QueueService, ResourceManagerService, ClusterService, NamespaceService] as const;

/** Serves the API. Throws where the address cannot be listened on, or reaches further than `insecure` allows. */
export async function startApi(ports: ApiPorts, options: ApiOptions): Promise<Api> {
  const { host, port } = parseListenAddress(options.listen);
  if (!isLoopback(host) && !options.insecure) {
    const why = "other machines can reach it, and neither TLS nor authentication is set up";
    throw new Error(`will not listen on ${options.listen}: ${why}; pass --insecure to serve it all the same`);
  }
  const server = new Server(SERVER_OPTIONS);
  const stopping = new AbortController();
  const health = addServices(server, ports, stopping.signal);
  const bound = await bind(server, formatAddress({ host, port }));
  health.set("SERVING");
  const drain = () => {
    health.set("NOT_SERVING");
    stopping.abort();
  };
  let closed: Promise<void> | null = null;
  const close = () => {
    drain();
    closed ??= shutDown(server, ports.clock);
    return closed;
  };
  return { address: formatAddress({ host, port: bound }), drain, close };
}

function addServices(server: Server, ports: ApiPorts, stopping: AbortSignal) {
  const environment = {
    onInternalError: ports.onInternalError,
    stopping,
    ...(ports.observeCall === undefined ? null : { observe: ports.observeCall }),
  };
  serve(server, JobService, jobService(ports), environment);
  serve(server, QueueService, queueService(ports), environment);
  serve(server, ResourceManagerService, resourceManager(ports), environment);
  serve(server, ClusterService, clusterService(ports), environment);
  serve(server, NamespaceService, namespaceService(ports.admin), environment);
  const names: string[] = SERVICES.map((service) => service.typeName);
  const listed = [...names, HealthService.typeName, ServerReflection.typeName].sort();
  serve(server, ServerReflection, reflectionService(readDescriptors(), listed), environment);
  return addHealth(server, names);
}

function bind(server: Server, address: string): Promise<number> {
  return new Promise((resolve, reject) => {
    server.bindAsync(address, ServerCredentials.createInsecure(), (error, port) => {
      if (error) reject(new Error(`cannot listen on ${address}: ${whyNotBound(error)}`, { cause: error }));
      else resolve(port);
    });
  });
}

/** The system's own word is somewhere in what grpc-js says. */
function whyNotBound({ message }: Error): string {
  if (message.includes("EADDRINUSE")) return "the address is in use by another process";
  if (message.includes("EADDRNOTAVAIL")) return "this machine has no such address";
  if (message.includes("EACCES")) return "this user may not use the port";
  return message;
}

/** Open streams of health and reflection would keep a graceful shutdown waiting for ever. */
async function shutDown(server: Server, clock: Clock): Promise<void> {
  const graceful = new Promise<void>((resolve) => {
    server.tryShutdown(() => resolve());
  });
  const grace = new AbortController();
  await Promise.race([graceful, clock.sleep(CLOSE_GRACE_MS, grace.signal)]);
  grace.abort();
  server.forceShutdown();
}
