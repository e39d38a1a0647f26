import assert from "node:assert/strict";
import { after, before, beforeEach, test } from "node:test";
import { listAudit } from "../../../src/adapters/store/admin/audit.ts";
import type { Db } from "../../../src/adapters/store/db/db.ts";
import { onEachDatabase } from "../../support/databases.ts";
import { freshStore, type TestStore } from "../db.ts";

onEachDatabase((openDb) => {
  let db: Db;
  let store: TestStore;
  before(async () => {
    db = await openDb();
  });
  after(() => db.close());
  beforeEach(async () => {
    store = (await freshStore(db)).store;
  });

  const entries = async () => {
    const filter = { actor: "system:gangway", action: "ReadSettings", subject: null } as const;
    const page = await listAudit(db, { filter, after: null, pageSize: 100 });
    assert.ok(page !== "badCursor");
    return page.entries.map(({ subject, details: { sha256, before: old, after: now } }) => [subject, sha256, old, now]);
  };

  test("settings of a file leave an entry when they differ from those of its last entry", async () => {
    const note = (variable: string, sha256: string, settings: unknown) =>
      store.access.noteSettings({ variable, file: "/etc/x.yaml", sha256, settings });
    await note("LIMITS", "a", { calls: 1 });
    // As another process that reads the same file, or as a restart.
    await note("LIMITS", "a", { calls: 1 });
    await note("ACCESS", "a", { only: true });
    await note("LIMITS", "b", { calls: 2 });
    await note("LIMITS", "c", null);
    await note("ACCESS", "a", { only: true });
    await note("LIMITS", "a", { calls: 1 });
    assert.deepEqual(await entries(), [
      ["LIMITS", "a", null, { calls: 1 }],
      ["LIMITS", "c", { calls: 2 }, null],
      ["LIMITS", "b", { calls: 1 }, { calls: 2 }],
      ["ACCESS", "a", null, { only: true }],
      ["LIMITS", "a", null, { calls: 1 }],
    ]);
  });
});
