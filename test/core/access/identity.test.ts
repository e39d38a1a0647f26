/** Names of callers: what certificates give, what the settings refuse, and that no method can imitate another. */
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { readAuthentication } from "../../../src/core/access/authentication-settings.ts";
import { claimedIdentity } from "../../../src/core/access/bearer-token.ts";
import { certificateIdentity } from "../../../src/core/access/certificate-identity.ts";
import type { PeerCertificate } from "../../../src/core/access/identity.ts";
import type { Json } from "../../../src/runtime/json.ts";

const NOTHING: PeerCertificate = { uris: [], dnsNames: [], commonName: null, organizations: [], expiresAtMs: 1 };

const certificates: Record<string, { shown: Partial<PeerCertificate>; commonName?: boolean; is: string | RegExp }> = {
  "a SPIFFE URI": { shown: { uris: ["spiffe://a.example/ns/x/sa/y"] }, is: "spiffe://a.example/ns/x/sa/y" },
  "a SPIFFE URI before a DNS name": { shown: { uris: ["spiffe://a/b"], dnsNames: ["c"] }, is: "spiffe://a/b" },
  "two URIs, one of SPIFFE": { shown: { uris: ["https://a", "spiffe://a/b"], dnsNames: ["c"] }, is: /several URIs/ },
  "a SPIFFE URI in capitals": { shown: { uris: ["SPIFFE://a/b"], dnsNames: ["c"] }, is: /wrong one/ },
  "a URI of something else": { shown: { uris: ["https://a"], dnsNames: ["c"] }, is: "dns:c" },
  "DNS names": { shown: { dnsNames: ["Robot.Example", "other"] }, is: "dns:robot.example" },
  "a common name that does not count": { shown: { commonName: "root" }, is: /without a SPIFFE URI/ },
  "a common name that counts": { shown: { commonName: "ann" }, commonName: true, is: "cn:ann" },
  "a DNS name before the common name": { shown: { commonName: "ann", dnsNames: ["c"] }, commonName: true, is: "dns:c" },
  nothing: { shown: {}, commonName: true, is: /without a SPIFFE URI/ },
  "a line break": { shown: { commonName: "a\nb" }, commonName: true, is: /printable/ },
};
for (const [name, { shown, commonName = false, is }] of Object.entries(certificates)) {
  test(`a certificate with ${name}`, () => {
    const answer = certificateIdentity({ ...NOTHING, ...shown }, { commonName });
    if (typeof is === "string") assert.equal(answer.kind === "identity" && answer.identity.subject, is);
    else assert.match(answer.kind === "refused" ? answer.why : "taken", is);
  });
}

test("organizations are groups, each once", () => {
  const answer = certificateIdentity(
    { ...NOTHING, dnsNames: ["a"], organizations: ["ml", "ml", "ops"] },
    { commonName: false },
  );
  assert.deepEqual(answer.kind === "identity" && answer.identity.groups, ["org:ml", "org:ops"]);
});

const fine = { issuer: "https://a.example", audiences: ["gangway"] };
const settings: Record<string, { of: Json; is: RegExp | "read" }> = {
  "an issuer": { of: { issuers: [fine] }, is: "read" },
  "two issuers": { of: { issuers: [fine, { ...fine, issuer: "https://a.example/b" }] }, is: "read" },
  "an issuer on this machine without TLS": {
    of: { issuers: [{ ...fine, issuer: "http://127.0.0.1:80" }] },
    is: "read",
  },
  nothing: { of: {}, is: "read" },
  "no object": { of: [], is: /must be an object/ },
  "an unknown member": {
    of: { issuer: fine },
    is: /issuer is unknown; known are issuers, kubernetes, robots, certificates/,
  },
  "an issuer without audience": { of: { issuers: [{ issuer: "https://a" }] }, is: /audiences must name at least one/ },
  "an issuer without TLS": { of: { issuers: [{ ...fine, issuer: "http://a.example" }] }, is: /must be an https URL/ },
  "an issuer with a query": { of: { issuers: [{ ...fine, issuer: "https://a?b" }] }, is: /must be an https URL/ },
  "an issuer twice": { of: { issuers: [fine, fine] }, is: /is that of another one/ },
  "a wrong member of an issuer": {
    of: { issuers: [{ ...fine, jwksUri: "x" }] },
    is: /issuers\[0\]\.jwksUri is unknown/,
  },
  "an empty prefix": { of: { issuers: [{ ...fine, subjectPrefix: "" }] }, is: /subjectPrefix must be a text/ },
  "the prefix of service accounts": {
    of: { issuers: [{ ...fine, subjectPrefix: "system:" }] },
    is: /must not begin like/,
  },
  "the beginning of a reserved prefix": {
    of: { issuers: [{ ...fine, subjectPrefix: "s" }] },
    is: /must not begin like/,
  },
  "groups like organizations": { of: { issuers: [{ ...fine, groupsPrefix: "org:x" }] }, is: /must not begin like/ },
  "prefixes that begin alike": {
    of: {
      issuers: [
        { ...fine, subjectPrefix: "a:" },
        { ...fine, issuer: "https://b", subjectPrefix: "a:b" },
      ],
    },
    is: /issuers\[1\]\.subjectPrefix begins like that of another issuer/,
  },
  "a common name that is no truth": { of: { certificates: { commonName: "yes" } }, is: /must be true or false/ },
};
for (const [name, { of, is }] of Object.entries(settings)) {
  test(`settings with ${name}`, () => {
    const outcome = readAuthentication(of);
    if (is === "read") assert.equal(outcome.kind, "read");
    else assert.match(outcome.kind === "refused" ? outcome.errors.join("; ") : "read", is);
  });
}

const word = fc.oneof(
  fc.string({ minLength: 1, maxLength: 8 }),
  fc.constantFrom(":", "#", "dns:", "a", "b", "system:"),
);
const issuerOf = fc.record({
  issuer: fc.constantFrom("https://a", "https://b", "https://a/b"),
  audiences: fc.constant(["x"]),
  subjectPrefix: word,
});

test("two callers have one subject only if they are of one method and one issuer", () => {
  fc.assert(
    fc.property(fc.array(issuerOf, { maxLength: 2 }), word, word, word, (issuers, sub, other, name) => {
      const outcome = readAuthentication({ issuers });
      if (outcome.kind === "refused") return;
      const tokens = outcome.settings.issuers.map((one, at) =>
        claimedIdentity({ sub: at === 0 ? sub : other, exp: 9 }, one),
      );
      const shown = [{ uris: [`spiffe://${name}`] }, { dnsNames: [name] }, { commonName: name }];
      const answers = [
        ...tokens,
        ...shown.map((one) => certificateIdentity({ ...NOTHING, ...one }, { commonName: true })),
      ];
      const subjects = answers.flatMap((answer) => (answer.kind === "identity" ? [answer.identity.subject] : []));
      assert.equal(new Set([...subjects, "anonymous"]).size, subjects.length + 1, JSON.stringify(subjects));
    }),
    { numRuns: 2_000 },
  );
});
