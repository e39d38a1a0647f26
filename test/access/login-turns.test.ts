/** Logins at an issuer that does not answer: hosts take turns, and a bounded number waits. */
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { test } from "node:test";
import { setImmediate } from "node:timers/promises";
import fc from "fast-check";
import { createLogin } from "../../src/access/login.ts";
import { loginCookie } from "../../src/api/web/login/cookies.ts";
import { onlyDefault } from "../../src/core/admin/credential-keys.ts";

const SETTINGS = {
  ...{ origin: "https://gangway.example", issuer: "https://login.example", clientId: "gangway" },
  ...{ clientSecretFile: null, scopes: ["openid"], sessionHours: 12 },
};
const AT_A_TIME = 8;
const WAITING_MAX = 64;

/** Logins whose issuer answers once `answer` is called with what it was asked. */
async function hangingLogins() {
  const waiting: string[] = [];
  const answers = new Map<string, () => void>();
  const logins = createLogin({
    clock: { nowMs: () => 1_000 },
    keys: () => onlyDefault(Buffer.alloc(32, 7)),
    randomBytes,
    settings: () => SETTINGS,
    provider: async () => ({
      loginUrl: async ({ state }) => state,
      tokensFor: (search) => {
        waiting.push(search);
        const refused = { kind: "refused", why: "no" } as const;
        return new Promise((resolve) => answers.set(search, () => resolve(refused)));
      },
      renew: () => Promise.reject(new Error("not in this test")),
      revoke: () => Promise.reject(new Error("not in this test")),
    }),
  });
  const started = await logins.start("/", null);
  assert.ok(started.kind === "started");
  const { url: state, cookie } = started;
  const finish = (code: string, host: string, left = new AbortController().signal) => {
    const outcome = logins.finish({ search: `?code=${code}&state=${state}`, cookie, host, left });
    return outcome.then(
      ({ kind }) => kind,
      (error: Error) => `${error.name}: ${error.message}`,
    );
  };
  const codes = () => waiting.map((search) => new URLSearchParams(search).get("code"));
  const answerAll = async () => {
    do {
      for (const answer of answers.values()) answer();
      answers.clear();
      await setImmediate();
    } while (answers.size > 0);
  };
  return { logins, finish, codes, answerAll };
}

test("a login begins while others wait for the issuer, and a host with many waits behind its own", async () => {
  const { logins, finish, codes, answerAll } = await hangingLogins();
  const flood = Array.from({ length: AT_A_TIME + WAITING_MAX }, (_, at) => finish(`flood-${at}`, "192.0.2.1"));
  await setImmediate();
  assert.equal(codes().length, AT_A_TIME);
  assert.equal((await logins.start("/", null)).kind, "started");
  assert.match(await finish("one more", "192.0.2.1"), /^IssuerUnavailableError: too many logins wait for the issuer/);
  const other = finish("other", "192.0.2.2");
  assert.match((await flood.at(-1)) ?? "", /^IssuerUnavailableError: too many/, "the newest of the flood gives way");
  await answerAll();
  assert.equal(await other, "refused");
  const place = codes().indexOf("other");
  assert.ok(place >= AT_A_TIME && place <= AT_A_TIME + 1, `another host is next, not ${place}`);
  const outcomes = await Promise.all(flood);
  assert.equal(outcomes.filter((one) => one === "refused").length, AT_A_TIME + WAITING_MAX - 1);
});

test("the issuer is not asked for browsers that left before their turn", async () => {
  const { finish, codes, answerAll } = await hangingLogins();
  const first = Array.from({ length: AT_A_TIME }, (_, at) => finish(`first-${at}`, "192.0.2.1"));
  const leave = new AbortController();
  const left = finish("left", "192.0.2.2", leave.signal);
  const stays = finish("stays", "192.0.2.3");
  leave.abort("left");
  await answerAll();
  assert.deepEqual([await left, await stays, ...(await Promise.all(first))].slice(0, 3), [
    "left",
    "refused",
    "refused",
  ]);
  assert.ok(codes().includes("stays") && !codes().includes("left"), `${codes()}`);
});

test("law: the cookie of a login stays below 4 KiB, whatever target is taken", async () => {
  const { logins } = await hangingLogins();
  const any = fc.string({ minLength: 1_023, maxLength: 1_023, unit: "grapheme-ascii" });
  const one = fc.string({ minLength: 1, maxLength: 1, unit: "grapheme-ascii" }).map((unit) => unit.repeat(1_023));
  await fc.assert(
    fc.asyncProperty(fc.oneof(any, one), async (rest) => {
      const outcome = await logins.start(`/${rest}`, null);
      if (outcome.kind !== "started") return assert.equal(outcome.kind, "wrongTarget");
      assert.ok(loginCookie(outcome.cookie, true).length < 4_096);
    }),
    { numRuns: 500, examples: [['"'.repeat(1_023)], ["a".repeat(1_023)]] },
  );
});
