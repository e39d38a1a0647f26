/** The tokens of sessions are renewed, whatever the issuer and the database do meanwhile. */
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { after, before, test } from "node:test";
import type { ProviderTokens } from "../../src/access/login.ts";
import { createRenewal, type RenewalPorts } from "../../src/access/renew-sessions.ts";
import { openTokens, sealTokens } from "../../src/access/sessions.ts";
import type { Db } from "../../src/adapters/store/db/db.ts";
import type { LoginRenewal } from "../../src/core/access/console-session.ts";
import type { Authenticate, Identity } from "../../src/core/access/identity.ts";
import { onlyDefault } from "../../src/core/admin/credential-keys.ts";
import { freshStore } from "../store/db.ts";
import { waitUntil } from "../support/bounded.ts";
import { openMemoryDb } from "../support/databases.ts";
import { startConsole } from "./console.ts";

const HOUR_MS = 3_600_000;
/** Less than a minute before the tokens expire. */
const DUE_MS = HOUR_MS - 59_000;
let db: Db;
before(async () => {
  db = await openMemoryDb();
});
after(() => db.close());

test("a stream ends once a renewed token names other groups", async (t) => {
  const { provider, ...service } = await startConsole(t, db);
  provider.people.set("ann", ["admins", "users"]);
  const browser = await service.logIn();
  const streamOf = async () => {
    const stream = service.watchJobs(browser, new AbortController().signal);
    assert.equal((await stream.next()).done, false);
    return stream;
  };
  const stream = await streamOf();
  provider.people.set("ann", ["users"]);
  service.passes(DUE_MS);
  await assert.rejects(stream.next(), /the stream ends here, because the caller's groups have changed: call again/);
  assert.deepEqual(JSON.parse((await service.whoAmI(browser)).body).identity.groups, ["login:users"]);
  await (await streamOf()).return?.();
});

const ANSWERS: Readonly<Record<string, readonly [number, object]>> = {
  "too many requests": [429, { error: "too_many_requests", error_description: "Global limit has been reached" }],
  "a timeout": [408, { error: "timeout" }],
  "a scope that it does not know now": [400, { error: "invalid_scope" }],
  "a firewall": [403, { error: "access_denied", error_description: "blocked" }],
};

test("a session goes on while the issuer says nothing about its refresh token", async (t) => {
  const { provider, log, ...service } = await startConsole(t, db);
  const browser = await service.logIn();
  const before = await service.tokenOf();
  let passMs = DUE_MS;
  for (const [name, [status, body]] of Object.entries(ANSWERS)) {
    const logged = log.length;
    provider.state.onToken = (response) =>
      response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
    service.passes(passMs);
    const hasFailed = () => log.slice(logged).some((line) => line.startsWith("renewal of sessions: "));
    await waitUntil(`the renewal has failed with ${name}`, hasFailed);
    assert.equal((await service.whoAmI(browser)).status, 200, name);
    passMs = 30_000;
  }
  provider.state.onToken = null;
  service.passes(passMs);
  await waitUntil("the tokens are renewed", async () => (await service.tokenOf()) !== before);
});

const [OLD, NOW_MS] = ["token of r0", 1_000_000_000];
const ANN: Identity = { subject: "ann", groups: [], method: "oidc", issuer: "i", expiresAtMs: null };
const keys = () => onlyDefault(Buffer.alloc(32, 7));

/** A session in a real table, and an issuer that takes each refresh token once. */
async function renewals() {
  const { sessions } = (await freshStore(db)).store;
  const idHash = createHash("sha256").update("secret").digest("hex");
  const tokens = sealTokens({ token: OLD, renewal: { issuer: "i", refreshToken: "r0" } }, idHash, keys());
  assert.ok(tokens !== null);
  const session = { idHash, subject: "ann", tokens, expiresAtMs: NOW_MS + HOUR_MS, renewAtMs: NOW_MS };
  assert.equal(await sessions.make(session, NOW_MS - 1), "made");
  const log: string[] = [];
  const issuer = { current: 0, shown: [] as string[] };
  const take = async ({ refreshToken }: LoginRenewal): Promise<ProviderTokens> => {
    issuer.shown.push(refreshToken);
    if (refreshToken !== `r${issuer.current}`) return { kind: "refused", why: "it was used before" };
    issuer.current += 1;
    const next = `r${issuer.current}`;
    return { kind: "tokens", tokens: { token: `token of ${next}`, renewal: { issuer: "i", refreshToken: next } } };
  };
  const identity: Identity = { ...ANN, expiresAtMs: NOW_MS + 300_000 };
  let laterMs = 0;
  const process = (of: Partial<RenewalPorts> & { readonly skewMs?: number } = {}) =>
    createRenewal({
      clock: {
        nowMs: () => NOW_MS + laterMs + (of.skewMs ?? 0),
        monotonicMs: () => laterMs,
        sleep: async (ms) => {
          laterMs += ms;
        },
      },
      ...{ store: sessions, keys, renew: take, revoke: async () => void log.push("revoked") },
      authenticate: () => ({ kind: "identity", identity }),
      onEnded: ({ why }) => void log.push(why),
      onError: (error) => void log.push(String(error)),
      ...of,
    }).renewDue(new AbortController().signal);
  const kept = async () => {
    const row = await sessions.find(idHash, NOW_MS);
    const opened = row === null ? null : openTokens(row, keys());
    return opened === null ? null : [opened.token, opened.renewal?.refreshToken];
  };
  const passes = (ms: number) => {
    laterMs += ms;
  };
  return { sessions, issuer, log, take, process, kept, passes };
}

test("a process whose clock is ahead leaves a session alone that another one renews", async () => {
  const { process, issuer, take, kept, log } = await renewals();
  const { promise: isOpen, resolve: open } = Promise.withResolvers<void>();
  const slow = process({ renew: (of) => isOpen.then(() => take(of)) });
  await waitUntil("the session is claimed", async () => {
    const [row] = await db.query<{ claim_ms: number | null }>("select claim_ms from console_sessions");
    return row?.claim_ms !== null;
  });
  assert.equal(await process({ skewMs: 31_000 }), 0);
  open();
  assert.equal(await slow, 1);
  assert.deepEqual([issuer.shown, await kept(), log], [["r0"], ["token of r1", "r1"], []]);
});

test("a process that was late ends no session that another one has renewed", async () => {
  const { process, take, kept, log } = await renewals();
  const late = process({
    renew: async (of) => {
      await db.query("update console_sessions set claim_ms = claim_ms - 60000");
      await process();
      return take(of);
    },
  });
  assert.equal(await late, 1);
  assert.deepEqual([await kept(), log], [["token of r1", "r1"], []]);
});

test("new tokens are written again after a write has failed", async () => {
  const { process, sessions, kept, log } = await renewals();
  let failures = 3;
  const renew: typeof sessions.renew = async (...of) => {
    failures -= 1;
    if (failures >= 0) throw new Error("connection lost");
    return sessions.renew(...of);
  };
  await process({ store: { ...sessions, renew } });
  assert.deepEqual(await kept(), ["token of r1", "r1"]);
  assert.deepEqual(log, Array(3).fill("Error: connection lost"));
});

const NOT_JUDGED: Readonly<Record<string, Authenticate>> = {
  "cannot be judged": () => Promise.reject(new Error("the keys are away")),
  "is refused while the old one counts": ({ authorization: [token] }) => {
    if (token !== `Bearer ${OLD}`) return { kind: "refused", why: "it has no known key" };
    return { kind: "identity", identity: { ...ANN, expiresAtMs: NOW_MS + 59_000 } };
  },
};
for (const [name, authenticate] of Object.entries(NOT_JUDGED)) {
  test(`the next refresh token is kept if a new token ${name}`, async () => {
    const { process, kept, log, passes } = await renewals();
    await process({ authenticate });
    assert.deepEqual(await kept(), [OLD, "r1"]);
    assert.match(log.join(), /^Error: (the keys are away|a renewed token does not count yet: it has no known key)$/);
    assert.equal(await process(), 0, "it is not renewed again at once");
    passes(30_000);
    assert.equal(await process(), 1);
    assert.deepEqual(await kept(), ["token of r2", "r2"]);
  });
}

test("a session ends if neither its new token nor the old one counts", async () => {
  const { process, kept, log } = await renewals();
  await process({ authenticate: () => ({ kind: "refused", why: "its issuer is not trusted" }) });
  assert.deepEqual([await kept(), log], [null, ["its issuer is not trusted"]]);
});

test("a process revokes new tokens whose session has ended", async () => {
  const { process, sessions, take, kept, log } = await renewals();
  const renew = async (of: LoginRenewal) => {
    await sessions.delete(createHash("sha256").update("secret").digest("hex"));
    return take(of);
  };
  await process({ renew });
  assert.deepEqual([await kept(), log], [null, ["revoked"]]);
});
