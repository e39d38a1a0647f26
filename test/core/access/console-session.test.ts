import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { readAuthentication } from "../../../src/core/access/authentication-settings.ts";
import { isOwnTarget, renewalMs } from "../../../src/core/access/console-session.ts";
import type { JsonObject } from "../../../src/runtime/json.ts";

const OWN = "https://gangway.example";
/** Pieces of which addresses of other hosts are made. */
const piece = fc.constantFrom(
  "/",
  "\\",
  ".",
  "..",
  "@",
  ":",
  "\t",
  "\n",
  "%2f",
  "evil.example",
  "jobs",
  "?a=b",
  "#x",
  " ",
);
const target = fc.oneof(
  fc.array(piece, { maxLength: 8 }).map((pieces) => pieces.join("")),
  fc.array(piece, { maxLength: 8 }).map((pieces) => `/${pieces.join("")}`),
  fc.string(),
);

test("law: a target that is taken leads to this service, wherever a browser reads it", () => {
  fc.assert(
    fc.property(target, (to) => {
      if (isOwnTarget(to)) assert.equal(new URL(to, `${OWN}/auth/callback`).origin, OWN);
    }),
    { numRuns: 5_000 },
  );
});

const TARGETS: Readonly<Record<string, boolean>> = {
  "/": true,
  "/jobs": true,
  "/jobs?q=phase:waiting&group=queue#top": true,
  "/jobs//a": true,
  "": false,
  jobs: false,
  "//evil.example": false,
  "/\\evil.example": false,
  "/\t/evil.example": false,
  "https://evil.example": false,
  "javascript:alert(1)": false,
  "/jobs\r\nset-cookie: a=b": false,
  "/jöbs": false,
  '/jobs?q="a"': false,
  [`/${"a".repeat(1_024)}`]: false,
};

for (const [to, isOwn] of Object.entries(TARGETS)) {
  test(`the target ${JSON.stringify(to.slice(0, 40))} is ${isOwn ? "taken" : "refused"}`, () => {
    assert.equal(isOwnTarget(to), isOwn);
  });
}

test("a token is renewed a minute before it expires, and one with a short life after half of it", () => {
  assert.equal(renewalMs(3_600_000, 0), 3_540_000);
  assert.equal(renewalMs(100_000, 0), 50_000);
  assert.equal(renewalMs(100_001.5, 0), 50_000);
});

test("law: a token is renewed in five seconds at the earliest, in whole milliseconds, and before its end", () => {
  const times = fc.record({ nowMs: fc.nat(), leftMs: fc.double({ min: -1e6, max: 1e9, noNaN: true }) });
  fc.assert(
    fc.property(times, ({ nowMs, leftMs }) => {
      const atMs = renewalMs(nowMs + leftMs, nowMs);
      assert.ok(Number.isInteger(atMs) && atMs >= nowMs + 5_000);
      assert.ok(leftMs < 10_000 || atMs <= nowMs + leftMs - 5_000);
    }),
  );
});

const CONSOLE = { url: OWN, issuer: "https://login.example", clientId: "gangway" };
const read = (console: JsonObject) =>
  readAuthentication({ issuers: [{ issuer: "https://login.example", audiences: ["gangway"] }], console });

test("the settings of a console have defaults", () => {
  const outcome = read({ ...CONSOLE, url: `${OWN}/` });
  assert.deepEqual(outcome.kind === "read" && outcome.settings.console, {
    origin: OWN,
    issuer: "https://login.example",
    clientId: "gangway",
    clientSecretFile: null,
    scopes: ["openid", "offline_access"],
    sessionHours: 12,
  });
});

const MISTAKES: readonly (readonly [JsonObject, string])[] = [
  [{ url: "http://gangway.example" }, "console.url must be an https URL without a path"],
  [{ url: `${OWN}/console` }, "console.url must be an https URL without a path"],
  [{ url: `${OWN}?a` }, "console.url must be an https URL without a path"],
  [{ issuer: "https://other.example" }, "console.issuer must be one of issuers"],
  [{ clientId: "other" }, "console.clientId must be one of the audiences of its issuer"],
  [{ scopes: ["groups"] }, "console.scopes must have openid"],
  [{ scopes: ["openid", "a b"] }, "console.scopes[1] must have at most 200 printable characters"],
  [{ scopes: "openid" }, "console.scopes must be a list"],
  [{ sessionHours: 0 }, "console.sessionHours must be a number above 0, and at most 744"],
  [{ sessionHours: "12" }, "console.sessionHours must be a number"],
  [{ clientSecretFile: "" }, "console.clientSecretFile must be a text"],
  [{ secret: "x" }, "console.secret is unknown; known are url, issuer"],
];

for (const [change, expected] of MISTAKES) {
  test(`the settings ${JSON.stringify(change)} are refused`, () => {
    const outcome = read({ ...CONSOLE, ...change });
    assert.ok(outcome.kind === "refused");
    assert.ok(
      outcome.errors.some((error) => error.startsWith(expected)),
      outcome.errors.join("; "),
    );
  });
}
