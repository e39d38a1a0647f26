/** Verifies the tokens of issuers of OpenID Connect. */
import { errors, jwtVerify } from "jose";
import type { IssuerSettings } from "../core/access/authentication-settings.ts";
import { claimedIdentity } from "../core/access/bearer-token.ts";
import { type Authentication, refusal } from "../core/access/identity.ts";
import type { Clock } from "../runtime/clock.ts";
import type { JsonObject } from "../runtime/json.ts";
import type { IssuerKeys } from "./issuer-keys.ts";

/** Signatures of key pairs alone: whoever verifies a token cannot make one. */
const ALGORITHMS = ["RS256", "ES256", "EdDSA"];
/** How far the issuer's clock may be from this one. */
const CLOCK_TOLERANCE_SECONDS = 60;

export type VerifyToken = (token: string, issuer: IssuerSettings) => Promise<Authentication>;

/** Never takes a key from the token itself, nor its address: keys come from `keysOf` alone. */
export function oidcVerifier(keysOf: (issuer: IssuerSettings) => IssuerKeys, clock: Pick<Clock, "nowMs">): VerifyToken {
  return async (token, settings) => {
    const keys = keysOf(settings);
    const verify = () =>
      jwtVerify(token, keys, {
        issuer: settings.issuer,
        audience: [...settings.audiences],
        algorithms: ALGORITHMS,
        clockTolerance: CLOCK_TOLERANCE_SECONDS,
        requiredClaims: ["exp", settings.subjectClaim],
        currentDate: new Date(clock.nowMs()),
      });
    const before = keys.readings();
    try {
      const { payload } = await verify().catch(async (error: unknown) => {
        if (!(error instanceof errors.JWSSignatureVerificationFailed) || !(await keys.readAgain(before))) throw error;
        return verify();
      });
      return claimedIdentity(payload as JsonObject, settings);
    } catch (error) {
      if (error instanceof errors.JOSEError) return refusal(whyRefused(error));
      throw error;
    }
  };
}

/** Says what is wrong, and nothing of the token. */
function whyRefused(error: InstanceType<typeof errors.JOSEError>): string {
  if (error instanceof errors.JWTExpired) return "the token has expired";
  if (error instanceof errors.JWTClaimValidationFailed) {
    return `the claim ${error.claim} of the token is missing, or not what this service takes`;
  }
  if (error instanceof errors.JOSEAlgNotAllowed) return `the token is not signed with ${ALGORITHMS.join(", ")}`;
  if (error instanceof errors.JWSSignatureVerificationFailed || error instanceof errors.JWKSNoMatchingKey) {
    return "the token is not signed by a key of its issuer";
  }
  return "the token is not valid";
}
