/** Reads the part of the authentication file that says how people log in with a browser. */
import type { Json } from "../../runtime/json.ts";
import { known, listOf, objectOf, textOf } from "../../runtime/read-members.ts";
import { SESSION_HOURS } from "./console-session.ts";
import { isSecureUrl } from "./secure-url.ts";

export type ConsoleSettings = {
  /** Where browsers reach the service: scheme, host and port. */
  readonly origin: string;
  /** One of the issuers whose tokens are taken. */
  readonly issuer: string;
  readonly clientId: string;
  /** A file. Null: the client is public, and has no secret. */
  readonly clientSecretFile: string | null;
  readonly scopes: readonly string[];
  /** How long a session lives at most. */
  readonly sessionHours: number;
};

type KnownIssuer = { readonly issuer: string; readonly audiences: readonly string[] };

/** With `offline_access`, most issuers give a token that renews the login. */
const SCOPES = ["openid", "offline_access"];
const SCOPE = /^[!#-[\]-~]{1,200}$/;
const SCOPES_MAX = 32;
/** A month: nobody should be known longer without a login. */
const SESSION_HOURS_MAX = 744;

/** Each error names a member and says what is allowed. `issuers`: those of the same file. */
export function readConsoleSettings(value: Json, issuers: readonly KnownIssuer[], errors: string[]): ConsoleSettings {
  const of = objectOf(value, "console", errors);
  known(of, "console.", ["url", "issuer", "clientId", "clientSecretFile", "scopes", "sessionHours"], errors);
  const text = (member: string) => textOf(of[member] ?? null, `console.${member}`, errors);
  const [url, issuer, clientId] = [text("url"), text("issuer"), text("clientId")];
  const origin = isSecureUrl(url) && URL.parse(url)?.pathname === "/" ? (URL.parse(url)?.origin ?? "") : "";
  if (origin === "") {
    errors.push("console.url must be an https URL without a path; http is allowed for a loopback address alone");
  }
  const trusted = issuers.find((one) => one.issuer === issuer);
  if (trusted === undefined) errors.push("console.issuer must be one of issuers");
  else if (!trusted.audiences.includes(clientId)) {
    errors.push("console.clientId must be one of the audiences of its issuer: ID tokens are for it");
  }
  return {
    origin,
    issuer,
    clientId,
    clientSecretFile: of["clientSecretFile"] === undefined ? null : text("clientSecretFile"),
    scopes: readScopes(of["scopes"] ?? SCOPES, errors),
    sessionHours: readHours(of["sessionHours"] ?? SESSION_HOURS, errors),
  };
}

function readScopes(value: Json, errors: string[]): readonly string[] {
  const scopes = listOf(value, "console.scopes", errors).map((one, at) => {
    const scope = textOf(one, `console.scopes[${at}]`, errors);
    if (scope !== "" && !SCOPE.test(scope)) {
      errors.push(`console.scopes[${at}] must have at most 200 printable characters, without blanks, " and \\`);
    }
    return scope;
  });
  if (scopes.length > SCOPES_MAX) errors.push(`console.scopes has more than ${SCOPES_MAX}`);
  if (!scopes.includes("openid")) errors.push("console.scopes must have openid");
  return scopes;
}

function readHours(value: Json, errors: string[]): number {
  if (typeof value === "number" && value > 0 && value <= SESSION_HOURS_MAX) return value;
  errors.push(`console.sessionHours must be a number above 0, and at most ${SESSION_HOURS_MAX}`);
  return SESSION_HOURS;
}
