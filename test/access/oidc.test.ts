/** Tokens of an issuer: which count, which do not, and what happens while the issuer is away. */
import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { base64url, exportJWK, SignJWT, UnsecuredJWT } from "jose";
import { createAuthenticate } from "../../src/access/authenticate.ts";
import { issuerKeys } from "../../src/access/issuer-keys.ts";
import { oidcVerifier } from "../../src/access/oidc.ts";
import { type IssuerSettings, NO_AUTHENTICATION } from "../../src/core/access/authentication-settings.ts";
import { IssuerUnavailableError } from "../../src/runtime/unavailable-error.ts";
import { waitUntil } from "../support/bounded.ts";
import { signingKey, TestIssuer } from "../support/issuer.ts";

const HOUR = 3_600_000;
const DOCUMENT = "/.well-known/openid-configuration";

async function world(t: TestContext, more: Partial<IssuerSettings> = {}) {
  const issuer = await TestIssuer.start(await signingKey("one"));
  t.after(() => issuer.close());
  const settings: IssuerSettings = {
    issuer: issuer.url,
    audiences: ["gangway", "other"],
    subjectClaim: "sub",
    subjectPrefix: "login:",
    groupsClaim: "groups",
    groupsPrefix: "team:",
    caFile: null,
    ...more,
  };
  const time = { nowMs: Date.now(), monotonicMs: 0 };
  const clock = { nowMs: () => time.nowMs, monotonicMs: () => time.monotonicMs };
  const errors: unknown[] = [];
  const keys = issuerKeys({ issuer: issuer.url, ca: null, clock, onError: (error) => void errors.push(error) });
  const verifyRobot = () => Promise.reject(new Error("no robot"));
  const reviewToken = () => Promise.reject(new Error("no cluster"));
  const ports = { clock, verifyToken: oidcVerifier(() => keys, clock), verifyRobot, reviewToken };
  const authenticate = createAuthenticate(ports, {
    ...NO_AUTHENTICATION,
    issuers: [settings],
    certificates: false,
  });
  const ask = (...authorization: readonly string[]) => authenticate({ authorization, certificate: null });
  const show = async (token: string | Promise<string>) => ask(`Bearer ${await token}`);
  const whyOf = async (token: string | Promise<string>) => {
    const answer = await show(token);
    return answer.kind === "refused" ? answer.why : `taken as ${answer.identity.subject}`;
  };
  return { issuer, settings, time, errors, ask, show, whyOf };
}

test("a token gives its subject and groups with the issuer's prefixes, until it expires", async (t) => {
  const { issuer, show, time } = await world(t);
  const exp = Math.floor(time.nowMs / 1000) + 600;
  assert.deepEqual(await show(issuer.sign({ sub: "ann", groups: ["ml", "ops"], exp })), {
    kind: "identity",
    identity: {
      subject: "login:ann",
      groups: ["team:ml", "team:ops"],
      method: "oidc",
      issuer: issuer.url,
      expiresAtMs: exp * 1000,
    },
  });
});

for (const alg of ["RS256", "ES256", "EdDSA"]) {
  test(`${alg} is taken`, async (t) => {
    const { issuer, whyOf } = await world(t);
    issuer.keys = [await signingKey("k", alg)];
    assert.equal(await whyOf(issuer.sign()), "taken as login:me");
  });
}

