/** Begins the session of a browser whose token the service takes. */
import { Metadata, status } from "@grpc/grpc-js";
import type { SessionTokens } from "../../../core/access/console-session.ts";
import { callerOf, type EnteringOptions, enterCall, heldPlace } from "../../rpc/authentication.ts";
import { failedPrecondition, RpcError, tooMany, unauthenticated } from "../../rpc/rpc-error.ts";
import { readCookie, sessionCookie } from "./cookies.ts";
import type { LoginRequest } from "./login-request.ts";

export type BegunLogin = { readonly subject: string; readonly expiresAtMs: number; readonly cookie: string };

/**
 * The token is judged as that of any call, and the login counts as a call of its caller. Throws what `enterCall`
 * throws. An earlier session of the browser ends. A browser that has left gets no session.
 */
export async function beginSession(
  { logins, request, path, peer, left, isSecure }: LoginRequest,
  tokens: SessionTokens,
  entering: EnteringOptions,
): Promise<BegunLogin> {
  const metadata = new Metadata();
  metadata.set("authorization", `Bearer ${tokens.token}`);
  if (left.aborted) throw hasLeft();
  const held = heldPlace();
  left.addEventListener("abort", held.end, { once: true });
  const method = { path, responseStream: false };
  await enterCall(metadata, { certificate: null }, { method, held, pays: (_caller, place) => place }, entering);
  if (left.aborted) throw hasLeft();
  const { identity } = callerOf(metadata);
  const begun = await logins.begin(identity, tokens, peer);
  if (begun.kind !== "begun") throw REFUSALS[begun.kind]();
  if (left.aborted) {
    await logins.end(begun.secret, "its browser left before it got the cookie");
    throw hasLeft();
  }
  const earlier = readCookie(request, "session", isSecure);
  if (earlier !== null) await logins.end(earlier, "its browser logged in again");
  const { secret, expiresAtMs, lifeMs } = begun;
  return { subject: identity.subject, expiresAtMs, cookie: sessionCookie(secret, lifeMs, isSecure) };
}

/** Nobody gets this answer. */
export function hasLeft(): RpcError {
  return new RpcError(status.CANCELLED, "the browser has left");
}

const REFUSALS = {
  full: tooManySessions,
  noKey: lacksKey,
  expired: () => unauthenticated("the token has expired"),
} as const;

function tooManySessions(): RpcError {
  const description = "has as many sessions of browsers as it keeps: log in again once others have ended";
  return tooMany("TOO_MANY_SESSIONS", { subject: "this service", description });
}

export function lacksKey(): RpcError {
  const description =
    "has no key to encrypt sessions with: set GANGWAY_CREDENTIALS_KEY or GANGWAY_CREDENTIALS_KEYS_FILE";
  return failedPrecondition({ type: "NO_CREDENTIALS_KEY", subject: "this service", description });
}
