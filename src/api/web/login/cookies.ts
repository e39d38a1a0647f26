/** The cookies of browsers: one for a session, and one for a login that is under way. */
import { LOGIN_MS } from "../../../core/access/console-session.ts";
import { headerOf } from "../call-metadata.ts";
import type { WebRequest } from "../read-request.ts";

export type CookieUse = "session" | "login";

const NAMES: Readonly<Record<CookieUse, string>> = { session: "gangway", login: "gangway-login" };

/**
 * With https, `__Host-` keeps others from setting the cookie: pages of the same domain, and any page that was not
 * loaded by https. Browsers take such a name with https alone.
 */
function nameOf(use: CookieUse, isSecure: boolean): string {
  return isSecure ? `__Host-${NAMES[use]}` : NAMES[use];
}

/** The value that the browser shows. Null: it shows none. */
export function readCookie(request: WebRequest, use: CookieUse, isSecure: boolean): string | null {
  const start = `${nameOf(use, isSecure)}=`;
  const pairs = (headerOf(request, "cookie") ?? "").split(";").map((pair) => pair.trim());
  return pairs.find((pair) => pair.startsWith(start))?.slice(start.length) ?? null;
}

type NewCookie = { readonly use: CookieUse; readonly value: string; readonly lifeMs: number };

/** The header that gives a cookie to the browser. No script of a page can read it. */
function setCookie({ use, value, lifeMs }: NewCookie, isSecure: boolean): string {
  const parts = [
    `${nameOf(use, isSecure)}=${value}`,
    "Path=/",
    `Max-Age=${Math.floor(lifeMs / 1000)}`,
    "HttpOnly",
    // A link to the console works at once; requests of other sites that change something do not get the cookie.
    "SameSite=Lax",
    ...(isSecure ? ["Secure"] : []),
  ];
  return parts.join("; ");
}

export function sessionCookie(secret: string, lifeMs: number, isSecure: boolean): string {
  return setCookie({ use: "session", value: secret, lifeMs }, isSecure);
}

export function loginCookie(value: string, isSecure: boolean): string {
  return setCookie({ use: "login", value, lifeMs: LOGIN_MS }, isSecure);
}

export function noCookie(use: CookieUse, isSecure: boolean): string {
  return setCookie({ use, value: "", lifeMs: 0 }, isSecure);
}