const now = () => Math.floor(Date.now() / 1000);
const claims: Record<string, { claims: Readonly<Record<string, unknown>>; why: RegExp }> = {
  "another audience": { claims: { aud: "elsewhere" }, why: /claim aud/ },
  "one of the audiences": { claims: { aud: ["x", "other"] }, why: /taken as/ },
  "another issuer": { claims: { iss: "https://evil.example" }, why: /issuer that this service does not know/ },
  "the issuer with a slash": { claims: { iss: "http://127.0.0.1/" }, why: /issuer that this service does not know/ },
  "no expiry": { claims: { exp: undefined }, why: /claim exp/ },
  "an expiry that is a text": { claims: { exp: "never" }, why: /claim exp/ },
  "expired for two minutes": { claims: { exp: now() - 120 }, why: /has expired/ },
  "expired for half a minute": { claims: { exp: now() - 30 }, why: /taken as/ },
  "not valid yet": { claims: { nbf: now() + 120 }, why: /claim nbf/ },
  "valid in half a minute": { claims: { nbf: now() + 30 }, why: /taken as/ },
  "no subject": { claims: { sub: undefined }, why: /claim sub/ },
  "an empty subject": { claims: { sub: "" }, why: /no claim sub with a text/ },
  "a subject that is a number": { claims: { sub: 7 }, why: /no claim sub with a text/ },
  "a subject with a line break": { claims: { sub: "a\nb" }, why: /printable text/ },
  "a subject of a thousand characters": { claims: { sub: "x".repeat(1000) }, why: /printable text/ },
  "groups that are numbers": { claims: { groups: [1] }, why: /claim groups that is no list of texts/ },
  "one group as a text": { claims: { groups: "ml" }, why: /taken as/ },
  "a thousand groups": { claims: { groups: Array.from({ length: 1000 }, (_, at) => `g${at}`) }, why: /groups/ },
};
for (const [name, c] of Object.entries(claims)) {
  test(`a token with ${name}`, async (t) => {
    const { issuer, whyOf } = await world(t);
    assert.match(await whyOf(issuer.sign(c.claims)), c.why);
  });
}

test("tokens do not count: none, shared secrets, foreign keys, keys of their own, cut, nested, huge", async (t) => {
  const { issuer, whyOf, ask, errors } = await world(t);
  const good = await issuer.sign();
  const [header = "", payload = "", signature = ""] = good.split(".");
  const foreign = await signingKey("one");
  const [own] = issuer.keys;
  assert.ok(own !== undefined);
  const jwk = await exportJWK(foreign.public);
  const body = { iss: issuer.url, aud: "gangway", sub: "me", exp: now() + 600 };
  const secret = new TextEncoder().encode(JSON.stringify(await exportJWK(own.public)));
  const encoded = (value: object) => base64url.encode(JSON.stringify(value));
  const bad: Record<string, string> = {
    none: new UnsecuredJWT(body).encode(),
    "none with a signature": `${encoded({ alg: "none" })}.${payload}.${signature}`,
    "the public key as a secret": await new SignJWT(body).setProtectedHeader({ alg: "HS256", kid: "one" }).sign(secret),
    "a foreign key": await issuer.sign({}, { key: foreign }),
    "a key in the token": await issuer.sign({}, { key: foreign, header: { jwk } }),
    "the address of a key in the token": await issuer.sign({}, { key: foreign, header: { jku: `${issuer.url}/evil` } }),
    "a certificate in the token": await issuer.sign({}, { key: foreign, header: { x5u: `${issuer.url}/evil` } }),
    "an unknown key": await issuer.sign({}, { key: { ...foreign, id: "two" } }),
    "another algorithm": await issuer.sign({}, { key: { ...(await signingKey("one", "PS256")) } }),
    "another payload": `${header}.${encoded({ ...body, sub: "root" })}.${signature}`,
    "no signature": `${header}.${payload}.`,
    "a part too few": `${header}.${payload}`,
    "five parts": `${good}.a.b`,
    "a payload that is no object": `${header}.${base64url.encode("[]")}.${signature}`,
    "a payload that is no JSON": `${header}.${base64url.encode("{")}.${signature}`,
    "a token in a token": `${header}.${base64url.encode(good)}.${signature}`,
    "a critical extension": `${encoded({ alg: "RS256", kid: "one", crit: ["x"], x: 1 })}.${payload}.${signature}`,
    "a header that is no JSON": `e30x.${payload}.${signature}`,
    "too many characters": `${header}.${payload}.${"A".repeat(20_000)}`,
    "no token": "token",
  };
  for (const [name, token] of Object.entries(bad)) {
    const why = await whyOf(token);
    assert.doesNotMatch(why, /taken as/, name);
    for (const part of token.split(".")) assert.ok(part.length < 16 || !why.includes(part), `${name} shows the token`);
  }
  for (const values of [
    ["Basic YTpi"],
    [good],
    ["Bearer"],
    ["Bearer a b"],
    [`Bearer ${good}`, `Bearer ${good}`],
    [""],
  ]) {
    assert.equal((await ask(...values)).kind, "refused", values[0]);
  }
  assert.equal((await ask()).kind, "refused", "no credentials");
  assert.equal((await ask(`bearer  ${good}`)).kind, "identity");
  assert.deepEqual(errors, []);
  assert.deepEqual([...new Set(issuer.asked)].sort(), ["/.well-known/openid-configuration", "/keys"]);
});

