/** The paths below `/auth`, at which browsers log in and out. README.md says how a login goes. */
import { status } from "@grpc/grpc-js";
import type { Logins } from "../../ports.ts";
import type { EnteringOptions } from "../../rpc/authentication.ts";
import { failedPrecondition, type OnInternalError, toStatus } from "../../rpc/rpc-error.ts";
import { answer, skipBody, type WebResponse } from "../answers.ts";
import { type Refused, UNKNOWN_PATH, wrongMethod } from "../refused.ts";
import { noCookie, readCookie } from "./cookies.ts";
import { finishLogin, startLogin } from "./issuer-login.ts";
import type { LoginAnswer, LoginRequest } from "./login-request.ts";
import { tokenLogin } from "./token-login.ts";

export type LoginPathPorts = {
  /** Null: the service asks nobody for credentials. */
  readonly logins: Logins | null;
  readonly entering: EnteringOptions;
  readonly onInternalError: OnInternalError;
};

export type ReceivedLogin = Omit<LoginRequest, "logins" | "isSecure" | "left"> & {
  /** True: the listener speaks TLS. */
  readonly hasTls: boolean;
};

type Served = {
  readonly method: "GET" | "POST";
  readonly answer: (of: LoginRequest, entering: EnteringOptions) => Promise<LoginAnswer>;
};

const PATHS: Readonly<Record<string, Served>> = {
  "/auth/methods": { method: "GET", answer: offeredLogins },
  "/auth/token": { method: "POST", answer: tokenLogin },
  "/auth/login": { method: "GET", answer: startLogin },
  "/auth/callback": { method: "GET", answer: finishLogin },
  "/auth/logout": { method: "POST", answer: logOut },
};

export function isLoginPath(path: string): boolean {
  return path.startsWith("/auth/");
}

/** Answers a request below `/auth`, or says why it is turned away. */
export async function serveLogin(received: ReceivedLogin, ports: LoginPathPorts): Promise<Refused | null> {
  const { request, response, path, hasTls } = received;
  const served = Object.hasOwn(PATHS, path) ? PATHS[path] : undefined;
  if (served === undefined) return UNKNOWN_PATH;
  if (request.method !== served.method) return wrongMethod(path, served.method);
  const { logins } = ports;
  const isSecure = hasTls || logins?.offered().isSecure === true;
  try {
    const of = logins === null ? null : { ...received, isSecure, logins, left: untilLeft(response) };
    send(received, of === null ? withoutLogins(path) : await served.answer(of, ports.entering));
  } catch (cause) {
    const { code = status.INTERNAL, details = "" } = toStatus(cause, ports.onInternalError);
    const error = { code: status[code].toLowerCase(), message: details };
    send(received, { status: STATUSES[code] ?? 500, body: served.method === "GET" ? `${details}\n` : error });
  }
  return null;
}

/** Call it before anything is waited for: a response that has closed says so no more. */
function untilLeft(response: WebResponse): AbortSignal {
  const left = new AbortController();
  // Without a reason it would make an error with a stack.
  response.once("close", () => left.abort("left"));
  return left.signal;
}

const STATUSES: Readonly<Partial<Record<status, number>>> = {
  [status.INVALID_ARGUMENT]: 400,
  [status.FAILED_PRECONDITION]: 400,
  [status.UNAUTHENTICATED]: 401,
  [status.PERMISSION_DENIED]: 403,
  [status.RESOURCE_EXHAUSTED]: 429,
  [status.UNAVAILABLE]: 503,
  [status.DEADLINE_EXCEEDED]: 504,
};

/** What a page can offer, and who has logged in. */
async function offeredLogins(of: LoginRequest, { authenticate }: EnteringOptions): Promise<LoginAnswer> {
  const { logins, request, isSecure } = of;
  const { token, issuer, hasKey } = logins.offered();
  const session = readCookie(request, "session", isSecure);
  const shown = { authorization: [], certificate: null };
  const known = session === null ? null : await authenticate({ ...shown, session });
  const caller = known?.kind === "identity" ? { subject: known.identity.subject } : null;
  return { body: { needed: true, token: token && hasKey, issuer: hasKey ? issuer : null, caller } };
}

async function logOut({ logins, request, isSecure }: LoginRequest): Promise<LoginAnswer> {
  const session = readCookie(request, "session", isSecure);
  if (session !== null) await logins.end(session, "its caller logged out");
  return { body: {}, cookies: [noCookie("session", isSecure)] };
}

function withoutLogins(path: string): LoginAnswer {
  if (path === "/auth/methods") return { body: { needed: false, token: false, issuer: null, caller: null } };
  if (path === "/auth/logout") return { body: {} };
  const description = "asks nobody for credentials: call it without a login";
  throw failedPrecondition({ type: "NO_LOGIN", subject: "this service", description });
}

function send({ response }: ReceivedLogin, { status: code = 200, body, location, cookies = [] }: LoginAnswer): void {
  if (response.destroyed || response.writableEnded) return;
  skipBody(response);
  if (location !== undefined) response.setHeader("location", location);
  if (cookies.length > 0) response.setHeader("set-cookie", [...cookies]);
  const isText = typeof body === "string";
  const contentType = isText ? "text/plain; charset=utf-8" : "application/json";
  answer(response, { status: code, contentType, body: isText ? body : `${JSON.stringify(body)}\n` });
}
