import { once } from "node:events";
import { createServer, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import type { Clock } from "../runtime/clock.ts";
import { formatAddress, parseListenAddress } from "../runtime/listen-address.ts";

/** One thing that must hold before this process is sent work. A throw, and no answer in time, are a no. */
export type ReadyCheck = { readonly name: string; readonly ready: () => boolean | Promise<boolean> };

export type HttpOptions = {
  /** HOST:PORT for `/livez` and `/readyz`; null: not served. */
  readonly health: string | null;
  /** HOST:PORT for `/metrics`; null: not served. May be the same. */
  readonly metrics: string | null;
};

export type HttpPorts = {
  readonly clock: Pick<Clock, "sleep">;
  readonly checks: readonly ReadyCheck[];
  readonly scrape: (() => Promise<{ readonly contentType: string; readonly body: string }>) | null;
};

export type HttpFace = {
  /** HOST:PORT with the ports that were got; null where not served. */
  readonly health: string | null;
  readonly metrics: string | null;
  /** From now on not ready: what sends work should send it elsewhere. */
  readonly drain: () => void;
  readonly close: () => Promise<void>;
};

type Answer = { readonly status: number; readonly contentType: string; readonly body: string };
type Routes = Record<string, () => Promise<Answer>>;

/** A kubelet gives up after a second by default: its question should not outlive that by much. */
const CHECK_MS_MAX = 900;
const TEXT = "text/plain; charset=utf-8";

/**
 * Serves health and metrics over plain HTTP: they name no job and take no input. Live means that the process answers; a store that is away
 * makes it unready, since a restart would not bring the store back.
 */
export async function startHttp(ports: HttpPorts, { health, metrics }: HttpOptions): Promise<HttpFace> {
  let draining = false;
  const faces = new Map<string, Routes>();
  const serveAt = (listen: string, routes: Routes) => faces.set(listen, { ...faces.get(listen), ...routes });
  if (health !== null) {
    serveAt(health, { "/livez": async () => text(200, "ok\n"), "/readyz": () => readiness(ports, draining) });
  }
  if (metrics !== null && ports.scrape !== null) {
    const { scrape } = ports;
    serveAt(metrics, { "/metrics": async () => ({ status: 200, ...(await scrape()) }) });
  }
  const servers = new Map<string, { readonly server: Server; readonly address: string }>();
  const close = async () => {
    await Promise.all([...servers.values()].map(({ server }) => shut(server)));
  };
  try {
    for (const [listen, routes] of faces) servers.set(listen, await listenAt(listen, routes));
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

async function readiness({ checks, clock }: HttpPorts, draining: boolean): Promise<Answer> {
  const results = await Promise.all(
    checks.map(async (check) => ({ name: check.name, ready: await asked(check, clock) })),
  );
  const all = draining ? [...results, { name: "not draining", ready: false }] : results;
  const lines = all.map(({ name, ready }) => `[${ready ? "+" : "-"}] ${name}\n`);
  return text(all.every(({ ready }) => ready) ? 200 : 503, lines.join(""));
}

async function asked({ ready }: ReadyCheck, clock: HttpPorts["clock"]): Promise<boolean> {
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

async function listenAt(
  listen: string,
  routes: Routes,
): Promise<{ readonly server: Server; readonly address: string }> {
  const { host, port } = parseListenAddress(listen);
  const server = createServer((request, response) => {
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

function send(response: ServerResponse, { status, contentType, body }: Answer): void {
  response.writeHead(status, { "content-type": contentType }).end(body);
}

function text(status: number, body: string): Answer {
  return { status, contentType: TEXT, body };
}

async function shut(server: Server): Promise<void> {
  const closed = once(server, "close");
  server.close();
  server.closeAllConnections();
  await closed;
}