test("a new key of the issuer is found, and unknown keys cause one request in half a minute", async (t) => {
  const { issuer, whyOf, time } = await world(t);
  const [first, second] = [issuer.keys[0], await signingKey("two")];
  assert.match(await whyOf(issuer.sign()), /taken as/);
  const keysAsked = () => issuer.asked.filter((path) => path === "/keys").length;
  assert.equal(keysAsked(), 1);
  issuer.keys = [second];
  assert.match(await whyOf(issuer.sign()), /not signed by a key/, "it cools down");
  time.monotonicMs += 31_000;
  const tokens = await Promise.all([1, 2, 3].map((sub) => issuer.sign({ sub: `s${sub}` })));
  assert.deepEqual(
    await Promise.all(tokens.map(whyOf)),
    [1, 2, 3].map((sub) => `taken as login:s${sub}`),
  );
  assert.equal(keysAsked(), 2, "callers share a request");
  assert.match(await whyOf(issuer.sign({ sub: "late" }, { key: first })), /not signed by a key/);
  assert.equal(keysAsked(), 2);
});

test("keys serve on for a day while the issuer is away; without keys its tokens are UNAVAILABLE", async (t) => {
  const { issuer, whyOf, time, errors } = await world(t);
  issuer.isThere = false;
  await assert.rejects(whyOf(issuer.sign()), IssuerUnavailableError);
  const asked = issuer.asked.length;
  await assert.rejects(whyOf(issuer.sign({ sub: "a" })), IssuerUnavailableError);
  assert.equal(issuer.asked.length, asked, "an issuer that is away is not asked for each token");
  assert.equal(errors.length, 1);
  issuer.isThere = true;
  time.monotonicMs += 6_000;
  assert.match(await whyOf(issuer.sign({ sub: "b" })), /taken as/);
  issuer.isThere = false;
  for (const [hours, taken] of [
    [1, true],
    [23, true],
    [25, false],
  ] as const) {
    time.monotonicMs = 6_000 + hours * HOUR;
    const token = issuer.sign({ sub: `after ${hours}` });
    if (taken) assert.match(await whyOf(token), /taken as/, `after ${hours} hours`);
    else await assert.rejects(whyOf(token), IssuerUnavailableError);
  }
});

test("keys that move are found at the next refresh, without a token of an unknown key", async (t) => {
  const { issuer, whyOf, time, errors } = await world(t);
  assert.match(await whyOf(issuer.sign()), /taken as/);
  issuer.keysPath = "/moved";
  time.monotonicMs += HOUR;
  assert.match(await whyOf(issuer.sign({ sub: "a" })), /taken as/, "the kept keys serve while they are read again");
  await waitUntil("the keys are read where they are now", () => issuer.asked.includes("/moved"));
  assert.deepEqual(errors, []);
  for (let hour = 0; hour < 48; hour += 1) {
    time.monotonicMs += HOUR;
    assert.match(await whyOf(issuer.sign({ sub: `in hour ${hour}` })), /taken as/);
  }
});

