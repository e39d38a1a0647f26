/** Logs people in with a browser: by the authorization code of OpenID Connect, with PKCE. */
import {
  type FinishedLogin,
  isOwnTarget,
  LOGIN_MS,
  type ReturnedLogin,
  type SessionTokens,
  type StartedLogin,
} from "../core/access/console-session.ts";
import type { ConsoleSettings } from "../core/access/console-settings.ts";
import type { CredentialKeys } from "../core/admin/credential-keys.ts";
import type { Clock } from "../runtime/clock.ts";
import { isJsonObject, type Json, type JsonObject, stringAt } from "../runtime/json.ts";
import { Semaphore } from "../runtime/semaphore.ts";
import { IssuerUnavailableError } from "../runtime/unavailable-error.ts";
import { openValue, sealValue } from "./sealed-values.ts";

/** What ties an answer of the issuer to the browser that asked for it. Each is a random text. */
type LoginChecks = { readonly state: string; readonly nonce: string; readonly verifier: string };

export type ProviderTokens =
  | { readonly kind: "tokens"; readonly tokens: SessionTokens }
  /** `why` shows nothing of a token. */
  | { readonly kind: "refused"; readonly why: string };

/** An issuer that people log in at. Its functions throw an `IssuerUnavailableError` if it cannot be asked. */
export type LoginProvider = {
  /** Where a browser is sent to log in. */
  readonly loginUrl: (checks: LoginChecks) => Promise<string>;
  /** `search`: the query with which the browser came back. */
  readonly tokensFor: (search: string, checks: LoginChecks) => Promise<ProviderTokens>;
  readonly renew: (refreshToken: string) => Promise<ProviderTokens>;
  /** Does nothing if the issuer does not take that. */
  readonly revoke: (refreshToken: string) => Promise<void>;
};

export type IssuerLoginPorts = {
  readonly clock: Pick<Clock, "nowMs">;
  readonly keys: () => CredentialKeys;
  readonly randomBytes: (count: number) => Uint8Array;
  /** Null: nobody logs in at an issuer. */
  readonly settings: () => ConsoleSettings | null;
  readonly provider: (settings: ConsoleSettings) => Promise<LoginProvider>;
};

export type IssuerLogins = {
  /**
   * `target`: the path to which the browser goes once it has logged in. `host`: where the browser says that it is.
   * Null: that does not matter.
   */
  readonly start: (target: string, host: string | null) => Promise<StartedLogin>;
  /** Throws an `IssuerUnavailableError` if the issuer is away, or if too many logins wait for it. */
  readonly finish: (back: ReturnedLogin) => Promise<FinishedLogin>;
};

/** More than the answer of any issuer has. */
const SEARCH_CHARS_MAX = 8_192;
const CHECK_BYTES = 32;
/** Anybody may come with a code. An issuer gets no more codes at a time. */
const AT_A_TIME = 8;
/** Beyond this, the host with the most waiting logins loses its newest one. */
const WAITING_MAX = 64;
const CROWDED = "too many logins wait for the issuer; begin again later";

const USE = { use: "login of a browser", of: "" } as const;

export function createLogin({ clock, keys, randomBytes, settings, provider }: IssuerLoginPorts): IssuerLogins {
  const error = () => new IssuerUnavailableError(CROWDED);
  const turns = new Semaphore(AT_A_TIME, undefined, { max: WAITING_MAX, error });
  const random = () => Buffer.from(randomBytes(CHECK_BYTES)).toString("base64url");
  return {
    async start(target, host) {
      const at = settings();
      if (at === null) return { kind: "off" };
      if (!isOwnTarget(target)) return { kind: "wrongTarget" };
      if (host !== null && !isHostOf(at.origin, host)) return { kind: "elsewhere", origin: at.origin };
      const checks = { state: random(), nonce: random(), verifier: random() };
      const sealed = sealValue({ ...checks, target, untilMs: clock.nowMs() + LOGIN_MS }, USE, keys());
      if (sealed === null) return { kind: "noKey" };
      // The issuer's document is known, or read once for all: this needs no turn.
      const url = await (await provider(at)).loginUrl(checks);
      return { kind: "started", url, cookie: Buffer.from(JSON.stringify(sealed)).toString("base64url") };
    },
    async finish({ search, cookie, host, left }) {
      const at = settings();
      if (at === null) return { kind: "off" };
      const kept = cookie === null ? null : openLogin(cookie, keys());
      if (kept === null) return { kind: "otherLogin", why: NO_LOGIN };
      const why = whyWrong(search, kept, clock.nowMs());
      if (why !== null) return { kind: "otherLogin", why };
      const { target } = kept;
      return turns.run(async () => {
        if (left.aborted) return { kind: "left" };
        const answer = await (await provider(at)).tokensFor(search, kept);
        return answer.kind === "refused" ? answer : { kind: "finished", tokens: answer.tokens, target };
      }, host);
    },
  };
}

/** The port of the scheme may be left out. */
function isHostOf(origin: string, host: string): boolean {
  const own = new URL(origin);
  return URL.parse(`${own.protocol}//${host}`)?.host === own.host;
}

const NO_LOGIN = "this browser has begun no login in the last ten minutes";

/** Null: the browser has come back from the login that it began. */
function whyWrong(search: string, { state, untilMs }: OpenedLogin, nowMs: number): string | null {
  if (untilMs <= nowMs) return "the login took longer than ten minutes";
  if (search.length > SEARCH_CHARS_MAX) return "the answer of the issuer is too long";
  return new URLSearchParams(search).get("state") === state ? null : "the answer belongs to another login";
}

type OpenedLogin = LoginChecks & { readonly target: string; readonly untilMs: number };

function openLogin(cookie: string, keys: CredentialKeys): OpenedLogin | null {
  const sealed = jsonOf(cookie);
  const opened = sealed === null ? null : openValue(sealed, USE, keys);
  if (opened === null) return null;
  const text = (member: string) => stringAt(opened, member) ?? "";
  const checks = { state: text("state"), nonce: text("nonce"), verifier: text("verifier") };
  return { ...checks, target: text("target"), untilMs: Number(opened["untilMs"]) };
}

function jsonOf(cookie: string): JsonObject | null {
  try {
    const json = JSON.parse(Buffer.from(cookie, "base64url").toString("utf8")) as Json;
    return isJsonObject(json) ? json : null;
  } catch {
    return null;
  }
}
