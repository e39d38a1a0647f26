import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { after, before, beforeEach, test } from "node:test";
import type { Db } from "../../../src/adapters/store/db/db.ts";
import type { SessionRecord } from "../../../src/core/access/console-session.ts";
import { onEachDatabase } from "../../support/databases.ts";
import { freshStore, type TestStore } from "../db.ts";

const hashOf = (secret: string) => createHash("sha256").update(secret).digest("hex");
const sessionOf = (secret: string, members: Partial<SessionRecord> = {}): SessionRecord => ({
  idHash: hashOf(secret),
  subject: "login:ann",
  tokens: { key: "default", text: secret },
  expiresAtMs: 1_000,
  renewAtMs: null,
  ...members,
});

onEachDatabase((openDb) => {
  let db: Db;
  let store: TestStore["sessions"];
  before(async () => {
    db = await openDb();
  });
  after(() => db.close());
  beforeEach(async () => {
    store = (await freshStore(db)).store.sessions;
  });
  const found = async (secret: string, nowMs = 100) => (await store.find(hashOf(secret), nowMs)) !== null;

  test("a session is found by its hash until it expires, and is deleted once", async () => {
    const session = sessionOf("a", { renewAtMs: 500 });
    assert.equal(await store.make(session, 100), "made");
    assert.deepEqual(await store.find(session.idHash, 999), session);
    assert.equal(await store.find(session.idHash, 1_000), null);
    assert.deepEqual(await store.delete(session.idHash), session);
    assert.equal(await store.delete(session.idHash), null);
    assert.equal(await found("a"), false);
  });

  test("a subject has at most 20 sessions, and the oldest goes", async () => {
    for (let at = 0; at < 21; at++) await store.make(sessionOf(`s${at}`), 100 + at);
    await store.make(sessionOf("other", { subject: "login:bob" }), 200);
    const secrets = Array.from({ length: 21 }, (_, at) => `s${at}`);
    const left = await Promise.all(secrets.map((secret) => found(secret)));
    assert.deepEqual(
      left,
      secrets.map((secret) => secret !== "s0"),
    );
    assert.equal(await found("other"), true);
  });

  test("21 logins at once leave 20 sessions", async () => {
    await Promise.all(Array.from({ length: 21 }, (_, at) => store.make(sessionOf(`s${at}`), 100)));
    const [row] = await db.query<{ n: number }>("select count(*)::int as n from console_sessions");
    assert.equal(row?.n, 20);
  });

  test("a login removes sessions that have expired", async () => {
    await store.make(sessionOf("old", { expiresAtMs: 200 }), 100);
    await store.make(sessionOf("new"), 200);
    const rows = await db.query<{ id_hash: string }>("select id_hash from console_sessions");
    assert.deepEqual(rows, [{ id_hash: hashOf("new") }]);
  });

  test("sessions that have expired are deleted without a login", async () => {
    await store.make(sessionOf("old", { expiresAtMs: 200 }), 100);
    await store.make(sessionOf("new"), 100);
    await store.deleteExpired(200);
    assert.deepEqual(await db.query("select id_hash from console_sessions"), [{ id_hash: hashOf("new") }]);
  });

  test("the service keeps a number of sessions, and then takes no more", async () => {
    await db.query(
      `insert into console_sessions (id_hash, subject, tokens, create_ms, expires_ms)
       select lpad(to_hex(n), 64, '0'), 'login:' || n, '{}', 1, 1000 from generate_series(1, 10000) n`,
    );
    assert.equal(await store.make(sessionOf("a"), 100), "full");
    assert.equal(await store.make(sessionOf("b", { subject: "login:7" }), 100), "full");
    assert.equal(await store.make(sessionOf("c", { expiresAtMs: 3_000 }), 1_000), "made");
  });

  test("of two processes that renew at once, one gets each session", async () => {
    for (let at = 0; at < 10; at++) await store.make(sessionOf(`s${at}`, { renewAtMs: 500 }), 100);
    await store.make(sessionOf("later", { renewAtMs: 501 }), 100);
    await store.make(sessionOf("never"), 100);
    const due = { nowMs: 500, claimMs: 30_000, max: 100 };
    const claims = (await Promise.all([store.claimDue(due), store.claimDue(due)])).flat();
    const wanted = Array.from({ length: 10 }, (_, at) => hashOf(`s${at}`));
    assert.deepEqual(claims.map(({ idHash }) => idHash).sort(), wanted.sort());
    assert.deepEqual(await store.claimDue(due), []);
    const later = await store.claimDue({ ...due, nowMs: 999 });
    assert.deepEqual(
      later.map(({ idHash }) => idHash),
      [hashOf("later")],
      "a machine whose clock is ahead gets no session that another one renews",
    );
    await db.query("update console_sessions set claim_ms = claim_ms - 30000");
    assert.equal((await store.claimDue({ ...due, nowMs: 600, max: 7 })).length, 7);
    assert.equal((await store.claimDue({ ...due, nowMs: 600 })).length, 4);
    await db.query("update console_sessions set claim_ms = claim_ms - 30000");
    assert.deepEqual(await store.claimDue({ ...due, nowMs: 1_000 }), [], "they have expired");
  });

  test("renewed tokens are kept, unless another process has claimed the session since", async () => {
    const session = sessionOf("a", { renewAtMs: 500 });
    await store.make(session, 100);
    const claim = async () => {
      const [claimed] = await store.claimDue({ nowMs: 500, claimMs: 30_000, max: 20 });
      assert.ok(claimed !== undefined);
      return claimed;
    };
    const first = await claim();
    await db.query("update console_sessions set claim_ms = claim_ms - 60000");
    const second = await claim();
    const renewed = { idHash: session.idHash, tokens: { text: "new" }, expiresAtMs: 900, renewAtMs: 500 };
    assert.equal(await store.renew(renewed, first.claimMs), false);
    assert.equal(await store.deleteClaimed(first), false);
    assert.deepEqual((await store.find(session.idHash, 650))?.tokens, session.tokens);
    assert.equal(await store.renew(renewed, second.claimMs), true);
    assert.deepEqual(await store.find(session.idHash, 650), { ...renewed, subject: session.subject });
    assert.equal(await store.deleteClaimed(second), false, "the claim was given back");
    assert.equal(await store.deleteClaimed(await claim()), true);
    assert.equal(await store.find(session.idHash, 650), null);
  });
});
