/** Tokens of service accounts: which of them are shown to the cluster, and whom its answers name. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { NO_AUTHENTICATION, readAuthentication } from "../../../src/core/access/authentication-settings.ts";
import { readBearer } from "../../../src/core/access/bearer-token.ts";
import { type ReviewedToken, serviceAccountIdentity } from "../../../src/core/access/service-account.ts";

const settings = { ...NO_AUTHENTICATION, kubernetes: { kubeconfig: null, audience: "gangway" } };
const tokenOf = (claims: object) => {
  const part = (value: object) => Buffer.from(JSON.stringify(value)).toString("base64url");
  return `${part({ alg: "RS256" })}.${part(claims)}.c2ln`;
};
const fine = { iss: "https://kubernetes", sub: "system:serviceaccount:ml:bot", aud: ["gangway"], exp: 10 };

const shown: Record<string, { claims: object; kind: string }> = {
  "a token of a service account": { claims: fine, kind: "kubernetes" },
  "one audience as a text": { claims: { ...fine, aud: "gangway" }, kind: "kubernetes" },
  "another audience": { claims: { ...fine, aud: ["vault"] }, kind: "refused" },
  "no audience": { claims: { ...fine, aud: undefined }, kind: "refused" },
  "a person": { claims: { ...fine, sub: "ann" }, kind: "refused" },
  "a subject that is no text": { claims: { ...fine, sub: 1 }, kind: "refused" },
};
for (const [name, { claims, kind }] of Object.entries(shown)) {
  test(`a token that says of itself: ${name}`, () => {
    assert.equal(readBearer([`Bearer ${tokenOf(claims)}`], settings).kind, kind);
    assert.equal(readBearer([`Bearer ${tokenOf(claims)}`], NO_AUTHENTICATION).kind, "refused");
  });
}

const known = { kind: "known", username: fine.sub, groups: [], audiences: ["gangway"] } as const;
const reviews: Record<string, { review: ReviewedToken; is: string | RegExp }> = {
  "a service account": { review: known, is: "system:serviceaccount:ml:bot" },
  "an unknown token": { review: { kind: "unknown" }, is: /does not know the token/ },
  "a cluster that names no audience": { review: { ...known, audiences: [] }, is: /not for the audience gangway/ },
  "a person": { review: { ...known, username: "system:admin" }, is: /not of a service account/ },
  "a name with more parts": { review: { ...known, username: `${fine.sub}:x` }, is: /not of a service account/ },
};
for (const [name, { review, is }] of Object.entries(reviews)) {
  test(`the cluster answers: ${name}`, () => {
    const answer = serviceAccountIdentity(review, { audience: "gangway", issuer: "k", expiresAtMs: 10_000 });
    if (typeof is === "string") assert.equal(answer.kind === "identity" && answer.identity.subject, is);
    else assert.match(answer.kind === "refused" ? answer.why : "taken", is);
  });
}

test("of the cluster's groups only those of service accounts count", () => {
  const groups = ["system:serviceaccounts", "system:serviceaccounts:ml", "system:masters", "system:serviceaccountsx"];
  const answer = serviceAccountIdentity({ ...known, groups }, { audience: "gangway", issuer: "k", expiresAtMs: null });
  assert.deepEqual(answer.kind === "identity" && answer.identity.groups, groups.slice(0, 2));
});

test("settings of the cluster and of robots are read", () => {
  const read = (value: object) => readAuthentication(value as never);
  const outcome = read({ kubernetes: {}, robots: true });
  assert.ok(outcome.kind === "read");
  assert.deepEqual(outcome.settings.kubernetes, { kubeconfig: null, audience: "gangway" });
  assert.equal(outcome.settings.robots, true);
  assert.equal(read({ kubernetes: { audience: "" } }).kind, "refused");
  assert.equal(read({ kubernetes: { token: "x" } }).kind, "refused");
  assert.equal(read({ robots: "yes" }).kind, "refused");
});
