/** Logs a person in at an issuer of OpenID Connect: sends the browser there, and takes it back. */
import { status } from "@grpc/grpc-js";
import { visibleText } from "../../../runtime/visible-text.ts";
import type { EnteringOptions } from "../../rpc/authentication.ts";
import { errorInfo } from "../../rpc/error-details.ts";
import { failedPrecondition, invalidFields, RpcError } from "../../rpc/rpc-error.ts";
import { hostOf } from "../call-metadata.ts";
import { beginSession, hasLeft, lacksKey } from "./begin-session.ts";
import { loginCookie, noCookie, readCookie } from "./cookies.ts";
import type { LoginAnswer, LoginRequest } from "./login-request.ts";

export async function startLogin({ logins, request, search, isSecure }: LoginRequest): Promise<LoginAnswer> {
  const query = new URLSearchParams(search);
  const [target = "/", ...more] = query.getAll("to");
  // A proxy may call the service by a name of its own: a browser is sent on once.
  const host = query.has(MOVED) ? null : hostOf(request);
  const started = more.length > 0 ? ({ kind: "wrongTarget" } as const) : await logins.start(target, host);
  switch (started.kind) {
    case "off":
      throw noIssuer();
    case "noKey":
      throw lacksKey();
    case "wrongTarget": {
      const message = "must be one path of this service, with one slash at its beginning and at most 1024 characters";
      throw invalidFields([{ field: "to", message }]);
    }
    case "elsewhere":
      return sentTo(`${started.origin}/auth/login?${new URLSearchParams({ to: target, [MOVED]: "1" })}`, []);
    case "started":
      return sentTo(started.url, [loginCookie(started.cookie, isSecure)]);
  }
}

/** Marks a login that has been sent to the host of the console. */
const MOVED = "moved";

export async function finishLogin(of: LoginRequest, entering: EnteringOptions): Promise<LoginAnswer> {
  const { logins, request, search, peer, left, isSecure } = of;
  const cookie = readCookie(request, "login", isSecure);
  const finished = await logins.finish({ search, cookie, host: withoutPort(peer), left });
  switch (finished.kind) {
    case "off":
      throw noIssuer();
    case "left":
      throw hasLeft();
    case "otherLogin":
      // As in a second tab, after the login in the first one.
      if (await hasSession(of, entering)) return sentTo("/", []);
      throw refused(finished.why);
    case "refused":
      throw refused(finished.why);
    case "finished": {
      const begun = await beginSession(of, finished.tokens, entering);
      return sentTo(finished.target, [begun.cookie, noCookie("login", isSecure)]);
    }
  }
}

async function hasSession(
  { request, isSecure }: Pick<LoginRequest, "request" | "isSecure">,
  { authenticate }: Pick<EnteringOptions, "authenticate">,
): Promise<boolean> {
  const session = readCookie(request, "session", isSecure);
  if (session === null) return false;
  return (await authenticate({ authorization: [], certificate: null, session })).kind === "identity";
}

/** Behind trusted proxies, a peer has no port. */
function withoutPort(peer: string): string {
  return /^(\[[^\]]*\]|[^:]*):\d+$/.exec(peer)?.[1] ?? peer;
}

function sentTo(location: string, cookies: readonly string[]): LoginAnswer {
  return { status: 303, body: "continue at the address in the header Location\n", location, cookies };
}

/** The issuer, or anybody who made the link, may have written a part of the text. */
function refused(why: string): RpcError {
  const message = `you are not logged in: ${visibleText(why)}; begin again at /auth/login`;
  return new RpcError(status.UNAUTHENTICATED, message, [errorInfo("UNAUTHENTICATED")]);
}

function noIssuer(): RpcError {
  const description = "lets nobody log in at an issuer: its authentication file has no console";
  return failedPrecondition({ type: "NO_LOGIN", subject: "this service", description });
}
