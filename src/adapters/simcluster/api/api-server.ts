/** Serves tests and `gangway up`, which need a Kubernetes API without a cluster: the HTTP server in front of it. */
import type { IncomingMessage, Server, ServerResponse } from "node:http";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import type { Json, JsonObject } from "../../../runtime/json.ts";
import { objectAt } from "../../../runtime/json.ts";
import type { WriteFault } from "../faults.ts";
import { drawWriteFault } from "../faults.ts";
import { isInServedGroup } from "../objects/custom-kinds.ts";
import { badRequest, conflict, StatusError } from "../objects/status-error.ts";
import { discovery } from "./discovery.ts";
import { selectionOf } from "./listing.ts";
import { LogStream, readLogQuery } from "./log-stream.ts";
import type { Route, SimRequest } from "./routes.ts";
import { handleRequest, parseRoute } from "./routes.ts";
import type { WatchContext } from "./watch-stream.ts";
import { WatchStream } from "./watch-stream.ts";

/** The limit of kube-apiserver for a request. */
const BODY_BYTES_MAX = 3 * 1024 * 1024;

const ACCESS_REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";

/** Answers an access review: every client of a simulated cluster may do everything. */
function accessAllowed(review: Json): JsonObject {
  const spec = objectAt(review, "spec");
  const type = { apiVersion: "authorization.k8s.io/v1", kind: "SelfSubjectAccessReview" };
  return { ...type, metadata: { creationTimestamp: null }, spec, status: { allowed: true } };
}

type ApiServerContext = WatchContext & {
  /** Advances the model to the present. */
  readonly catchUp: () => void;
  /** Saves changes and sends them to watches. Called before each answer. */
  readonly commit: () => void;
  /** The bearer token that requests must send. Null: no authentication. */
  readonly token: string | null;
};

/**
 * Plays kube-apiserver: serves the cluster's API over HTTP on the loopback interface, for the same client that Gangway
 * uses with a real cluster.
 */
export class ApiServer {
  readonly #context: ApiServerContext;
  readonly #server: Server;
  readonly #streams = new Set<WatchStream | LogStream>();

