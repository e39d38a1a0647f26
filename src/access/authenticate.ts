/** Decides who calls: by the method that fits what the call shows, and never by another one. */
import { type AuthenticationSettings, hasMethod } from "../core/access/authentication-settings.ts";
import { type Bearer, readBearer } from "../core/access/bearer-token.ts";
import { certificateIdentity } from "../core/access/certificate-identity.ts";
import {
  ANONYMOUS,
  type Authenticate,
  type Authentication,
  type Credentials,
  type PeerCertificate,
  refusal,
} from "../core/access/identity.ts";
import { type ReviewedToken, serviceAccountIdentity } from "../core/access/service-account.ts";
import type { Clock } from "../runtime/clock.ts";
import { getOrCreate } from "../runtime/get-or-create.ts";
import { type Soon, whenThere } from "../runtime/soon.ts";
import { CheckedTokens } from "./checked-tokens.ts";
import type { VerifyToken } from "./oidc.ts";

export type AuthenticationPorts = {
  readonly clock: Pick<Clock, "nowMs" | "monotonicMs">;
  readonly verifyToken: VerifyToken;
  /** Who shows the token of a robot. */
  readonly verifyRobot: (token: string) => Promise<Authentication>;
  /** Asks the cluster whose token it is. */
  readonly reviewToken: (token: string) => Promise<ReviewedToken>;
};

/**
 * Without any method, callers without credentials are anonymous. `certificates`: clients may show certificates, which
 * is a method.
 */
export function createAuthenticate(
  { clock, verifyToken, verifyRobot, reviewToken }: AuthenticationPorts,
  settings: AuthenticationSettings & { readonly certificates: boolean },
): Authenticate {
  const { certificateCommonName } = settings;
  const nobody: Authentication = hasMethod(settings)
    ? refusal("the call shows no credentials")
    : { kind: "identity", identity: ANONYMOUS };
  const checked = new CheckedTokens<Authentication>({ clock, max: TOKENS_MAX, isGood });
  const verify = async (bearer: Verified): Promise<Authentication> => {
    switch (bearer.kind) {
      case "oidc":
        return verifyToken(bearer.token, bearer.issuer);
      case "robot":
        return verifyRobot(bearer.token);
      case "kubernetes":
        return serviceAccountIdentity(await reviewToken(bearer.token), bearer);
    }
  };
  const shown = new WeakMap<PeerCertificate, Authentication>();
  const named = (certificate: PeerCertificate) => {
    const known = getOrCreate(shown, certificate, () =>
      certificateIdentity(certificate, { commonName: certificateCommonName }),
    );
    return known;
  };
  const judge = ({ authorization, certificate }: Credentials): Soon<Authentication> => {
    const known = checked.find(authorization);
    if (known !== undefined) return known;
    const bearer = readBearer(authorization, settings);
    if (bearer.kind === "refused") return refusal(bearer.why);
    if (bearer.kind !== "none") return checked.check(authorization, KEPT_MS[bearer.kind], () => verify(bearer));
    if (certificate === null) return nobody;
    if ("invalid" in certificate) return refusal(`the client's certificate is not valid: ${certificate.invalid}`);
    return named(certificate);
  };
  const unexpired = (answer: Authentication): Authentication => {
    if (answer.kind === "refused") return answer;
    const { expiresAtMs, method } = answer.identity;
    const toleranceMs = method === "oidc" ? TOLERANCE_MS : 0;
    if (expiresAtMs === null || clock.nowMs() < expiresAtMs + toleranceMs) return answer;
    return refusal(method === "certificate" ? "the client's certificate has expired" : "the token has expired");
  };
  return (credentials) => whenThere(judge(credentials), unexpired);
}

/** Each holds some hundred bytes. */
const TOKENS_MAX = 10_000;

function isGood(answer: Authentication): boolean {
  return answer.kind === "identity";
}

type Verified = Exclude<Bearer, { kind: "none" | "refused" }>;

/** A token that was withdrawn is taken at most this much longer. */
const KEPT_MS: Readonly<Record<Verified["kind"], number>> = { oidc: 60_000, kubernetes: 60_000, robot: 5_000 };
/** How far the clock of an issuer may be from this one, as in verifying a token. */
const TOLERANCE_MS = 60_000;
