/** Browsers that leave, come back twice or by another name, and tokens at the end of their time. */
import assert from "node:assert/strict";
import { request as httpRequest, type ServerResponse } from "node:http";
import { after, before, test } from "node:test";
import type { Db } from "../../src/adapters/store/db/db.ts";
import { type LimitCalls, NO_CALL_LIMITS, UNLIMITED_CALL } from "../../src/core/access/call-limits.ts";
import { openRaw } from "../api/web/http.ts";
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

/** Counts the places of calls that are not given back. */
function countingLimits() {
  const count = { open: 0 };
  const enter = () => {
    count.open += 1;
    let holds = true;
    const leave = () => {
      if (holds) count.open -= 1;
      holds = false;
    };
    return { ...UNLIMITED_CALL, isLimited: true, leave };
  };
  const limits: LimitCalls = { ...NO_CALL_LIMITS, enter };
  return { count, limits };
}

test("a browser that leaves while the issuer is asked takes no place, and gets no session", async (t) => {
  const { count, limits } = countingLimits();
  const { url, provider, log, ...service } = await startConsole(t, db, { limits });
  await service.logIn();
  await waitUntil("a finished login has given its place back", () => count.open === 0);
  const [sessions, asked] = [log.length, provider.asked("POST /token")];
  const { promise: isOpen, resolve: open } = Promise.withResolvers<void>();
  provider.state.onToken = (_, go) => void isOpen.then(go);
  const browser = new TestBrowser();
  const callback = await service.goToIssuer(browser);
  const cookie = [...browser.cookies(url)].map(([name, value]) => `${name}=${value}`).join("; ");
  const leaving = httpRequest(callback, { headers: { cookie }, agent: false });
  leaving.on("error", () => {});
  leaving.end();
  await waitUntil("the issuer is asked", () => provider.asked("POST /token") === asked + 1);
  const closed = new Promise((resolve) => leaving.once("close", resolve));
  leaving.destroy();
  await closed;
  await (await fetch(`${url}/auth/methods`)).text();
  open();
  provider.state.onToken = null;
  await service.logIn();
  await waitUntil("all places are given back", () => count.open === 0);
  assert.equal(log.length, sessions + 1, `a login of the browser that stayed: ${log}`);
  assert.equal((await db.query("select 1 from console_sessions")).length, 2);
});

const WRONG_ANSWERS: Readonly<Record<string, (response: ServerResponse) => void>> = {
  "a page": (response) => response.writeHead(200, { "content-type": "text/html" }).end("<p>secret of the proxy</p>"),
  "an error of a proxy": (response) => response.writeHead(502).end("secret of the proxy"),
  "too many requests": (response) => sendJson(response, 429, { error: "too_many_requests" }),
  "a wrong secret": (response) => sendJson(response, 401, { error: "invalid_client" }),
};

function sendJson(response: ServerResponse, status: number, body: object) {
  response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
}

test("a login is UNAVAILABLE while the issuer gives no answer about its code, and the log says why", async (t) => {
  const { url, provider, log, ...service } = await startConsole(t, db);
  for (const [name, answer] of Object.entries(WRONG_ANSWERS)) {
    provider.state.onToken = answer;
    const before = log.length;
    const browser = new TestBrowser();
    const back = await browser.send(await service.goToIssuer(browser));
    assert.deepEqual([back.status, browser.cookies(url).has("gangway")], [503, false], name);
    assert.equal(await back.text(), `the issuer ${provider.issuer} does not answer as it should; try again later\n`);
    assert.match(log.slice(before).join(), /^logins at the issuer: /, name);
  }
});

test("a token that counts only because clocks differ begins no session", async (t) => {
  const { passes, postToken, whoAmI, tokenOf, ...service } = await startConsole(t, db);
  await service.logIn();
  const token = await tokenOf();
  passes(HOUR_MS + 20_000);
  assert.equal((await whoAmI(new TestBrowser(), { authorization: `Bearer ${token}` })).status, 200);
  const answer = await postToken(new TestBrowser(), token);
  assert.equal(answer.status, 401, await answer.clone().text());
  assert.match(await answer.text(), /"message":"the caller is not known: the token has expired"/);
});

test("sessions may live for parts of a millisecond", async (t) => {
  for (const sessionHours of [0.3333333, 1e-9]) {
    const service = await startConsole(t, db, { console: { sessionHours } });
    await service.logIn();
    const answer = await service.postToken(new TestBrowser(), service.robotToken);
    assert.equal(answer.status, 200, await answer.text());
  }
});

test("of two tabs that log in, the second one comes back to a browser that is logged in", async (t) => {
  const { url, logIn, goToIssuer } = await startConsole(t, db);
  const browser = new TestBrowser();
  const first = await goToIssuer(browser, "/a");
  assert.equal((await browser.send(first.replace(/state=[^&]+/, "state=x"))).status, 401, "it has no session yet");
  await logIn(browser);
  const back = await browser.send(first);
  assert.deepEqual([back.status, back.headers.get("location")], [303, "/"]);
  browser.cookies(url).set("gangway", "x".repeat(43));
  assert.equal((await browser.send(first)).status, 401, "a session that does not count");
});

test("a login that begins at another name goes on at the name of the console", async (t) => {
  const { url, origin, whoAmI } = await startConsole(t, db);
  const browser = new TestBrowser();
  const start = `${url.replace("127.0.0.1", "localhost")}/auth/login?to=%2Fopenapi.json%3Fa%3Db`;
  const sent = await browser.send(start);
  const location = `${origin}/auth/login?to=%2Fopenapi.json%3Fa%3Db&moved=1`;
  assert.deepEqual([sent.status, sent.headers.get("location"), sent.headers.getSetCookie()], [303, location, []]);
  const { response } = await browser.open(start);
  assert.deepEqual([response?.status, response?.url], [200, `${origin}/openapi.json?a=b`]);
  assert.equal((await whoAmI(browser)).status, 200);
  const moved = await browser.send(`${url.replace("127.0.0.1", "localhost")}/auth/login?moved=1`);
  assert.match(moved.headers.get("location") ?? "", /^http.*\/auth\?/, "a browser is sent on once");
});

const WAITING: Readonly<Record<string, readonly [readonly string[], RegExp]>> = {
  "a wrong content type": [["POST /auth/token", "content-type: text/plain", "content-length: 9"], /^HTTP\/1.1 400 /],
  "a long body": [["POST /auth/token", "content-type: application/json", "content-length: 40000"], /^HTTP\/1.1 429 /],
  "a path without a body": [["GET /auth/methods", "content-length: 9"], /^HTTP\/1.1 200 /],
  "what a token may have": [
    ["POST /auth/token", "content-type: application/json", "content-length: 9"],
    /^HTTP\/1.1 100 /,
  ],
};
for (const [name, [[start, ...headers], answer]] of Object.entries(WAITING)) {
  test(`a client that waits before it sends its body is answered for ${name}`, async (t) => {
    const { url } = await startConsole(t, db, { console: null });
    const { socket, text } = openRaw(t, url);
    const lines = [`${start} HTTP/1.1`, `host: ${new URL(url).host}`, ...headers, "expect: 100-continue"];
    socket.write(`${lines.join("\r\n")}\r\n\r\n`);
    await waitUntil("there is an answer", () => text().includes("\r\n\r\n"));
    assert.match(text(), answer);
    socket.destroy();
  });
}
