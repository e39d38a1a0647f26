/** Asks an issuer of OpenID Connect for the tokens of people who log in with a browser. Loaded by their first login. */
import * as client from "openid-client";
import { fetch } from "undici";
import type { SessionTokens } from "../core/access/console-session.ts";
import type { ConsoleSettings } from "../core/access/console-settings.ts";
import type { Clock } from "../runtime/clock.ts";
import { foreignText } from "../runtime/foreign-text.ts";
import { IssuerUnavailableError } from "../runtime/unavailable-error.ts";
import { followAgent, ISSUER_TIMEOUT_MS } from "./issuer-agent.ts";
import type { LoginProvider, ProviderTokens } from "./login.ts";

/** The issuer's document is read again this often. */
const DOCUMENT_MS = 600_000;
/** An issuer that is away is asked for it at most this often. */
const AWAY_MS = 5_000;
/** As the longest token. A longer one is not kept, and its session ends with the first ID token. */
const REFRESH_CHARS_MAX = 16_384;
/** RFC 6749, 4.1.2.1: these say that the issuer itself is at fault. */
const ISSUER_AT_FAULT: readonly unknown[] = ["temporarily_unavailable", "server_error"];
/** What the browser brought, or the ID token that it got, is not what this login asked for. */
const WRONG_ANSWER: readonly unknown[] = [
  "OAUTH_INVALID_RESPONSE",
  "OAUTH_JWT_CLAIM_COMPARISON_FAILED",
  "OAUTH_JWT_TIMESTAMP_CHECK_FAILED",
  "OAUTH_JSON_ATTRIBUTE_COMPARISON_FAILED",
];

export type ProviderPorts = {
  readonly clock: Pick<Clock, "monotonicMs">;
  /** The authorities that sign the issuer's certificate, in PEM. Null: those that Node trusts. */
  readonly readCa: (() => Promise<string>) | null;
  /** Null: the client is public. */
  readonly readSecret: (() => Promise<string>) | null;
  /** Called with the reason when the issuer cannot be asked. Visitors see only that it is away. */
  readonly onError: (error: unknown) => void;
};

export function createProvider(
  { issuer, clientId, origin, scopes }: ConsoleSettings,
  ports: ProviderPorts,
): LoginProvider {
  const redirectUri = `${origin}/auth/callback`;
  const connected = connection({ issuer, clientId }, ports);
  const away = (cause: unknown) => awayWith(cause, issuer, ports);
  return {
    async loginUrl({ state, nonce, verifier }) {
      const config = await connected();
      const url = client.buildAuthorizationUrl(config, {
        ...{ redirect_uri: redirectUri, scope: scopes.join(" "), state, nonce },
        ...{ code_challenge: await client.calculatePKCECodeChallenge(verifier), code_challenge_method: "S256" },
      });
      return url.href;
    },
    async tokensFor(search, { state, nonce, verifier }) {
      const config = await connected();
      const checks = {
        ...{ expectedState: state, expectedNonce: nonce, pkceCodeVerifier: verifier },
        idTokenExpected: true,
      };
      try {
        const answer = await client.authorizationCodeGrant(config, new URL(redirectUri + search), checks);
        return tokensOf(answer, issuer, null);
      } catch (error) {
        const why = whyDeclined(error) ?? whyInvalid(error);
        if (why === null) throw away(error);
        return { kind: "refused", why };
      }
    },
    async renew(refreshToken) {
      const config = await connected();
      try {
        return tokensOf(await client.refreshTokenGrant(config, refreshToken), issuer, refreshToken);
      } catch (error) {
        const why = whyInvalid(error);
        if (why === null) throw away(error);
        return { kind: "refused", why };
      }
    },
    async revoke(refreshToken) {
      const config = await connected();
      if (config.serverMetadata().revocation_endpoint === undefined) return;
      await client.tokenRevocation(config, refreshToken, { token_type_hint: "refresh_token" });
    },
  };
}

