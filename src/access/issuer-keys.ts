/** The keys with which an issuer signs tokens: found by discovery, kept, and used on while the issuer is away. */
import { createRemoteJWKSet, customFetch, errors, type JWTVerifyGetKey } from "jose";
import { Agent, fetch } from "undici";
import type { Clock } from "../runtime/clock.ts";
import { isJsonObject, stringAt } from "../runtime/json.ts";
import { IssuerUnavailableError } from "../runtime/unavailable-error.ts";

/** Keys are read again this often: a key that an issuer has withdrawn is taken at most so long. */
const REFRESH_MS = 600_000;
/** Tokens of unknown keys cause at most one request in this time. */
const COOL_DOWN_MS = 30_000;
/** And an issuer that is away is asked at most this often. */
const AWAY_COOL_DOWN_MS = 5_000;
/** Keys that could not be read again for this long are used no more. */
const LIMIT_MS = 86_400_000;
const TIMEOUT_MS = 5_000;
const ANSWER_BYTES_MAX = 1024 * 1024;

export type KeysOptions = {
  readonly issuer: string;
  /** The authorities that sign the issuer's certificate, in PEM. Null: those that Node trusts. */
  readonly ca: string | null;
  readonly clock: Pick<Clock, "monotonicMs">;
  /** Called with the reason when the keys cannot be read. The kept ones may still serve. */
  readonly onError: (error: unknown) => void;
};

type KeySet = ReturnType<typeof createRemoteJWKSet>;

/** Throws an `IssuerUnavailableError` while no keys are known, and jose's errors for tokens that no key has signed. */
export function issuerKeys(options: KeysOptions): JWTVerifyGetKey {
  const { clock, onError } = options;
  const dispatcher = new Agent({
    maxResponseSize: ANSWER_BYTES_MAX,
    connect: options.ca === null ? {} : { ca: options.ca },
    headersTimeout: TIMEOUT_MS,
    bodyTimeout: TIMEOUT_MS,
  });
  const get = (url: string, signal: AbortSignal) => fetch(url, { dispatcher, signal, redirect: "error" });
  let keys: KeySet | null = null;
  let readMs = Number.NEGATIVE_INFINITY;
  let triedMs = Number.NEGATIVE_INFINITY;
  let failed = false;
  let reading: Promise<KeySet> | null = null;
  const coolsDown = () => clock.monotonicMs() - triedMs < (failed ? AWAY_COOL_DOWN_MS : COOL_DOWN_MS);
  const read = async (): Promise<KeySet> => {
    triedMs = clock.monotonicMs();
    const set = keys ?? (await discover(options.issuer, get));
    await set.reload();
    keys = set;
    readMs = clock.monotonicMs();
    failed = false;
    return set;
  };
  /** Joins a read that is under way. Throws at once if the last one has just been. */
  const readOnce = (): Promise<KeySet> => {
    const { issuer } = options;
    if (reading === null && coolsDown()) return Promise.reject(away(issuer));
    reading ??= read()
      .catch((error: unknown) => {
        failed = true;
        onError(error);
        throw away(issuer);
      })
      .finally(() => {
        reading = null;
      });
    return reading;
  };
  const known = async (): Promise<KeySet> => {
    const ageMs = clock.monotonicMs() - readMs;
    if (keys === null || ageMs > LIMIT_MS) return readOnce();
    if (ageMs > REFRESH_MS && !coolsDown()) readOnce().catch(() => undefined);
    return keys;
  };
  return async (header, token) => {
    const set = await known();
    try {
      return await set(header, token);
    } catch (error) {
      const mayRead = reading !== null || !coolsDown();
      if (!(error instanceof errors.JWKSNoMatchingKey) || !mayRead) throw error;
      return (await readOnce())(header, token);
    }
  };
}

type Get = (url: string, signal: AbortSignal) => ReturnType<typeof fetch>;

/** OpenID Connect Discovery 1.0, 4: the document must name the issuer that it was asked of. */
async function discover(issuer: string, get: Get): Promise<KeySet> {
  const url = `${issuer.replace(/\/$/, "")}/.well-known/openid-configuration`;
  const response = await get(url, AbortSignal.timeout(TIMEOUT_MS));
  if (response.status !== 200) throw new Error(`${url} answered with status ${response.status}`);
  const document = await response.json();
  if (!isJsonObject(document) || document["issuer"] !== issuer) throw new Error(`${url} is not about issuer ${issuer}`);
  const jwksUri = URL.parse(stringAt(document, "jwks_uri") ?? "");
  if (jwksUri === null || (jwksUri.protocol !== "https:" && !issuer.startsWith("http:"))) {
    throw new Error(`${url} has no https URL in jwks_uri`);
  }
  return createRemoteJWKSet(jwksUri, {
    timeoutDuration: TIMEOUT_MS,
    // This file decides when keys are read again.
    cacheMaxAge: Number.POSITIVE_INFINITY,
    cooldownDuration: Number.POSITIVE_INFINITY,
    [customFetch]: (target, { signal }) => get(target, signal) as unknown as Promise<Response>,
  });
}

function away(issuer: string): IssuerUnavailableError {
  return new IssuerUnavailableError(`the issuer ${issuer} is away, so its tokens cannot be verified; try again later`);
}
