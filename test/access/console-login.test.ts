/** Browsers log in at a real issuer of OpenID Connect, or with a token, and their sessions end. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { Db } from "../../src/adapters/store/db/db.ts";
import { send } from "../api/web/http.ts";
import { waitUntil } from "../support/bounded.ts";
import { TestBrowser } from "../support/browser.ts";
import { openMemoryDb } from "../support/databases.ts";
import { startConsole } from "./console.ts";

const HOUR_MS = 3_600_000;
let db: Db;
before(async () => {
  db = await openMemoryDb();
});
after(() => db.close());

const identityOf = ({ body }: { readonly body: string }) => JSON.parse(body).identity;
const sessionOf = (browser: TestBrowser, url: string) => browser.cookies(url).get("gangway");

test("a person with 60 groups logs in, is known by the cookie alone, and logs out", async (t) => {
  const { url, provider, log, whoAmI, ...service } = await startConsole(t, db);
  const groups = Array.from({ length: 60 }, (_, at) => `group-${at}-${"x".repeat(30)}`);
  provider.people.set("ann", groups);
  const browser = new TestBrowser();
  const started = await browser.send(`${url}/auth/login?to=/jobs%3Fq%3Dmine`);
  assert.equal(started.status, 303);
  assert.match(
    started.headers.get("set-cookie") ?? "",
    /^gangway-login=.+; Path=\/; Max-Age=600; HttpOnly; SameSite=Lax$/,
  );
  const isCallback = (at: string) => at.startsWith(`${url}/auth/callback?`);
  const { url: callback } = await browser.open(started.headers.get("location") ?? "", isCallback);
  const back = await browser.send(callback);
  assert.deepEqual([back.status, back.headers.get("location")], [303, "/jobs?q=mine"], await back.text());
  const [cookie = ""] = back.headers.getSetCookie();
  assert.match(cookie, /^gangway=[\w-]{43}; Path=\/; Max-Age=43\d{3}; HttpOnly; SameSite=Lax$/);
  assert.deepEqual([...browser.cookies(url).keys()], ["gangway"], "the cookie of the login is gone");

  const caller = identityOf(await whoAmI(browser));
  assert.deepEqual([caller.subject, caller.method, caller.groups.length], ["login:ann", "oidc", 60]);
  const methods = async () => (await browser.send(`${url}/auth/methods`)).json();
  const offered = { needed: true, token: true, issuer: provider.issuer };
  assert.deepEqual(await methods(), { ...offered, caller: { subject: "login:ann" } });
  assert.equal((await whoAmI(new TestBrowser())).status, 401, "the cookie belongs to one browser");

  const before = new Map(browser.cookies(url));
  const out = await browser.send(`${url}/auth/logout`, { method: "POST" });
  assert.deepEqual([out.status, await out.json(), browser.cookies(url).size], [200, {}, 0]);
  for (const [name, value] of before) browser.cookies(url).set(name, value);
  assert.equal((await whoAmI(browser)).status, 401, "the session is gone with its cookie");
  assert.deepEqual(await methods(), { ...offered, caller: null });
  assert.deepEqual(log, ["login:ann by oidc", "login:ann: its caller logged out"]);
  await waitUntil("the issuer has revoked the tokens", () => provider.asked("POST /token/revocation") === 1);
  assert.deepEqual(await service.db.query("select 1 from console_sessions"), []);
});

test("a request with an authorization of its own ignores the cookie", async (t) => {
  const { whoAmI, logIn, robotToken } = await startConsole(t, db);
  const browser = await logIn();
  assert.equal(identityOf(await whoAmI(browser)).subject, "login:ann");
  const own = await whoAmI(browser, { authorization: `Bearer ${robotToken}` });
  assert.equal(identityOf(own).subject, "robot:ci");
  assert.equal((await whoAmI(browser, { authorization: "Bearer nonsense" })).status, 401);
  assert.equal((await whoAmI(browser, { authorization: "" })).status, 401);
});

test("an answer of the issuer counts once, for the browser that asked for it, and for ten minutes", async (t) => {
  const { url, provider, passes } = await startConsole(t, db);
  const isCallback = (at: string) => at.startsWith(`${url}/auth/callback?`);
  const begin = async (browser = new TestBrowser()) => {
    const { url: callback } = await browser.open(`${url}/auth/login`, isCallback);
    return { browser, callback };
  };
  const refused = async (browser: TestBrowser, callback: string, why: RegExp) => {
    const response = await browser.send(callback);
    assert.equal(response.headers.get("content-type"), "text/plain; charset=utf-8");
    assert.deepEqual([response.status, sessionOf(browser, url)], [401, undefined]);
    assert.match(await response.text(), why);
  };
  const [mine, other] = [await begin(), await begin()];
  await refused(mine.browser, other.callback, /the answer belongs to another login; begin again at \/auth\/login\n$/);
  await refused(new TestBrowser(), mine.callback, /has begun no login in the last ten minutes/);
  await refused(mine.browser, `${url}/auth/callback?state=%00`, /belongs to another login/);
  const broken = new TestBrowser();
  broken
    .cookies(url)
    .set("gangway-login", `${mine.browser.cookies(url).get("gangway-login")}`.replace(/.{9}$/, "AAAAAAAAA"));
  await refused(broken, mine.callback, /has begun no login/);
  const wrongCode = mine.callback.replace(/code=[^&]+/, "code=nonsense");
  await refused(mine.browser, wrongCode, /you are not logged in: grant request is invalid/);
  assert.equal((await mine.browser.send(mine.callback)).status, 303);

  const late = await begin();
  passes(600_000);
  await refused(late.browser, late.callback, /the login took longer than ten minutes/);

  provider.state.person = null;
  const declined = await begin();
  await refused(
    declined.browser,
    declined.callback,
    /you are not logged in: the person said .u001b\[31mno; begin again/,
  );
});

test("a login leads to this service alone", async (t) => {
  const { url } = await startConsole(t, db);
  for (const to of ["to=//evil.example", "to=/%5Cevil.example", "to=https://evil.example", "to=/a&to=/b", "to=jobs"]) {
    const response = await fetch(`${url}/auth/login?${to}`, { redirect: "manual" });
    assert.equal(response.status, 400, to);
    assert.match(await response.text(), /^to: must be one path of this service/);
    assert.equal(response.headers.get("location"), null);
  }
  for (const path of ["login", "callback", "methods"]) {
    const foreign = await send(`${url}/auth/${path}`, { headers: { host: "evil.example" } });
    assert.deepEqual([foreign.status, foreign.headers["set-cookie"]], [403, undefined], path);
  }
});

test("of two processes, one renews the tokens of a session, and its streams go on", async (t) => {
  const { url, provider, judged, log, ...service } = await startConsole(t, db, { processes: 2 });
  const browser = await service.logIn();
  const leave = new AbortController();
  const stream = service.watchJobs(browser, leave.signal);
  const first = await stream.next();
  assert.equal(first.done, false);
  let ended: unknown = null;
  const next = stream.next().catch((error: unknown) => {
    ended = error;
  });
  const tokens = async () => JSON.stringify(await service.db.query("select tokens from console_sessions"));
  const before = await tokens();
  provider.state.idTokenSeconds = 4 * 3_600;
  service.passes(HOUR_MS - 90_000);
  const looked = judged.length;
  await waitUntil("the session was looked at", () => judged.length > looked + 3);
  assert.equal(provider.asked("POST /token"), 1, "more than a minute before the end, nothing is renewed");
  service.passes(32_000);
  await waitUntil("the tokens are renewed", async () => (await tokens()) !== before);
  assert.equal(provider.asked("POST /token"), 2, "one renewal");
  service.passes(2 * HOUR_MS);
  const seen = judged.length;
  await waitUntil("the stream was judged by its new token", () => judged.length > seen + 3);
  assert.deepEqual([ended, judged.slice(seen).filter((kind) => kind === "refused")], [null, []]);
  assert.equal(identityOf(await service.whoAmI(browser)).subject, "login:ann");
  assert.equal(provider.asked("POST /token"), 2);
  leave.abort();
  await next;
  service.passes(12 * HOUR_MS);
  assert.equal((await service.whoAmI(browser)).status, 401, "a session ends after its hours");
  assert.deepEqual(log, ["login:ann by oidc"]);
});

test("a session whose renewal the issuer refuses ends, and its streams with it", async (t) => {
  const { provider, log, ...service } = await startConsole(t, db);
  const browser = await service.logIn();
  const stream = service.watchJobs(browser, new AbortController().signal);
  await stream.next();
  provider.people.delete("ann");
  service.passes(HOUR_MS - 59_000);
  await assert.rejects(stream.next(), /the stream ends here, because the session has ended; log in again/);
  assert.equal((await service.whoAmI(browser)).status, 401);
  assert.match(log.join("\n"), /^login:ann by oidc\nlogin:ann: .+$/);
  assert.deepEqual(await service.db.query("select 1 from console_sessions"), []);
});

test("while the issuer is away, nobody logs in, and sessions go on until it is back", async (t) => {
  const { url, provider, log, ...service } = await startConsole(t, db);
  provider.state.isThere = false;
  const away = async (response: Response) => {
    assert.deepEqual([response.status, response.headers.getSetCookie()], [503, []]);
    assert.equal(
      await response.text(),
      `the issuer ${provider.issuer} does not answer as it should; try again later\n`,
    );
  };
  await away(await fetch(`${url}/auth/login`, { redirect: "manual" }));
  assert.match(log[0] ?? "", /^logins at the issuer: .*unexpected HTTP response/);
  provider.state.isThere = true;
  await away(await fetch(`${url}/auth/login`, { redirect: "manual" }));
  assert.equal(provider.asked("GET /.well-known/openid-configuration"), 1, "it is not asked again at once");
  service.passes(5_000);
  const browser = await service.logIn();
  const tokens = async () => JSON.stringify(await service.db.query("select tokens from console_sessions"));
  const before = await tokens();
  provider.state.isThere = false;
  service.passes(HOUR_MS - 59_000);
  await waitUntil("a renewal has failed", () => provider.asked("POST /token") === 2);
  assert.equal(identityOf(await service.whoAmI(browser)).subject, "login:ann");
  provider.state.isThere = true;
  service.passes(31_000);
  await waitUntil("the tokens are renewed", async () => (await tokens()) !== before);
  assert.equal(identityOf(await service.whoAmI(browser)).subject, "login:ann");
});

test("a stream ends with the token of its session if nothing renews it", async (t) => {
  const { url, ...service } = await startConsole(t, db);
  const browser = new TestBrowser();
  assert.equal((await service.postToken(browser, service.robotToken)).status, 200);
  const stream = service.watchJobs(browser, new AbortController().signal);
  await stream.next();
  service.passes(HOUR_MS + 1_000);
  await assert.rejects(stream.next(), /the stream ends here, because/);
});

test("a browser logs in with the token of a robot, which a wrong one does not replace", async (t) => {
  const { url, robotToken, postToken, whoAmI, log } = await startConsole(t, db, { console: null });
  const browser = new TestBrowser();
  const made = await postToken(browser, ` ${robotToken}\n`);
  const { subject, expireTime } = (await made.json()) as { subject: string; expireTime: string };
  assert.deepEqual([made.status, subject], [200, "robot:ci"]);
  const leftMs = Date.parse(expireTime) - Date.now();
  assert.ok(leftMs > 0 && leftMs <= HOUR_MS, "the session ends with its token");
  assert.equal(identityOf(await whoAmI(browser)).subject, "robot:ci");
  const session = sessionOf(browser, url);

  const refusals: readonly (readonly [unknown, Readonly<Record<string, string>>, number, RegExp])[] = [
    [`gwt_${"x".repeat(43)}`, {}, 401, /"unauthenticated","message":"the caller is not known: there is no robot/],
    ["a b", {}, 400, /"message":"token: must be a text of 1 to 16384 printable characters/],
    ["x".repeat(16_385), {}, 400, /token: must be a text/],
    [{ token: robotToken, more: 1 }, {}, 400, /token: must be .* the only member/],
    ["x".repeat(40_000), {}, 429, /the body of the request has more than 32768 bytes/],
    [robotToken, { "content-type": "text/plain" }, 400, /the content type must be application\/json/],
    [robotToken, { origin: "https://evil.example" }, 403, /a page of .* may not call this service/],
  ];
  for (const [token, headers, status, message] of refusals) {
    const response = await postToken(browser, token, headers);
    assert.equal(response.status, status, message.source);
    assert.match(await response.text(), message);
    assert.deepEqual(response.headers.getSetCookie(), []);
  }
  assert.equal(sessionOf(browser, url), session);
  const rows = await db.query("select * from console_sessions");
  assert.equal(rows.length, 1);

  assert.equal((await postToken(browser, robotToken)).status, 200);
  assert.notEqual(sessionOf(browser, url), session);
  assert.equal((await db.query("select * from console_sessions")).length, 1, "the earlier session has ended");
  assert.deepEqual(log, ["robot:ci by robot", "robot:ci by robot", "robot:ci: its browser logged in again"]);
  const login = await fetch(`${url}/auth/login`, { redirect: "manual" });
  assert.deepEqual([login.status, login.headers.getSetCookie()], [400, []]);
  assert.match(await login.text(), /lets nobody log in at an issuer: its authentication file has no console/);
});

test("a reader of the database can use neither a session nor its tokens", async (t) => {
  const { url, robotToken, postToken, whoAmI } = await startConsole(t, db);
  const browser = new TestBrowser();
  await postToken(browser, robotToken);
  const [row] = await db.query<{ readonly id_hash: string }>("select * from console_sessions");
  assert.ok(row !== undefined);
  const text = JSON.stringify(row);
  assert.ok(!text.includes(robotToken) && !text.includes(robotToken.slice(4)));
  assert.ok(!text.includes(sessionOf(browser, url) ?? "-"));
  const thief = new TestBrowser();
  for (const stolen of [row.id_hash, Buffer.from(row.id_hash, "hex").toString("base64url")]) {
    thief.cookies(url).set("gangway", stolen);
    assert.equal((await whoAmI(thief)).status, 401);
  }
  // Tokens that are moved to the row of another session do not open there.
  const other = new TestBrowser();
  await postToken(other, robotToken);
  await db.query("update console_sessions set tokens = (select tokens from console_sessions where id_hash = $1)", [
    row.id_hash,
  ]);
  assert.deepEqual([(await whoAmI(browser)).status, (await whoAmI(other)).status], [200, 401]);
});

test("without a key nobody logs in, and the answer says which settings are missing", async (t) => {
  const { url, robotToken, postToken } = await startConsole(t, db, { key: null });
  const offered = await (await fetch(`${url}/auth/methods`)).json();
  assert.deepEqual(offered, { needed: true, token: false, issuer: null, caller: null });
  for (const response of [await postToken(new TestBrowser(), robotToken), await fetch(`${url}/auth/login`)]) {
    assert.equal(response.status, 400);
    assert.match(await response.text(), /has no key to encrypt sessions with: set GANGWAY_CREDENTIALS_KEY/);
  }
});
