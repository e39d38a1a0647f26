/** Decides who calls: by the method that fits what the call shows, and never by another one. */
import { type AuthenticationSettings, hasMethod } from "../core/access/authentication-settings.ts";
import { readBearer } from "../core/access/bearer-token.ts";
import { certificateIdentity } from "../core/access/certificate-identity.ts";
import {
  ANONYMOUS,
  type Authenticate,
  type Authentication,
  type Credentials,
  refusal,
} from "../core/access/identity.ts";
import type { Clock } from "../runtime/clock.ts";
import { CheckedTokens } from "./checked-tokens.ts";
import type { VerifyToken } from "./oidc.ts";

export type AuthenticationPorts = {
  readonly clock: Pick<Clock, "nowMs" | "monotonicMs">;
  readonly verifyToken: VerifyToken;
};

/**
 * Without any method, callers without credentials are anonymous. `certificates`: clients may show certificates, which
 * is a method.
 */
export function createAuthenticate(
  { clock, verifyToken }: AuthenticationPorts,
  settings: AuthenticationSettings & { readonly certificates: boolean },
): Authenticate {
  const { issuers, certificateCommonName } = settings;
  const nobody: Authentication = hasMethod(settings)
    ? refusal("the call shows no credentials")
    : { kind: "identity", identity: ANONYMOUS };
  const checked = new CheckedTokens(clock);
  const judge = async ({ authorization, certificate }: Credentials): Promise<Authentication> => {
    const bearer = readBearer(authorization, issuers);
    if (bearer.kind === "refused") return refusal(bearer.why);
    if (bearer.kind === "oidc") return checked.check(bearer.token, () => verifyToken(bearer.token, bearer.issuer));
    if (certificate === null) return nobody;
    if ("invalid" in certificate) return refusal(`the client's certificate is not valid: ${certificate.invalid}`);
    return certificateIdentity(certificate, { commonName: certificateCommonName });
  };
  return async (credentials) => {
    const answer = await judge(credentials);
    if (answer.kind === "refused") return answer;
    const { expiresAtMs, method } = answer.identity;
    if (expiresAtMs === null || clock.nowMs() < expiresAtMs + TOLERANCE_MS) return answer;
    return refusal(method === "certificate" ? "the client's certificate has expired" : "the token has expired");
  };
}

/** How far the clock of an issuer may be from this one, as in verifying a token. */
const TOLERANCE_MS = 60_000;
