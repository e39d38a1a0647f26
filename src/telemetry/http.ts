import { once } from "node:events";
import { createServer, type Server as HttpServer, type RequestListener, type ServerResponse } from "node:http";
import { createServer as createTlsServer, type Server as HttpsServer } from "node:https";
import type { AddressInfo } from "node:net";
import type { Clock } from "../runtime/clock.ts";
import { formatAddress, parseListenAddress } from "../runtime/listen-address.ts";
import type { ServerTls } from "../runtime/server-tls.ts";

/** A string: not ready, and why, in words for an operator. */
type ReadyAnswer = boolean | string;

/** A condition for readiness. It fails if `ready` returns false or a reason, throws, or does not answer in time. */
export type ReadyCheck = { readonly name: string; readonly ready: () => ReadyAnswer | Promise<ReadyAnswer> };

export type HttpOptions = {
  /** HOST:PORT of `/livez` and `/readyz`. Null: not served. */
  readonly health: string | null;
  /** HOST:PORT of `/metrics`, which may be the same. Null: not served. */
  readonly metrics: string | null;
  /** Null: plain HTTP. Probes and scrapers show no certificates. */
  readonly tls: ServerTls | null;
};

export type HttpPorts = {
  readonly clock: Pick<Clock, "sleep">;
  readonly checks: readonly ReadyCheck[];
  /** Sentences that `/readyz` shows. They do not change its status. Omitted: none. */
  readonly warnings?: () => readonly string[];
  readonly scrape: (() => Promise<{ readonly contentType: string; readonly body: string }>) | null;
};

export type HealthServer = {
  /** HOST:PORT with the real port; null if not served. */
  readonly health: string | null;
  readonly metrics: string | null;
  /** Answers "not ready" from now on, so that load balancers send work elsewhere. */
  readonly drain: () => void;
  readonly close: () => Promise<void>;
};

type Server = HttpServer | HttpsServer;
type HttpAnswer = { readonly status: number; readonly contentType: string; readonly body: string };
type RoutesByPath = Record<string, () => Promise<HttpAnswer>>;

/** Shorter than the second after which a kubelet gives up by default. */
const CHECK_MS_MAX = 900;
/** A connection that has not begun to speak TLS by then is closed. */
const HANDSHAKE_MS = 10_000;
const TEXT = "text/plain; charset=utf-8";

/**
 * Serves health and metrics over HTTP: they name no job and take no input. A process that answers is live. If the
 * database does not answer, the process is not ready but still live: a restart would not bring the database back.
 */
export async function startHttp(ports: HttpPorts, { health, metrics, tls }: HttpOptions): Promise<HealthServer> {
  let draining = false;
  const routesByAddress = new Map<string, RoutesByPath>();
  const serveAt = (listen: string, routes: RoutesByPath) =>
    routesByAddress.set(listen, { ...routesByAddress.get(listen), ...routes });
  if (health !== null) {
    serveAt(health, { "/livez": async () => text(200, "ok\n"), "/readyz": () => readiness(ports, draining) });
  }
  if (metrics !== null && ports.scrape !== null) {
    const { scrape } = ports;
    serveAt(metrics, { "/metrics": async () => ({ status: 200, ...(await scrape()) }) });
  }
  const servers = new Map<string, { readonly server: Server; readonly address: string }>();
  const close = async () => {
    await Promise.all([...servers.values()].map(({ server }) => closeServer(server)));
  };
  try {
    for (const [listen, routes] of routesByAddress) servers.set(listen, await listenAt({ listen, routes, tls }));
  } catch (error) {
    await close();
    throw error;
  }
  const addressOf = (listen: string | null) => servers.get(listen ?? "")?.address ?? null;
  return {
    health: addressOf(health),
    metrics: ports.scrape === null ? null : addressOf(metrics),
    drain: () => {
      draining = true;
    },
    close,
  };
}

async function readiness({ checks, warnings, clock }: HttpPorts, draining: boolean): Promise<HttpAnswer> {
  const results: { name: string; ready: ReadyAnswer }[] = await Promise.all(
    checks.map(async (check) => ({ name: check.name, ready: await answerOf(check, clock) })),
  );
  const all = draining ? [...results, { name: "not draining", ready: false }] : results;
  const lines = all.map(({ name, ready }) => {
    return `[${ready === true ? "+" : "-"}] ${name}${typeof ready === "string" ? `: ${ready}` : ""}\n`;
  });
  const warned = (warnings?.() ?? []).map((warning) => `[!] ${warning}\n`);
  return text(all.every(({ ready }) => ready === true) ? 200 : 503, [...lines, ...warned].join(""));
}

async function answerOf({ ready }: ReadyCheck, clock: HttpPorts["clock"]): Promise<ReadyAnswer> {
  const answered = new AbortController();
  const late = clock.sleep(CHECK_MS_MAX, answered.signal).then(() => false);
  try {
    return await Promise.race([ready(), late]);
  } catch {
    return false;
  } finally {
    answered.abort();
  }
}

async function listenAt({
  listen,
  routes,
  tls,
}: Pick<HttpOptions, "tls"> & { readonly listen: string; readonly routes: RoutesByPath }): Promise<{
  readonly server: Server;
  readonly address: string;
}> {
  const { host, port } = parseListenAddress(listen);
  const server = newServer(tls, (request, response) => {
    const route = routes[(request.url ?? "").split("?")[0] ?? ""];
    const known = request.method === "GET" || request.method === "HEAD" ? route : undefined;
    const answer = known === undefined ? Promise.resolve(text(404, "not found\n")) : known();
    answer.then(
      (found) => send(response, found),
      () => send(response, text(500, "failed\n")),
    );
  });
  server.listen(port, host);
  await once(server, "listening");
  const bound = (server.address() as AddressInfo).port;
  return { server, address: formatAddress({ host, port: bound }) };
}

function newServer(tls: ServerTls | null, listener: RequestListener): Server {
  if (tls === null) return createServer(listener);
  const server = createTlsServer({ ...tls.context(), handshakeTimeout: HANDSHAKE_MS }, listener);
  tls.onChange((context) => server.setSecureContext({ ...context }));
  return server;
}

function send(response: ServerResponse, { status, contentType, body }: HttpAnswer): void {
  response.writeHead(status, { "content-type": contentType }).end(body);
}

function text(status: number, body: string): HttpAnswer {
  return { status, contentType: TEXT, body };
}

async function closeServer(server: Server): Promise<void> {
  const closed = once(server, "close");
  server.close();
  server.closeAllConnections();
  await closed;
}
