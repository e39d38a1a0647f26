import assert from "node:assert/strict";
import { createServer, request as httpRequest, type IncomingMessage, type ServerResponse } from "node:http";
import { request as httpsRequest } from "node:https";
import type { AddressInfo } from "node:net";
import { createKubeClient, type KubeClient } from "../../src/adapters/cluster/client.ts";
import { type SimCluster, type SimNode, startSimCluster } from "../../src/adapters/simcluster/sim-cluster.ts";
import { type Clock, systemClock } from "../../src/runtime/clock.ts";
import type { JsonObject } from "../../src/runtime/json.ts";

export const INSTALLATION = "test-installation";
export const clock = systemClock();

/** A clock that runs `factor` times as fast, so that tests need not wait for seconds. */
export function fastClock(factor: number): Clock {
  const startMs = clock.monotonicMs();
  const fastMs = () => (clock.monotonicMs() - startMs) * factor;
  const baseMs = clock.nowMs();
  return {
    nowMs: () => Math.round(baseMs + fastMs()),
    monotonicMs: fastMs,
    sleep: (delayMs, signal) => clock.sleep(delayMs / factor, signal),
  };
}

/** Random numbers from 0 up to 1 from a seed (mulberry32). */
export function seededRandom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

export function gpuNodes(count: number, gpus = 8): readonly SimNode[] {
  return Array.from({ length: count }, (_, index) => ({
    name: `node-${index}`,
    labels: { "nvidia.com/gpu.product": "h100" },
    allocatable: { cpu: "96", memory: "512Gi", "nvidia.com/gpu": String(gpus), pods: "1000" },
  }));
}

export function startSim(nodes: readonly SimNode[] = gpuNodes(2), seed = 1, time = clock): Promise<SimCluster> {
  return startSimCluster({ name: "sim", nodes, directory: null, clock: time, random: seededRandom(seed) });
}

export function clientOf(kubeconfig: string, connectionsMax = 66): KubeClient {
  return createKubeClient({ kubeconfig, connectionsMax, requestTimeoutMs: 5_000 });
}

/** Waits until a condition holds, up to a limit. */
export async function until(holds: () => boolean | Promise<boolean>, what: string, msMax = 240_000): Promise<void> {
  const endMs = clock.monotonicMs() + msMax;
  while (!(await holds())) {
    assert.ok(clock.monotonicMs() < endMs, `never came to hold: ${what}`);
    await clock.sleep(5);
  }
}

export function configMap(name: string, labels: Record<string, string> = {}): JsonObject {
  return { apiVersion: "v1", kind: "ConfigMap", metadata: { name, labels } };
}

export async function create(client: KubeClient, resource: string, body: JsonObject, namespace = "default") {
  return client.request({ method: "POST", path: `/api/v1/namespaces/${namespace}/${resource}`, body });
}

export async function remove(client: KubeClient, resource: string, name: string, namespace = "default") {
  return client.request({ method: "DELETE", path: `/api/v1/namespaces/${namespace}/${resource}/${name}` });
}

/**
 * A proxy's treatment of a request: pass it on, answer it, never answer, cut the connection, or lose the answer.
 */
export type Treatment =
  | "pass"
  | "lose"
  | "hang"
  | "cut"
  | { readonly status: number; readonly headers?: Record<string, string> };

export type Proxy = {
  readonly kubeconfig: string;
  /** The requests that came, in order. */
  readonly seen: { readonly method: string; readonly path: string; readonly query: URLSearchParams }[];
  /** How many connections were made to it in all. */
  readonly connections: () => number;
  /** Cuts all open connections. */
  readonly cutAll: () => void;
  readonly close: () => Promise<void>;
};

type AskedOfProxy = { readonly method: string; readonly path: string; readonly query: URLSearchParams };

/** How a proxy calls a server that requires TLS and a bearer token. Omitted: plain HTTP. */
export type ProxyAccess = {
  readonly certificate: string | null;
  readonly token: string;
  /** Called with each answer that was sent to its end, and how long it took. */
  readonly onAnswered?: (asked: AskedOfProxy, tookMs: number) => void;
};

/** A proxy between a client and a server that disturbs requests. */
export async function startProxy(
  target: string,
  treat: (request: AskedOfProxy) => Treatment | Promise<Treatment>,
  { certificate, token, onAnswered }: ProxyAccess = { certificate: null, token: "t" },
): Promise<Proxy> {
  const seen: Proxy["seen"] = [];
  let connections = 0;
  const to = new URL(target);
  const handle = async (request: IncomingMessage, response: ServerResponse) => {
    const startMs = performance.now();
    const url = new URL(request.url ?? "/", target);
    const asked = { method: request.method ?? "", path: url.pathname, query: url.searchParams };
    seen.push(asked);
    response.on("finish", () => onAnswered?.(asked, performance.now() - startMs));
    const treatment = await treat(asked);
    if (treatment === "cut") return void request.socket.destroy();
    if (treatment === "hang") {
      response.writeHead(200, { "content-type": "application/json" });
      response.flushHeaders();
      return;
    }
    if (treatment !== "pass" && treatment !== "lose") {
      response.writeHead(treatment.status, { "content-type": "application/json", ...treatment.headers });
      return void response.end("{}");
    }
    const { method, headers } = request;
    const place = { host: to.hostname, port: to.port, path: request.url, method, headers };
    const send = certificate === null ? httpRequest : httpsRequest;
    const trust = certificate === null ? {} : { ca: certificate };
    const onward = send({ ...place, ...trust }, (answer) => {
      if (treatment === "lose") return void request.socket.destroy();
      response.writeHead(answer.statusCode ?? 500, answer.headers);
      response.flushHeaders();
      answer.pipe(response);
      answer.on("error", () => response.destroy());
    });
    onward.on("error", () => response.destroy());
    response.on("close", () => onward.destroy());
    request.pipe(onward);
  };
  const server = createServer({ keepAliveTimeout: 60_000 }, (request, response) => void handle(request, response));
  server.on("connection", () => {
    connections += 1;
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    kubeconfig: kubeconfigOf(url, token),
    seen,
    connections: () => connections,
    cutAll: () => server.closeAllConnections(),
    async close() {
      server.closeAllConnections();
      await new Promise<void>((resolve) => server.close(() => resolve()));
    },
  };
}

export function kubeconfigOf(server: string, token = "t"): string {
  return JSON.stringify({
    clusters: [{ name: "c", cluster: { server, "insecure-skip-tls-verify": true } }],
    users: [{ name: "u", user: { token } }],
    contexts: [{ name: "c", context: { cluster: "c", user: "u" } }],
    "current-context": "c",
  });
}

/**
 * A server that refuses connections. Its port is not one of those that servers of other tests get, and its address is
 * none of theirs.
 */
export function deadServer(): string {
  return "http://127.7.7.7:9";
}