/**
 * The issuer as its document describes it, or described it last if it cannot be read now. Throws an
 * `IssuerUnavailableError` if it was never read.
 */
function connection(
  { issuer, clientId }: Pick<ConsoleSettings, "issuer" | "clientId">,
  ports: ProviderPorts,
): () => Promise<client.Configuration> {
  const { clock, readCa, readSecret } = ports;
  const agentNow = followAgent(readCa);
  let secret: string | null = null;
  const authentication: client.ClientAuth = (as, ...rest) => clientAuth(as, secret)(as, ...rest);
  const discover = async () => {
    const options: client.DiscoveryRequestOptions = {
      execute: issuer.startsWith("http:") ? [client.allowInsecureRequests] : [],
      timeout: ISSUER_TIMEOUT_MS / 1000,
      [client.customFetch]: async (url, request) =>
        (await fetch(url, { ...(request as object), dispatcher: await agentNow() })) as unknown as Response,
    };
    return client.discovery(new URL(issuer), clientId, undefined, authentication, options);
  };
  let last: client.Configuration | null = null;
  const read = async (): Promise<client.Configuration> => {
    try {
      last = await discover();
      return last;
    } catch (error) {
      untilMs = clock.monotonicMs() + AWAY_MS;
      const failure = awayWith(error, issuer, ports);
      if (last === null) throw failure;
      return last;
    }
  };
  let config: Promise<client.Configuration> | null = null;
  let untilMs = 0;
  return async () => {
    if (readSecret !== null) secret = (await readSecret()).trim();
    const nowMs = clock.monotonicMs();
    if (config === null || nowMs >= untilMs) {
      untilMs = nowMs + DOCUMENT_MS;
      config = read();
    }
    return config;
  };
}

/** Most issuers take both ways of showing a secret. One that names only the other one gets that. */
function clientAuth(as: client.ServerMetadata, secret: string | null): client.ClientAuth {
  if (secret === null) return client.None();
  const methods = as.token_endpoint_auth_methods_supported ?? ["client_secret_basic"];
  return methods.includes("client_secret_basic") ? client.ClientSecretBasic(secret) : client.ClientSecretPost(secret);
}

/** `before`: the refresh token that was used, which counts on if the issuer gives no other one. */
function tokensOf(
  { id_token: token, refresh_token: next }: { readonly id_token?: string; readonly refresh_token?: string },
  issuer: string,
  before: string | null,
): ProviderTokens {
  if (token === undefined) return { kind: "refused", why: "the issuer gave no ID token" };
  const refreshToken = next ?? before;
  const isKept = refreshToken !== null && refreshToken.length <= REFRESH_CHARS_MAX;
  const tokens: SessionTokens = { token, renewal: isKept ? { issuer, refreshToken } : null };
  return { kind: "tokens", tokens };
}

/** Why the issuer does not take this code or refresh token any more (RFC 6749, 5.2). Null: it has not judged it. */
function whyInvalid(error: unknown): string | null {
  const isJudged = error instanceof client.ResponseBodyError && error.error === "invalid_grant" && error.status < 500;
  return isJudged ? foreignText(error.error_description ?? error.error) : null;
}

/** Why a browser came back from the issuer without a login that counts. Null: the issuer is at fault. */
function whyDeclined(error: unknown): string | null {
  if (error instanceof client.AuthorizationResponseError) {
    return ISSUER_AT_FAULT.includes(error.error) ? null : foreignText(error.error_description ?? error.error);
  }
  const isWrong = error instanceof client.ClientError && WRONG_ANSWER.includes(error.code);
  return isWrong ? foreignText(error.message) : null;
}

function awayWith(cause: unknown, issuer: string, { onError }: ProviderPorts): IssuerUnavailableError {
  onError(cause);
  return new IssuerUnavailableError(`the issuer ${issuer} does not answer as it should; try again later`);
}
