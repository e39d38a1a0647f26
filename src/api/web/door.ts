/** Takes each request from its headers to the library of Connect, or turns it away. */
import { readFile } from "node:fs/promises";
import type { Clock } from "../../runtime/clock.ts";
import { VERSION } from "../../runtime/package-version.ts";
import type { Logins } from "../ports.ts";
import { type EnteringOptions, enterCall, heldPlace } from "../rpc/authentication.ts";
import type { ServedService } from "../rpc/handler.ts";
import type { OnInternalError } from "../rpc/rpc-error.ts";
import { answer, answerError, protect, type WebResponse } from "./answers.ts";
import { headerOf, hostOf, metadataOf } from "./call-metadata.ts";
import { clientAddress, type TrustedProxies } from "./client-address.ts";
import { BODY_MS } from "./connections.ts";
import { type OwnNames, turnedAway } from "./guards.ts";
import { readCookie } from "./login/cookies.ts";
import { isLoginPath, serveLogin } from "./login/login-paths.ts";
import type { OpenAnswers } from "./open-answers.ts";
import { isOfPage, type LoadPage, servePage } from "./page-files.ts";
import type { WebRequest } from "./read-request.ts";
import { type Refused, UNKNOWN_PATH, type WebRefusal, wrongMethod } from "./refused.ts";
import type { Routes, WebCall } from "./routes.ts";

export type WebPorts = {
  readonly served: readonly ServedService[];
  readonly entering: EnteringOptions;
  readonly clock: Clock;
  /** Null: the service asks nobody for credentials. */
  readonly logins: Logins | null;
  readonly onInternalError: OnInternalError;
  /** Called for each request that is turned away before its caller is known. */
  readonly onTurnedAway: (reason: WebRefusal) => void;
};

export type DoorParts = OwnNames & {
  readonly bytesMax: number;
  readonly trustedProxies: TrustedProxies;
  /** Null: there is no page. */
  readonly page: LoadPage | null;
  readonly answers: OpenAnswers;
  readonly stopping: AbortSignal;
  /** True: the listener speaks TLS. */
  readonly hasTls: boolean;
};

const OPENAPI = new URL("../../gen/openapi.json", import.meta.url);
const RPC_PATH = /^\/gangway\.v1\.[A-Za-z]+\/[A-Za-z]+$/;
const GREETING =
  `This is Gangway ${VERSION}. RPCs are called with POST /gangway.v1.SERVICE/METHOD and a request in JSON; ` +
  "/openapi.json describes them.\n";

/** What is at a path beside RPCs and the console's page. */
const DOCUMENTS: Readonly<
  Record<string, () => Promise<{ readonly contentType: string; readonly body: string | Buffer }>>
> = {
  "/": async () => ({ contentType: "text/plain; charset=utf-8", body: GREETING }),
  "/openapi.json": async () => ({ contentType: "application/json", body: await readFile(OPENAPI) }),
};

export class Door {
  readonly #ports: WebPorts;
  readonly #parts: DoorParts;
  #routes: Promise<Routes> | null = null;

  constructor(ports: WebPorts, parts: DoorParts) {
    this.#ports = ports;
    this.#parts = parts;
  }

  /** `continues`: the client waits for "100 Continue" before it sends the body. */
  async handle(request: WebRequest, response: WebResponse, continues: boolean): Promise<void> {
    protect(response);
    this.#parts.answers.add(response);
    // An error of the connection ends the answer, which `close` tells.
    response.on("error", () => {});
    if (continues && !("stream" in response)) response.shouldKeepAlive = false;
    const path = (request.url ?? "").split("?")[0] ?? "";
    const refused = this.#guard(request) ?? (await this.#serve(path, { request, response, continues }));
    if (refused === null) return;
    const { reason, status, allow, ...error } = refused;
    this.#ports.onTurnedAway(reason);
    if (allow !== undefined) response.setHeader("allow", allow);
    answerError(response, status, error);
  }

  #guard(request: WebRequest): Refused | null {
    const away = turnedAway(guarded(request), this.#parts);
    if (away !== null) return { status: 403, code: "permission_denied", ...away };
    if (!this.#parts.stopping.aborted) return null;
    const message = "the server is stopping; repeat the same call";
    return { reason: "stopping", status: 503, code: "unavailable", message };
  }

  async #serve(path: string, of: Received): Promise<Refused | null> {
    const { request, response } = of;
    if (RPC_PATH.test(path)) {
      if (request.method !== "POST") return wrongMethod(path, "POST");
      const routes = await this.#load();
      return routes.handle(path, this.#callOf(of)) === "handled" ? null : UNKNOWN_PATH;
    }
    if (isLoginPath(path)) {
      const search = (request.url ?? "").slice(path.length);
      const login = { ...of, path, search, peer: this.#peerOf(request), hasTls: this.#parts.hasTls };
      return serveLogin(login, this.#ports);
    }
    if (isOfPage(path, request)) return await servePage({ ...of, path }, this.#parts.page);
    const page = Object.hasOwn(DOCUMENTS, path) ? DOCUMENTS[path] : undefined;
    if (page === undefined) return UNKNOWN_PATH;
    if (request.method !== "GET" && request.method !== "HEAD") return wrongMethod(path, "GET, HEAD");
    answer(response, { status: 200, ...(await page()) });
    return null;
  }

  /** The library is loaded with the first call: a service that nobody calls here does not pay for it. */
  #load(): Promise<Routes> {
    const { served, clock, onInternalError } = this.#ports;
    const body = { bytesMax: this.#parts.bytesMax, arrivesMs: BODY_MS };
    this.#routes ??= import("./routes.ts").then(({ createRoutes }) =>
      createRoutes({ served, clock, onInternalError, body }),
    );
    return this.#routes;
  }

  #callOf({ request, response, continues }: Received): WebCall {
    const { answers, hasTls } = this.#parts;
    const { logins, entering } = this.#ports;
    const session = logins === null ? null : readCookie(request, "session", hasTls || logins.offered().isSecure);
    const shown = { certificate: null, ...(session === null ? {} : { session }) };
    const metadata = metadataOf(request);
    const held = heldPlace();
    response.once("close", held.end);
    return {
      request,
      response,
      metadata,
      peer: this.#peerOf(request),
      enter: async (method) => {
        await enterCall(metadata, shown, { method, held, pays: (_identity, place) => place }, entering);
        if (!continues) return;
        if (!("stream" in response)) response.shouldKeepAlive = true;
        response.writeContinue();
      },
      deliver: (body) => answers.deliver(response, body),
    };
  }

  #peerOf(request: WebRequest): string {
    const { remoteAddress: address, remotePort: port } = request.socket;
    return clientAddress({ address, port }, headerOf(request, "x-forwarded-for"), this.#parts.trustedProxies);
  }
}

type Received = { readonly request: WebRequest; readonly response: WebResponse; readonly continues: boolean };

function guarded(request: WebRequest) {
  return {
    method: request.method ?? "",
    host: hostOf(request) ?? undefined,
    localAddress: request.socket.localAddress,
    origin: headerOf(request, "origin"),
    fetchSite: headerOf(request, "sec-fetch-site"),
  };
}
