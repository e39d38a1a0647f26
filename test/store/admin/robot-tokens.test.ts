import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { after, before, beforeEach, test } from "node:test";
import type { Db } from "../../../src/adapters/store/db/db.ts";
import type { RobotScope } from "../../../src/core/access/robot.ts";
import { onEachDatabase } from "../../support/databases.ts";
import { freshStore, type TestStore } from "../db.ts";

const hashOf = (secret: string) => createHash("sha256").update(secret).digest();
const OWN = { kind: "installation", name: "" } as const;
const robot = (name: string, secret = name, scope: RobotScope = OWN) => {
  return { name, owner: "ann", scope, expiresAtMs: 500, hash: hashOf(secret) };
};
const bounds = { nowMs: 100, max: 3, ownedMax: null };

onEachDatabase((openDb) => {
  let db: Db;
  let store: TestStore["robots"];
  before(async () => {
    db = await openDb();
  });
  after(() => db.close());
  beforeEach(async () => {
    store = (await freshStore(db)).store.robots;
  });

  test("a robot is found by the hash of its secret alone, and its use is recorded", async () => {
    const times = { createTimeMs: 100, expiresAtMs: 500, lastUseMs: null, revokedMs: null };
    const made = { name: "ci", owner: "ann", scope: OWN, ...times };
    assert.deepEqual(await store.makeRobot(robot("ci", "secret"), bounds), { kind: "made", robot: made });
    assert.deepEqual(await store.findRobot(hashOf("secret")), made);
    assert.equal(await store.findRobot(hashOf("Secret")), null);
    await store.noteUse("ci", 200);
    await store.noteUse("ci", 150);
    assert.equal((await store.findRobot(hashOf("secret")))?.lastUseMs, 200);
    assert.ok(!JSON.stringify(await db.query("select * from robot_tokens")).includes("secret"));
  });

  test("a name is given once for ever, and a token is revoked for ever", async () => {
    await store.makeRobot(robot("ci"), bounds);
    assert.deepEqual(await store.makeRobot(robot("ci", "other"), bounds), { kind: "exists" });
    assert.equal((await store.revokeRobot("ci", 300))?.revokedMs, 300);
    assert.equal((await store.revokeRobot("ci", 400))?.revokedMs, 300);
    assert.equal((await store.findRobot(hashOf("ci")))?.revokedMs, 300);
    assert.deepEqual(await store.makeRobot(robot("ci", "other"), bounds), { kind: "exists" });
    assert.equal(await store.revokeRobot("nobody", 1), null);
  });

  test("there are at most so many robots that are not revoked, and a list has pages", async () => {
    for (const name of ["c", "a", "b"]) await store.makeRobot(robot(name), bounds);
    assert.deepEqual(await store.makeRobot(robot("d"), bounds), { kind: "full", max: 3 });
    await store.revokeRobot("a", 300);
    assert.equal((await store.makeRobot(robot("d"), bounds)).kind, "made");
    const names: string[] = [];
    let after: string | null = null;
    do {
      const page = await store.listRobots({ after, pageSize: 3, listed: null });
      assert.ok(page !== "badCursor");
      names.push(...page.robots.map(({ name }) => name));
      after = page.next;
    } while (after !== null);
    assert.deepEqual(names, ["a", "b", "c", "d"]);
    assert.equal(await store.listRobots({ after: "nonsense", pageSize: 3, listed: null }), "badCursor");
  });

  test("an owner has at most so many robots whose tokens count, also if it makes them at once", async () => {
    const own = { nowMs: 100, max: 100, ownedMax: 2 };
    await store.makeRobot({ ...robot("expired"), expiresAtMs: 100 }, { ...own, nowMs: 50 });
    await store.makeRobot({ ...robot("other"), owner: "bob" }, own);
    const made = await Promise.all(["a", "b", "c", "d", "e"].map((name) => store.makeRobot(robot(name), own)));
    const full = made.filter(({ kind }) => kind === "ownerFull");
    assert.deepEqual(
      full,
      Array.from({ length: 3 }, () => ({ kind: "ownerFull", max: 2 })),
    );
    const [first] = made.flatMap((one) => (one.kind === "made" ? [one.robot.name] : []));
    await store.revokeRobot(first ?? "", 100);
    assert.equal((await store.makeRobot(robot("f"), own)).kind, "made");
    assert.deepEqual(await store.makeRobot(robot("g"), { ...own, ownedMax: 0 }), { kind: "ownerFull", max: 0 });
  });
});
