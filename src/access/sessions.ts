/** Sessions of browsers. A cookie has a secret of its own; the tokens of the session stay with the service. */
import { createHash } from "node:crypto";
import {
  type BegunSession,
  renewalMs,
  SESSION_SECRET,
  type SessionRecord,
  type SessionTokens,
} from "../core/access/console-session.ts";
import { type Authenticate, type Identity, refusal } from "../core/access/identity.ts";
import type { CredentialKeys } from "../core/admin/credential-keys.ts";
import type { Clock } from "../runtime/clock.ts";
import { isJsonObject, type JsonObject, stringAt } from "../runtime/json.ts";
import { whenThere } from "../runtime/soon.ts";
import { CheckedTokens } from "./checked-tokens.ts";
import type { SessionStore } from "./ports.ts";
import { openValue, sealValue } from "./sealed-values.ts";

export type SessionPorts = {
  /** The machine's, by which tokens expire. */
  readonly clock: Pick<Clock, "nowMs" | "monotonicMs">;
  readonly store: SessionStore;
  readonly keys: () => CredentialKeys;
  readonly randomBytes: (count: number) => Uint8Array;
  /** Judges calls that show tokens and certificates. */
  readonly authenticate: Authenticate;
};

export type Sessions = {
  /** Judges also calls that show a session: by the token that the session has now. */
  readonly authenticate: Authenticate;
  /** Begins a session of a caller whose token was verified. It lives for `lifeMs` at most. */
  readonly begin: (identity: Identity, tokens: SessionTokens, lifeMs: number) => Promise<BegunSession>;
  /** Returns the session that has ended. Null: there was none. */
  readonly end: (secret: string) => Promise<EndedSession | null>;
};

/** `tokens` null: they cannot be decrypted any more. */
export type EndedSession = { readonly subject: string; readonly tokens: SessionTokens | null };

const SECRET_BYTES = 32;
/** A session that was ended by another process is taken at most this much longer, as a robot that was revoked. */
const KEPT_MS = 5_000;
/** Each holds a token of at most 16 KiB. */
const KEPT_MAX = 1_000;
const ENDED = refusal("the session has ended; log in again");

export function createSessions({ clock, store, keys, randomBytes, authenticate }: SessionPorts): Sessions {
  const known = new CheckedTokens<string | null>({ clock, max: KEPT_MAX, isGood: (token) => token !== null });
  const tokenOf = async (secret: string) => {
    const session = SESSION_SECRET.test(secret) ? await store.find(hashOf(secret), clock.nowMs()) : null;
    return session === null ? null : (openTokens(session, keys())?.token ?? null);
  };
  const judge = (token: string | null) =>
    token === null ? ENDED : authenticate({ authorization: [`Bearer ${token}`], certificate: null });
  return {
    authenticate: (credentials) => {
      const { authorization, session } = credentials;
      if (session === undefined || authorization.length > 0) return authenticate(credentials);
      return whenThere(known.find([session]) ?? known.check([session], KEPT_MS, () => tokenOf(session)), judge);
    },
    async begin(identity, tokens, lifeMs) {
      const secret = Buffer.from(randomBytes(SECRET_BYTES)).toString("base64url");
      const idHash = hashOf(secret);
      const sealed = sealTokens(tokens, idHash, keys());
      if (sealed === null) return { kind: "noKey" };
      const nowMs = clock.nowMs();
      const expiresAtMs = sessionEndMs(identity, tokens, nowMs + lifeMs);
      if (expiresAtMs <= nowMs) return { kind: "expired" };
      const session = { idHash, subject: identity.subject, tokens: sealed, expiresAtMs };
      const renewAtMs = renewAt(identity, tokens, nowMs);
      const outcome = await store.make({ ...session, renewAtMs }, nowMs);
      if (outcome === "full") return { kind: "full" };
      return { kind: "begun", secret, expiresAtMs, lifeMs: expiresAtMs - nowMs };
    },
    async end(secret) {
      if (!SESSION_SECRET.test(secret)) return null;
      const session = await store.delete(hashOf(secret));
      known.forget([secret]);
      return session === null ? null : { subject: session.subject, tokens: openTokens(session, keys()) };
    },
  };
}

/** A session whose token nothing renews ends with its token. In whole milliseconds: issuers may give fractions. */
export function sessionEndMs({ expiresAtMs }: Identity, { renewal }: SessionTokens, latestMs: number): number {
  return Math.floor(renewal !== null || expiresAtMs === null ? latestMs : Math.min(expiresAtMs, latestMs));
}

/** When the tokens are renewed. Null: never. */
export function renewAt({ expiresAtMs }: Identity, { renewal }: SessionTokens, nowMs: number): number | null {
  return renewal === null || expiresAtMs === null ? null : renewalMs(expiresAtMs, nowMs);
}

/** Null: there is no key to encrypt with. */
export function sealTokens({ token, renewal }: SessionTokens, idHash: string, keys: CredentialKeys): JsonObject | null {
  return sealValue({ token, renewal }, sessionUse(idHash), keys);
}

/** Null: they cannot be decrypted any more. */
export function openTokens({ idHash, tokens }: SessionRecord, keys: CredentialKeys): SessionTokens | null {
  const opened = openValue(tokens, sessionUse(idHash), keys);
  const token = opened === null ? undefined : stringAt(opened, "token");
  if (opened === null || token === undefined) return null;
  const { renewal } = opened;
  if (!isJsonObject(renewal ?? null)) return { token, renewal: null };
  const { issuer, refreshToken } = renewal as JsonObject;
  return { token, renewal: { issuer: String(issuer), refreshToken: String(refreshToken) } };
}

/** The tokens of one session are of no use in the row of another one. */
function sessionUse(idHash: string) {
  return { use: "session of a browser", of: idHash } as const;
}

/** A secret of 256 random bits needs no slow hash. */
function hashOf(secret: string): string {
  return createHash("sha256").update(secret).digest("hex");
}