test("keys that move and change are found by the first token of a new key, once in half a minute", async (t) => {
  const { issuer, whyOf, time, errors } = await world(t);
  assert.match(await whyOf(issuer.sign()), /taken as/);
  issuer.keysPath = "/moved";
  issuer.keys = [await signingKey("two")];
  assert.match(await whyOf(issuer.sign()), /not signed by a key/, "it cools down");
  time.monotonicMs += 31_000;
  assert.match(await whyOf(issuer.sign()), /taken as/);
  assert.deepEqual(issuer.asked, [DOCUMENT, "/keys", DOCUMENT, "/moved"]);
  assert.deepEqual(errors, []);
});

test("a key that is replaced under its old name is found by a signature that fails", async (t) => {
  const { issuer, whyOf, time } = await world(t);
  const [before] = issuer.keys;
  assert.match(await whyOf(issuer.sign()), /taken as/);
  issuer.keys = [await signingKey("one")];
  assert.match(await whyOf(issuer.sign()), /not signed by a key/, "it cools down");
  time.monotonicMs += 31_000;
  const tokens = await Promise.all([1, 2, 3].map((sub) => issuer.sign({ sub: `s${sub}` })));
  assert.deepEqual(
    await Promise.all(tokens.map(whyOf)),
    [1, 2, 3].map((sub) => `taken as login:s${sub}`),
  );
  for (const sub of ["x", "y"]) {
    assert.match(await whyOf(issuer.sign({ sub }, { key: before })), /not signed by a key/);
  }
  assert.equal(issuer.asked.length, 4, "signatures that fail share a reading in half a minute");
  issuer.isThere = false;
  time.monotonicMs += 31_000;
  await assert.rejects(whyOf(issuer.sign({ sub: "z" }, { key: before })), IssuerUnavailableError);
  assert.match(await whyOf(issuer.sign({ sub: "z" }, { key: before })), /not signed by a key/);
});

test("keys are read where they were while the discovery document alone is away", async (t) => {
  const { issuer, whyOf, time, errors } = await world(t);
  assert.match(await whyOf(issuer.sign()), /taken as/);
  issuer.hasDocument = false;
  issuer.keys = [await signingKey("two")];
  time.monotonicMs += 31_000;
  assert.match(await whyOf(issuer.sign()), /taken as/);
  assert.match(String(errors[0]), /openid-configuration answered with status 503/);
  issuer.hasDocument = true;
  issuer.keysPath = "/moved";
  issuer.keys = [await signingKey("three")];
  time.monotonicMs += 6_000;
  assert.match(await whyOf(issuer.sign()), /taken as/, "it is asked for again as soon as an issuer that is away");
});

test("a token is verified once a minute, and refused at once when it expires", async (t) => {
  const { issuer, whyOf, time } = await world(t);
  const token = await issuer.sign({ exp: now() + 20 });
  const [key] = issuer.keys;
  assert.match(await whyOf(token), /taken as/);
  issuer.keys = [];
  time.monotonicMs += 59_000;
  assert.match(await whyOf(token), /taken as/, "it was verified a minute ago");
  time.nowMs += 81_000;
  assert.match(await whyOf(token), /has expired/);
  time.nowMs -= 81_000;
  issuer.keys = key === undefined ? [] : [key];
  time.monotonicMs += 2_000;
  assert.match(await whyOf(token), /taken as/);
});

test("a document about another issuer, or keys elsewhere than by https, are not taken", async (t) => {
  const { issuer } = await world(t);
  const errors: unknown[] = [];
  const clock = { monotonicMs: () => 0 };
  const keys = issuerKeys({ issuer: `${issuer.url}/`, ca: null, clock, onError: (error) => void errors.push(error) });
  await assert.rejects(async () => keys({ alg: "RS256" }, { payload: "", signature: "" }), IssuerUnavailableError);
  assert.match(String(errors[0]), /is not about issuer/);
});
