/** Headers and tokens with every fault, shown to a service as operators run it. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { Caller, framed } from "../caller.ts";
import { Chance } from "../chance.ts";
import { Subject } from "../subject.ts";
import { METHODS, pathOf } from "../surface.ts";
import { codeOf } from "../verdict.ts";
import { startCallers } from "./world.ts";

const CALLS = 300;

const encoded = (value: unknown) => Buffer.from(JSON.stringify(value)).toString("base64url");

function twice(claim: string, claims: object): string {
  return Buffer.from(`{"${claim}":"root",${JSON.stringify(claims).slice(1)}`).toString("base64url");
}

/** A token that nobody has issued, made from one that was. */
function badToken(chance: Chance, good: string): string {
  const [header = "", payload = "", signature = ""] = good.split(".");
  const claims = JSON.parse(Buffer.from(payload, "base64url").toString("utf8")) as Record<string, unknown>;
  const head = JSON.parse(Buffer.from(header, "base64url").toString("utf8")) as Record<string, unknown>;
  const withHead = (more: object) => `${encoded({ ...head, ...more })}.${payload}.${signature}`;
  const withClaims = (more: object) => `${header}.${encoded({ ...claims, ...more })}.${signature}`;
  const faults: readonly (() => string)[] = [
    () => withHead({ alg: chance.pick(["none", "NONE", "HS256", "PS256", "RS256", "", 3, null]) }),
    () => withHead({ crit: chance.pick([["exp"], ["b64"], [], "x"]), b64: false }),
    () => withHead({ jwk: { kty: "oct", k: "AA" }, jku: "http://127.0.0.1:1/keys", x5u: "http://127.0.0.1:1" }),
    () => withHead({ kid: chance.pick(["../../etc/passwd", "", "two", 7, null]) }),
    () => withHead({ cty: "JWT", zip: "DEF" }),
    () => withClaims({ sub: chance.pick(["root", "", 7, null, ["admin"], {}]) }),
    () => withClaims({ aud: chance.pick(["elsewhere", [], null, 7, "*"]) }),
    () => withClaims({ iss: chance.pick(["https://evil.example", "", null, 7, [claims["iss"]]]) }),
    () => withClaims({ exp: chance.pick([0, -1, "never", null, 1e300]) }),
    () => withClaims({ groups: chance.pick([7, [[]], "x".repeat(9000)]) }),
    // A claim twice.
    () => `${header}.${twice("sub", claims)}.${signature}`,
    // A token within a token, and one of five parts.
    () => `${header}.${Buffer.from(JSON.stringify(good)).toString("base64url")}.${signature}`,
    () => `${good}.${header}.${payload}`,
    () => `${header}.${payload}.`,
    () => `${header}.${payload}`,
    () => `${good.slice(0, chance.int(1, good.length - 6))}`,
    () => `${header}.${payload}.${chance.bytes(64).toString("base64url")}`,
    () => `gwt_${chance.bytes(32).toString("base64url")}`,
    () => `gwt_${chance.bytes(chance.int(0, 60)).toString("base64url")}`,
    () => "a".repeat(chance.pick([16_384, 16_385, 30_000])),
  ];
  return chance.pick(faults)();
}

/** Ways to write the header; with a good token, only those that are wrong. */
function badHeader(chance: Chance, good: string): string {
  const bad = badToken(chance, good);
  return chance.pick([
    () => `Bearer ${bad}`,
    () => `bearer  ${bad}`,
    () => `Bearer ${bad}, Bearer ${good}`,
    () => `Bearer ${good}, Bearer ${bad}`,
    () => `Bearer ${good} ${good}`,
    () => `Bearer${good}`,
    () => `Basic ${good}`,
    () => `Bearer "${good}"`,
    () => `Bearer token=${good}`,
    () => good,
    () => "Bearer",
    () => "",
    () => `DPoP ${good}`,
    () => Buffer.from(good).toString("base64"),
  ])();
}

test(`${CALLS} calls with credentials that nobody has issued are refused, and the log has no secret`, async (t) => {
  await using parts = new AsyncDisposableStack();
  const seed = Number(process.env["GANGWAY_SEED"] ?? Date.now() % 1_000_000);
  t.diagnostic(`GANGWAY_SEED=${seed}`);
  const callers = await startCallers(parts);
  const subject = parts.use(await Subject.start({ postgres: null, redis: null, env: callers.env }));
  const caller = new Caller(subject.address, 2);
  parts.defer(() => caller.close());
  const call = (authorization: string, number: number) => {
    const method = METHODS[number % METHODS.length];
    assert.ok(method !== undefined);
    return caller.call(pathOf(method), framed(Buffer.alloc(0)), { headers: { authorization }, leaveAfterMs: 60_000 });
  };
  const whoAmI = METHODS.findIndex(({ name }) => name === "WhoAmI");
  assert.equal(codeOf(await call(`Bearer ${callers.admin}`, whoAmI)), "OK");
  const shown = new Set<string>([callers.admin]);
  for (let number = 0; number < CALLS; number += 1) {
    const header = badHeader(Chance.ofCall(seed, number), callers.admin);
    for (const part of header.split(/[ ,."=]+/)) if (part.length >= 20) shown.add(part);
    const answer = await call(header, number);
    assert.equal(codeOf(answer), "UNAUTHENTICATED", header.slice(0, 400));
    const told = `${answer.message} ${answer.headers}`;
    for (const part of header.split(/[ ,."=]+/))
      assert.ok(part.length < 20 || !told.includes(part), "shown in the answer");
  }
  const logged = subject.logged();
  assert.deepEqual(
    [...shown].filter((part) => logged.includes(part)),
    [],
  );
});