  constructor(context: ApiServerContext) {
    this.#context = context;
    // Longer than clients keep idle connections: if the server closed one first, a request on it would fail.
    this.#server = createServer({ keepAliveTimeout: 120_000 }, (request, response) => {
      this.#serve(request, response).catch((error: unknown) => refuse(response, error));
    });
  }

  /** Listens on a free port; returns the address. */
  async listen(): Promise<string> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    this.#server.once("error", reject);
    this.#server.listen(0, "127.0.0.1", resolve);
    await promise;
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** Makes every open watch and log send what is new. */
  pump(): void {
    for (const stream of this.#streams) {
      if (stream.open) stream.pump();
      if (!stream.open) this.#streams.delete(stream);
    }
  }

  async close(): Promise<void> {
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()));
    for (const stream of this.#streams) stream.cut();
    this.#server.closeAllConnections();
    await closed;
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(request.url ?? "/", "http://localhost");
    const { token } = this.#context;
    if (token !== null && request.headers.authorization !== `Bearer ${token}`) {
      throw new StatusError(401, "Unauthorized", "Unauthorized");
    }
    if (this.#answeredAtRoot(url.pathname, request.headers.host ?? "", response)) return;
    const body = await readBody(request);
    if (url.pathname === ACCESS_REVIEWS) return reply(response, 201, accessAllowed(body));
    const route = parseRoute(url.pathname, this.#context.model.store);
    const method = request.method ?? "GET";
    const contentType = (request.headers["content-type"] ?? "").split(";")[0]?.trim() ?? "";
    await this.#answer(route, { method, query: url.searchParams, contentType, body }, response);
  }

  async #answer(route: Route, request: SimRequest, response: ServerResponse): Promise<void> {
    const { method, query } = request;
    if (method === "GET" && route.part === "log") await this.#log(route, query, response);
    else if (method === "GET" && ["true", "1"].includes(query.get("watch") ?? "")) this.#watch(route, query, response);
    else this.#call(route, request, response);
  }

  /** Answers discovery, health checks, and unknown paths outside all API groups. Those answers are no Status. */
  #answeredAtRoot(path: string, host: string, response: ServerResponse): boolean {
    const { store } = this.#context.model;
    const plain = { "content-type": "text/plain; charset=utf-8" };
    const document = discovery(path, host, store);
    if (["/readyz", "/livez", "/healthz"].includes(path)) response.writeHead(200, plain).end("ok");
    else if (document !== undefined) reply(response, 200, document);
    else if (path !== ACCESS_REVIEWS && !isInServedGroup(path, store))
      response.writeHead(404, plain).end("404 page not found\n");
    else return false;
    return true;
  }

  #call(route: Route, request: SimRequest, response: ServerResponse): void {
    const { model, random, faults, catchUp, commit } = this.#context;
    const fault = request.method === "GET" ? null : drawWriteFault(faults(), random);
    if (fault === "dropBefore") return void response.destroy();
    if (fault === "throttle") response.setHeader("retry-after", "1");
    refuseByFault(fault, route);
    catchUp();
    try {
      const { code, body } = handleRequest(model, route, request);
      commit();
      if (fault === "dropAfter") response.destroy();
      else reply(response, code, body);
    } catch (error) {
      commit();
      throw error;
    }
  }

  async #log(route: Route, query: URLSearchParams, response: ServerResponse): Promise<void> {
    const { catchUp, commit } = this.#context;
    const logQuery = readLogQuery(route.name ?? "", query);
    catchUp();
    commit();
    const log = new LogStream(this.#context, `${route.namespace}/${route.name}`, logQuery, response);
    this.#streams.add(log);
    await log.run();
    this.#streams.delete(log);
  }

  #watch(route: Route, query: URLSearchParams, response: ServerResponse): void {
    const { faults, random, catchUp, commit } = this.#context;
    const fields = route.name === null ? [] : [`metadata.name=${route.name}`];
    const given = query.get("fieldSelector");
    const selector = [...fields, ...(given === null ? [] : [given])].join(",");
    query.set("fieldSelector", selector);
    const selection = selectionOf(route.kind, route.namespace, query);
    const expires = random() < (faults().expireWatch ?? 0);
    if (expires && random() < 0.5) throw new StatusError(410, "Expired", "too old resource version");
    catchUp();
    commit();
    const watch = new WatchStream(this.#context, selection, query, response);
    watch.start(query);
    this.#streams.add(watch);
    if (expires) watch.expire();
  }
}

function refuseByFault(fault: WriteFault, route: Route): void {
  switch (fault) {
    case "throttle":
      throw new StatusError(429, "TooManyRequests", "The apiserver is currently overloaded; please try again later", {
        retryAfterSeconds: 1,
      });
    case "conflict":
      throw conflict(
        route.kind.resource,
        route.name ?? "",
        "the object has been modified; please apply your changes to the latest version and try again",
      );
    case "fail":
      throw new StatusError(500, "InternalError", "Internal error occurred: injected", {
        causes: [{ message: "injected" }],
      });
    case "unavailable":
      throw new StatusError(503, "ServiceUnavailable", "the server is currently unable to handle the request");
    default:
  }
}

async function readBody(request: IncomingMessage): Promise<Json> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    size += chunk.length;
    if (size > BODY_BYTES_MAX) {
      throw new StatusError(413, "RequestEntityTooLarge", `Request entity too large: limit is ${BODY_BYTES_MAX}`);
    }
    chunks.push(chunk);
  }
  if (size === 0) return null;
  try {
    return JSON.parse(Buffer.concat(chunks).toString()) as Json;
  } catch (error) {
    throw badRequest(`couldn't get version/kind; json parse error: ${(error as Error).message}`);
  }
}

function reply(response: ServerResponse, code: number, body: JsonObject): void {
  response.writeHead(code, { "content-type": "application/json" }).end(JSON.stringify(body));
}

/** Answers with a Status for any thrown error. */
function refuse(response: ServerResponse, error: unknown): void {
  if (response.headersSent || response.destroyed) {
    response.destroy();
    return;
  }
  const status =
    error instanceof StatusError
      ? error
      : new StatusError(
          500,
          "InternalError",
          `Internal error occurred: ${error instanceof Error ? error.message : String(error)}`,
        );
  reply(response, status.code, status.body());
}
