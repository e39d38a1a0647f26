/** Finds the method that fits a bearer token, before anything of the token is verified. */

import { isJsonObject, type Json, type JsonObject } from "../../runtime/json.ts";
import type { AuthenticationSettings, IssuerSettings } from "./authentication-settings.ts";
import { type Authentication, type Identity, identified, refusal } from "./identity.ts";
import { ROBOT_PREFIX, ROBOT_TOKEN } from "./robot.ts";

export type Bearer =
  /** The call shows no token. */
  | { readonly kind: "none" }
  | { readonly kind: "refused"; readonly why: string }
  | { readonly kind: "oidc"; readonly token: string; readonly issuer: IssuerSettings }
  | { readonly kind: "robot"; readonly token: string }
  | {
      readonly kind: "kubernetes";
      readonly token: string;
      readonly audience: string;
      /** What the token says of itself. */
      readonly issuer: string;
      readonly expiresAtMs: number | null;
    };

type BearerSettings = Pick<AuthenticationSettings, "issuers" | "kubernetes" | "robots">;

/** More than the token of any issuer: most servers take no longer header. */
const TOKEN_CHARS_MAX = 16_384;
/** The end of the year 9999, after which no time can be shown. */
const SHOWN_MS_MAX = 253_402_300_799_000;
/** Three parts in base64url. A part that is encrypted, or a token within a token, has other forms. */
const JWT = /^[\w-]+\.([\w-]+)\.[\w-]+$/;

/** Reads the header. A call never has two credentials, and a credential that no method fits is refused. */
export function readBearer(authorization: readonly string[], settings: BearerSettings): Bearer {
  const [header, second] = authorization;
  if (header === undefined) return { kind: "none" };
  if (second !== undefined) return refused("the call has several headers `authorization`");
  const token = /^bearer +([^\s,]+)$/i.exec(header.slice(0, TOKEN_CHARS_MAX + 16))?.[1];
  if (token === undefined || token.length > TOKEN_CHARS_MAX) {
    return refused(`the header \`authorization\` must be \`Bearer TOKEN\` with at most ${TOKEN_CHARS_MAX} characters`);
  }
  if (token.startsWith(ROBOT_PREFIX)) return settings.robots ? robotToken(token) : refused(NO_METHOD);
  const claims = unverifiedClaims(token);
  if (claims === null) return refused(NO_METHOD);
  const issuer = settings.issuers.find((one) => one.issuer === claims["iss"]);
  if (issuer !== undefined) return { kind: "oidc", token, issuer };
  return (
    serviceAccountToken(token, claims, settings) ?? refused("the token is of an issuer that this service does not know")
  );
}

const NO_METHOD = "the token has a form that no method of this service takes";

function robotToken(token: string): Bearer {
  return ROBOT_TOKEN.test(token) ? { kind: "robot", token } : refused("the token is none of a robot");
}

/** A token goes to the cluster only if it says that it is one of the cluster's, and meant for this service. */
function serviceAccountToken(token: string, claims: JsonObject, { kubernetes }: BearerSettings): Bearer | null {
  const { sub, iss, exp, aud } = claims;
  if (kubernetes === null || typeof sub !== "string" || !sub.startsWith(SERVICE_ACCOUNT)) return null;
  const { audience } = kubernetes;
  if (![aud].flat().includes(audience)) return refused(`the token is not for the audience ${audience}`);
  const expiresAtMs = typeof exp === "number" ? Math.min(exp * 1000, SHOWN_MS_MAX) : null;
  return { kind: "kubernetes", token, audience, issuer: typeof iss === "string" ? iss : "", expiresAtMs };
}

const SERVICE_ACCOUNT = "system:serviceaccount:";

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
