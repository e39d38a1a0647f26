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
/** These say that the client, or the issuer itself, is at fault: the same refresh token may count later. */
const NOT_THE_TOKEN: readonly unknown[] = ["invalid_client", "temporarily_unavailable", "server_error", "slow_down"];

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
        const why = whyRefused(error) ?? (error instanceof client.ClientError ? foreignText(error.message) : null);
        if (why === null) throw away(error);
        return { kind: "refused", why };
      }
    },
    async renew(refreshToken) {
      const config = await connected();
      try {
        return tokensOf(await client.refreshTokenGrant(config, refreshToken), issuer, refreshToken);
      } catch (error) {
        const why = error instanceof client.AuthorizationResponseError ? null : whyRefused(error);
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

/** What the issuer says. Null: it has not judged the code or the token. */
function whyRefused(error: unknown): string | null {
  if (!(error instanceof client.ResponseBodyError || error instanceof client.AuthorizationResponseError)) return null;
  if (NOT_THE_TOKEN.includes(error.error)) return null;
  if (error instanceof client.ResponseBodyError && error.status >= 500) return null;
  return foreignText(error.error_description ?? error.error);
}

function awayWith(cause: unknown, issuer: string, { onError }: ProviderPorts): IssuerUnavailableError {
  onError(cause);
  return new IssuerUnavailableError(`the issuer ${issuer} does not answer as it should; try again later`);
}
