/** Logins of browsers: what is kept of them, and how many there may be. */
import type { JsonObject } from "../../runtime/json.ts";

/** What is kept of a session. The secret of its cookie is not. Times are of the machine's clock. */
export type SessionRecord = {
  /** SHA-256 of the cookie's secret, in hexadecimal digits. */
  readonly idHash: string;
  readonly subject: string;
  /** Encrypted. */
  readonly tokens: JsonObject;
  readonly expiresAtMs: number;
  /** When its tokens are renewed next. Null: never. */
  readonly renewAtMs: number | null;
};

/** A session that one process renews. `claimMs`: until when nobody else does, by the database's clock. */
export type ClaimedSession = SessionRecord & { readonly claimMs: number };

/** The tokens of a session. */
export type SessionTokens = {
  /** What its calls show. */
  readonly token: string;
  readonly renewal: LoginRenewal | null;
};

/** What renews the tokens of a session. */
export type LoginRenewal = {
  readonly issuer: string;
  readonly refreshToken: string;
};

/** `full`: there are as many sessions as there may be. */
export type NewSessionOutcome = "made" | "full";

/**
 * The secret of a new session is known at this moment alone. `noKey`: there is no key to encrypt its tokens with.
 * `expired`: its token still counts for calls, because clocks differ, but for no session.
 */
export type BegunSession =
  | { readonly kind: "begun"; readonly secret: string; readonly expiresAtMs: number; readonly lifeMs: number }
  | { readonly kind: "full" | "noKey" | "expired" };

/** How browsers can log in. */
export type OfferedLogins = {
  /** With a token that its caller has. */
  readonly token: boolean;
  /** The issuer at which people log in. Null: there is none. */
  readonly issuer: string | null;
  /** False: there is no key to encrypt sessions with, so that nobody can log in. */
  readonly hasKey: boolean;
  /** True: browsers reach the service by https, perhaps through a proxy. */
  readonly isSecure: boolean;
};

/**
 * `cookie`: what the browser keeps until it comes back from the issuer. `off`: nobody logs in at an issuer.
 * `elsewhere`: the issuer would send the browser back to another host, which does not get the cookie.
 */
export type StartedLogin =
  | { readonly kind: "elsewhere"; readonly origin: string }
  | { readonly kind: "started"; readonly url: string; readonly cookie: string }
  | { readonly kind: "off" | "noKey" | "wrongTarget" };

/** A browser that comes back from the issuer. */
export type ReturnedLogin = {
  /** The query with which it came. */
  readonly search: string;
  /** What it was given. Null: it has none. */
  readonly cookie: string | null;
  /** From where it came. Hosts take turns at the issuer. */
  readonly host: string;
  /** Aborted once the browser has left. */
  readonly left: AbortSignal;
};

/**
 * `why` shows nothing of a token. `left`: the browser left before its turn. `otherLogin`: this browser has no such
 * login under way; the issuer was not asked.
 */
export type FinishedLogin =
  | { readonly kind: "finished"; readonly tokens: SessionTokens; readonly target: string }
  | { readonly kind: "off" | "left" }
  | { readonly kind: "refused" | "otherLogin"; readonly why: string };

/** How long a person has at the issuer. */
export const LOGIN_MS = 600_000;

/** A person has a few browsers; the oldest session goes. */
export const SESSIONS_OF_SUBJECT_MAX = 20;
/** As many as there may be robots. */
export const SESSIONS_MAX = 10_000;
/** 256 bits in base64url. */
export const SESSION_SECRET = /^[\w-]{43}$/;
/** Without settings of a console. */
export const SESSION_HOURS = 12;

/** A token is renewed this long before it expires. */
const RENEW_BEFORE_MS = 60_000;

/** An issuer whose tokens live for seconds, or whose clock is behind, is not asked without a pause. */
const RENEW_AFTER_MS_MIN = 5_000;

/**
 * When a token is renewed that expires then: a minute before, or after half of a shorter life, but in five seconds at
 * the earliest. In whole milliseconds.
 */
export function renewalMs(expiresAtMs: number, nowMs: number): number {
  const leftMs = Math.max(expiresAtMs - nowMs, 0);
  return Math.floor(nowMs + Math.max(leftMs - RENEW_BEFORE_MS, leftMs / 2, RENEW_AFTER_MS_MIN));
}

/** More than an address of the console has. The cookie of a login stays below 4 KiB with it: none of it is escaped. */
const TARGET_CHARS_MAX = 1_024;

/**
 * True if a browser may be sent to this target after its login: a path of this service, with one slash at its
 * beginning. A second slash, or a backslash that browsers take for one, would begin the name of another host. Browsers
 * write a quotation mark as %22.
 */
export function isOwnTarget(to: string): boolean {
  return to.length <= TARGET_CHARS_MAX && /^\/[!#-[\]-~]*$/.test(to) && !to.startsWith("//");
}
