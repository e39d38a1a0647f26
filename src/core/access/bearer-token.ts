/** Finds the method that fits a bearer token, before anything of the token is verified. */

import { isJsonObject, type Json, type JsonObject } from "../../runtime/json.ts";
import type { IssuerSettings } from "./authentication-settings.ts";
import { type Authentication, type Identity, identified, refusal } from "./identity.ts";

export type Bearer =
  /** The call shows no token. */
  | { readonly kind: "none" }
  | { readonly kind: "refused"; readonly why: string }
  | { readonly kind: "oidc"; readonly token: string; readonly issuer: IssuerSettings };

/** More than the token of any issuer: most servers take no longer header. */
const TOKEN_CHARS_MAX = 16_384;
/** The end of the year 9999, after which no time can be shown. */
const SHOWN_MS_MAX = 253_402_300_799_000;
/** Three parts in base64url. A part that is encrypted, or a token within a token, has other forms. */
const JWT = /^[\w-]+\.([\w-]+)\.[\w-]+$/;

/** Reads the header. A call never has two credentials, and a credential that no method fits is refused. */
export function readBearer(authorization: readonly string[], issuers: readonly IssuerSettings[]): Bearer {
  const [header, second] = authorization;
  if (header === undefined) return { kind: "none" };
  if (second !== undefined) return refused("the call has several headers `authorization`");
  const token = /^bearer +([^\s,]+)$/i.exec(header.slice(0, TOKEN_CHARS_MAX + 16))?.[1];
  if (token === undefined || token.length > TOKEN_CHARS_MAX) {
    return refused(`the header \`authorization\` must be \`Bearer TOKEN\` with at most ${TOKEN_CHARS_MAX} characters`);
  }
  const claims = unverifiedClaims(token);
  if (claims === null) return refused("the token has a form that no method of this service takes");
  const issuer = issuers.find((one) => one.issuer === claims["iss"]);
  if (issuer === undefined) return refused("the token is of an issuer that this service does not know");
  return { kind: "oidc", token, issuer };
}

function refused(why: string): Bearer {
  return { kind: "refused", why };
}

/** What a token says of itself. It only leads to whoever verifies it. */
function unverifiedClaims(token: string): JsonObject | null {
  const payload = JWT.exec(token)?.[1];
  if (payload === undefined) return null;
  try {
    const claims = JSON.parse(Buffer.from(payload, "base64url").toString("utf8")) as Json;
    return isJsonObject(claims) ? claims : null;
  } catch {
    return null;
  }
}

/** The identity of claims that were verified. */
export function claimedIdentity(claims: JsonObject, settings: IssuerSettings): Authentication {
  const { issuer, subjectClaim, subjectPrefix, groupsClaim, groupsPrefix } = settings;
  const subject = claims[subjectClaim];
  const expiresAt = claims["exp"];
  if (typeof subject !== "string" || subject === "") return refusal(`has no claim ${subjectClaim} with a text`);
  if (typeof expiresAt !== "number") return refusal("has no claim exp");
  const groups = groupsOf(groupsClaim === null ? null : (claims[groupsClaim] ?? null));
  if (groups === null) return refusal(`has a claim ${groupsClaim} that is no list of texts`);
  const identity: Identity = {
    subject: subjectPrefix + subject,
    groups: groups.map((name) => groupsPrefix + name),
    method: "oidc",
    issuer,
    expiresAtMs: Math.min(expiresAt * 1000, SHOWN_MS_MAX),
  };
  return identified(identity);
}

/** A single group may be a text by itself. */
function groupsOf(claim: Json): readonly string[] | null {
  if (claim === null) return [];
  const list = Array.isArray(claim) ? claim : [claim];
  return list.every((one) => typeof one === "string") ? list : null;
}
