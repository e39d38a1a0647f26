/** Service accounts of Kubernetes: what a cluster says of a token, and whom it names. */
import { type Authentication, identified, refusal } from "./identity.ts";

/** The answer of a cluster. `unknown`: the token is not of this cluster, or has expired. */
export type ReviewedToken =
  | { readonly kind: "unknown" }
  | {
      readonly kind: "known";
      readonly username: string;
      readonly groups: readonly string[];
      /** Those of the audiences that were asked for which the token has. */
      readonly audiences: readonly string[];
    };

const USERNAME = /^system:serviceaccount:[a-z0-9]([-a-z0-9]*[a-z0-9])?:[a-z0-9]([-.a-z0-9]*[a-z0-9])?$/;
const GROUPS = "system:serviceaccounts";

/** `expiresAtMs` and `issuer` are what the token says, which the cluster has verified. */
export function serviceAccountIdentity(
  review: ReviewedToken,
  token: { readonly audience: string; readonly issuer: string; readonly expiresAtMs: number | null },
): Authentication {
  if (review.kind === "unknown") return refusal("the cluster does not know the token, or it has expired");
  // A cluster that knows no audiences names none, and would take a token that was made for another service.
  if (!review.audiences.includes(token.audience)) return refusal(`the token is not for the audience ${token.audience}`);
  if (!USERNAME.test(review.username)) return refusal("the token is not of a service account");
  return identified({
    subject: review.username,
    groups: review.groups.filter((group) => group === GROUPS || group.startsWith(`${GROUPS}:`)),
    method: "kubernetes",
    issuer: token.issuer,
    expiresAtMs: token.expiresAtMs,
  });
}
