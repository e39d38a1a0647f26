/** The keys with which an issuer signs tokens: found by discovery, kept, and used on while the issuer is away. */
import { createLocalJWKSet, errors, type JWTVerifyGetKey } from "jose";
import { type Agent, fetch } from "undici";
import type { Clock } from "../runtime/clock.ts";
import { isJsonObject, type Json, stringAt } from "../runtime/json.ts";
import { IssuerUnavailableError } from "../runtime/unavailable-error.ts";
import { followAgent, ISSUER_TIMEOUT_MS } from "./issuer-agent.ts";

/** Document and keys are read again this often: a key that an issuer has withdrawn is taken at most so long. */
const REFRESH_MS = 600_000;
/** Tokens of unknown keys, and signatures that fail, cause at most one reading in this time. */
const COOL_DOWN_MS = 30_000;
/** And an issuer that is away is asked at most this often. */
const AWAY_COOL_DOWN_MS = 5_000;
/** Keys that could not be read again for this long are used no more. */
const LIMIT_MS = 86_400_000;

export type KeysOptions = {
  readonly issuer: string;
  /** Reads the authorities that sign the issuer's certificate, in PEM. Null: those that Node trusts. */
  readonly ca: (() => Promise<string>) | null;
  readonly clock: Pick<Clock, "monotonicMs">;
  /** Called with the reason when the document or the keys cannot be read. The kept ones may still serve. */
  readonly onError: (error: unknown) => void;
};

/** Finds the key of a token. Throws an `IssuerUnavailableError` without keys, and jose's errors for unknown ones. */
export type IssuerKeys = JWTVerifyGetKey & {
  /** How often document and keys have been read. */
  readonly readings: () => number;
  /**
   * Reads document and keys again, because a signature failed with those of a reading: an issuer may replace a key
   * under its old name. Returns false if there are no newer ones and they have just been read. Throws an
   * `IssuerUnavailableError` if they cannot be read.
   */
  readonly readAgain: (after: number) => Promise<boolean>;
};

type KeySet = ReturnType<typeof createLocalJWKSet>;

/** Reads with each refresh all that an issuer publishes: its document, and the keys that this names. */
export function issuerKeys(options: KeysOptions): IssuerKeys {
  const { issuer, clock, onError } = options;
  const agentNow = followAgent(options.ca);
  let keys: KeySet | null = null;
  let readings = 0;
  let jwksUri: string | null = null;
  let readMs = Number.NEGATIVE_INFINITY;
  let triedMs = Number.NEGATIVE_INFINITY;
  let failed = false;
  let reading: Promise<KeySet> | null = null;
  const coolsDown = () => clock.monotonicMs() - triedMs < (failed ? AWAY_COOL_DOWN_MS : COOL_DOWN_MS);
  const read = async (): Promise<KeySet> => {
    triedMs = clock.monotonicMs();
    failed = true;
    const get = getter(await agentNow());
    const found = await discover(issuer, get).catch((error: unknown) => ({ error }));
    // An issuer whose document alone is away still has its keys where they were.
    if (typeof found !== "string" && jwksUri === null) throw found.error;
    jwksUri = typeof found === "string" ? found : jwksUri;
    keys = createLocalJWKSet((await get(jwksUri ?? "")) as unknown as JwkSet);
    readings += 1;
    readMs = clock.monotonicMs();
    if (typeof found === "string") failed = false;
    else onError(found.error);
    return keys;
  };
  /** Joins a reading that is under way. Throws at once if the last one has just been. */
  const readOnce = (): Promise<KeySet> => {
    if (reading === null && coolsDown()) return Promise.reject(away(issuer));
    reading ??= read()
      .catch((error: unknown) => {
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
  const mayRead = () => reading !== null || !coolsDown();
  const keyOf: JWTVerifyGetKey = async (header, token) => {
    const set = await known();
    try {
      return await set(header, token);
    } catch (error) {
      if (!(error instanceof errors.JWKSNoMatchingKey)) throw error;
      // Others may have read newer ones meanwhile.
      if (keys !== null && keys !== set) return keys(header, token);
      if (!mayRead()) throw error;
      return (await readOnce())(header, token);
    }
  };
  const readAgain = async (after: number) => {
    if (readings > after) return true;
    if (!mayRead()) return false;
    await readOnce();
    return true;
  };
  return Object.assign(keyOf, { readings: () => readings, readAgain });
}

type JwkSet = Parameters<typeof createLocalJWKSet>[0];
type Get = (url: string) => Promise<Json>;

function getter(dispatcher: Agent): Get {
  return async (url) => {
    const response = await fetch(url, {
      dispatcher,
      signal: AbortSignal.timeout(ISSUER_TIMEOUT_MS),
      redirect: "error",
    });
    if (response.status === 200) return (await response.json()) as Json;
    await response.body?.cancel();
    throw new Error(`${url} answered with status ${response.status}`);
  };
}

/** Returns where the keys are. OpenID Connect Discovery 1.0, 4: the document must name the issuer that was asked. */
async function discover(issuer: string, get: Get): Promise<string> {
  const url = `${issuer.replace(/\/$/, "")}/.well-known/openid-configuration`;
  const document = await get(url);
  if (!isJsonObject(document) || document["issuer"] !== issuer) throw new Error(`${url} is not about issuer ${issuer}`);
  const jwksUri = URL.parse(stringAt(document, "jwks_uri") ?? "");
  if (jwksUri === null || (jwksUri.protocol !== "https:" && !issuer.startsWith("http:"))) {
    throw new Error(`${url} has no https URL in jwks_uri`);
  }
  return jwksUri.href;
}

function away(issuer: string): IssuerUnavailableError {
  return new IssuerUnavailableError(`the issuer ${issuer} is away, so its tokens cannot be verified; try again later`);
}
