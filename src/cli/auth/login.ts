/** Logins of people at an issuer of OpenID Connect. Calls show the ID token, which is renewed before it expires. */
import { isJsonObject, type Json } from "../../runtime/json.ts";
import { isLoopback } from "../../runtime/listen-address.ts";
import type { CliDeps } from "../shell/deps.ts";
import { CommandFailure, EXIT, usageFailure } from "../shell/exit.ts";

/** Where a person logs in, and as which client. */
export type LoginAt = {
  /** The URL of the issuer: https, or http on this machine. */
  readonly issuer: string;
  /** A public client that may use the device flow (RFC 8628). It is the audience of the ID tokens. */
  readonly clientId: string;
  /** Names with blanks between them. */
  readonly scope: string;
};

/** What the file of a login holds. */
export type IssuerLogin = LoginAt & {
  readonly idToken: string;
  /** Null: the issuer gave none, and the login ends with its ID token. */
  readonly refreshToken: string | null;
};

/** What a person is asked to do in a browser. */
export type DeviceCode = { readonly url: string; readonly code: string };

/** A call carries a token of at most 16 KiB. A file that is larger is no login. */
export const LOGIN_LIMIT = { bytesMax: 256 * 1024 };

/** A token is renewed this long before it expires, so that no call shows one that expires on its way. */
const RENEW_BEFORE_MS = 30_000;

/** Resolves once the person has logged in. Throws a failure if the issuer refuses, or is not there. */
export function logIn(
  at: LoginAt,
  { onCode, signal }: { readonly onCode: (code: DeviceCode) => void; readonly signal: AbortSignal },
): Promise<IssuerLogin> {
  return ofIssuer(at.issuer, async () => {
    const { client, issuer } = await discover(at);
    const device = await client.initiateDeviceAuthorization(issuer, { scope: at.scope });
    onCode({ url: device.verification_uri_complete ?? device.verification_uri, code: device.user_code });
    const tokens = await client.pollDeviceAuthorizationGrant(issuer, device, undefined, { signal });
    return loginOf(at, tokens, null);
  });
}

/** Tells the issuer that a login is over, if it takes that. */
export function revoke(login: IssuerLogin): Promise<void> {
  return ofIssuer(login.issuer, async () => {
    const { client, issuer } = await discover(login);
    const token = login.refreshToken;
    if (token === null || issuer.serverMetadata().revocation_endpoint === undefined) return;
    await client.tokenRevocation(issuer, token, { token_type_hint: "refresh_token" });
  });
}

/** Reads the text of a login's file. Null: it is something else. */
export function loginFrom(text: string): IssuerLogin | null {
  let json: Json;
  try {
    json = JSON.parse(text) as Json;
  } catch {
    return null;
  }
  if (!isJsonObject(json)) return null;
  const { issuer, clientId, scope, idToken, refreshToken } = json;
  if (typeof issuer !== "string" || typeof clientId !== "string" || typeof scope !== "string") return null;
  if (typeof idToken !== "string" || (typeof refreshToken !== "string" && refreshToken !== null)) return null;
  return { issuer, clientId, scope, idToken, refreshToken };
}

/** The ID token of a login's file with this text. Renews it, and writes the file, if the token is about to expire. */
export async function loginToken(
  text: string,
  file: string,
  deps: Pick<CliDeps, "readFile" | "writePrivateFile" | "clock">,
): Promise<string> {
  const login = loginFrom(text);
  if (login === null)
    throw usageFailure(`${file} is no login: begin one with "gangway login --issuer URL --client-id ID"`);
  const counts = (one: IssuerLogin) => expiresAtMs(one) - deps.clock.nowMs() > RENEW_BEFORE_MS;
  if (counts(login)) return login.idToken;
  try {
    const next = await renewed(login);
    await deps.writePrivateFile(file, textOf(next));
    return next.idToken;
  } catch (error) {
    // Another command may have renewed the login meanwhile: many issuers take a refresh token once.
    const other = loginFrom(await deps.readFile(file, LOGIN_LIMIT).catch(() => ""));
    if (other !== null && counts(other)) return other.idToken;
    throw error;
  }
}

/** The text of a login's file. */
export function textOf(login: IssuerLogin): string {
  return `${JSON.stringify(login)}\n`;
}

/** A claim of the ID token. The issuer is asked for tokens over TLS, so that this does not check their signatures. */
export function subjectOf({ idToken }: IssuerLogin): string {
  return String(claimsOf(idToken)["sub"] ?? "");
}

function expiresAtMs({ idToken }: IssuerLogin): number {
  return Number(claimsOf(idToken)["exp"] ?? 0) * 1000;
}

function claimsOf(token: string): { readonly [claim: string]: unknown } {
  try {
    return JSON.parse(Buffer.from(token.split(".")[1] ?? "", "base64url").toString());
  } catch {
    return {};
  }
}

function renewed(login: IssuerLogin): Promise<IssuerLogin> {
  const { refreshToken } = login;
  if (refreshToken === null) throw ended(login.issuer, "the token has expired, and the issuer gave none to renew it");
  return ofIssuer(login.issuer, async () => {
    const { client, issuer } = await discover(login);
    return loginOf(login, await client.refreshTokenGrant(issuer, refreshToken), login);
  });
}

async function discover({ issuer, clientId }: LoginAt) {
  const url = URL.parse(issuer);
  const isOpen = url?.protocol === "http:" && isLoopback(url.hostname);
  if (url === null || (url.protocol !== "https:" && !isOpen))
    throw usageFailure(`--issuer must be a URL with https, not ${issuer}`);
  // Only logins load this package, because it takes long.
  const client = await import("openid-client");
  const execute = isOpen ? [client.allowInsecureRequests] : [];
  return { client, issuer: await client.discovery(url, clientId, undefined, client.None(), { execute }) };
}

function loginOf(
  { issuer, clientId, scope }: LoginAt,
  tokens: { readonly id_token?: string; readonly refresh_token?: string },
  before: IssuerLogin | null,
): IssuerLogin {
  const { id_token: idToken, refresh_token: refreshToken = before?.refreshToken ?? null } = tokens;
  if (idToken === undefined) throw ended(issuer, "it gave no ID token; the scope must have openid");
  return { issuer, clientId, scope, idToken, refreshToken };
}

/** Says what an issuer answers. No message shows a token. */
async function ofIssuer<T>(issuer: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof CommandFailure || !(error instanceof Error)) throw error;
    const { error: code, error_description: description } = error as { error?: string; error_description?: string };
    const cause = error.cause instanceof Error ? `${error.message}: ${error.cause.message}` : error.message;
    throw ended(issuer, description ?? code ?? cause);
  }
}

function ended(issuer: string, why: string): CommandFailure {
  const hint = '"gangway login" begins a new login';
  return new CommandFailure(EXIT.refused, [`error: no login at ${issuer}: ${why}`, hint]);
}
