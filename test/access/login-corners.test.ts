/** Browsers that leave, come back twice or by another name, and tokens at the end of their time. */
import assert from "node:assert/strict";
import { request as httpRequest } from "node:http";
import { after, before, test } from "node:test";
import type { Db } from "../../src/adapters/store/db/db.ts";
import { type LimitCalls, NO_CALL_LIMITS, UNLIMITED_CALL } from "../../src/core/access/call-limits.ts";
import { waitUntil } from "../support/bounded.ts";
import { TestBrowser } from "../support/browser.ts";
import { openMemoryDb } from "../support/databases.ts";
import { startConsole } from "./console.ts";

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
