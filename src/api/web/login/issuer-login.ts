/** Logs a person in at an issuer of OpenID Connect: sends the browser there, and takes it back. */
import { status } from "@grpc/grpc-js";
import { visibleText } from "../../../runtime/visible-text.ts";
import type { EnteringOptions } from "../../rpc/authentication.ts";
import { errorInfo } from "../../rpc/error-details.ts";
import { failedPrecondition, invalidFields, RpcError } from "../../rpc/rpc-error.ts";
import { beginSession, hasLeft, lacksKey } from "./begin-session.ts";
import { loginCookie, noCookie, readCookie } from "./cookies.ts";
import type { LoginAnswer, LoginRequest } from "./login-request.ts";

export async function startLogin({ logins, search, isSecure }: LoginRequest): Promise<LoginAnswer> {
  const [target = "/", ...more] = new URLSearchParams(search).getAll("to");
  const started = more.length > 0 ? ({ kind: "wrongTarget" } as const) : await logins.start(target);
  switch (started.kind) {
    case "off":
      throw noIssuer();
    case "noKey":
      throw lacksKey();
    case "wrongTarget": {
      const message = "must be one path of this service, with one slash at its beginning and at most 1024 characters";
      throw invalidFields([{ field: "to", message }]);
    }
    case "started":
      return sentTo(started.url, [loginCookie(started.cookie, isSecure)]);
  }
}

export async function finishLogin(of: LoginRequest, entering: EnteringOptions): Promise<LoginAnswer> {
  const { logins, request, search, peer, left, isSecure } = of;
  const cookie = readCookie(request, "login", isSecure);
  const finished = await logins.finish({ search, cookie, host: withoutPort(peer), left });
  switch (finished.kind) {
    case "off":
      throw noIssuer();
    case "left":
      throw hasLeft();
    case "refused":
      throw refused(finished.why);
    case "finished": {
      const begun = await beginSession(of, finished.tokens, entering);
      return sentTo(finished.target, [begun.cookie, noCookie("login", isSecure)]);
    }
  }
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
