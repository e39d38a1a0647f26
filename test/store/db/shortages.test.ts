/** What callers and operators see of a database that answers, but lacks room, memory or its files. */
import assert from "node:assert/strict";
import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { status } from "@grpc/grpc-js";
import type { Db } from "../../../src/adapters/store/db/db.ts";
import { openPglite } from "../../../src/adapters/store/db/pglite.ts";
import { notingShortages } from "../../../src/adapters/store/db/shortage.ts";
import { toStatus } from "../../../src/api/rpc/rpc-error.ts";
import { type Shortage, ShortageError, UnavailableError } from "../../../src/runtime/unavailable-error.ts";
import { addDatabase } from "../../support/data-folder.ts";
import { onEachDatabase } from "../../support/databases.ts";
import { noTinyDisk, TinyDisk } from "../../support/tiny-disk.ts";

/** Conditions of PostgreSQL by their codes. Null: the server is away, not short of anything. */
const UNAVAILABLE: Readonly<Record<string, Shortage | null>> = {
  "53000": "limit_reached",
  "53100": "disk_full",
  "53200": "out_of_memory",
  "53300": null,
  "53400": "limit_reached",
  "57000": null,
  "57014": null,
  "57P01": null,
  "57P02": null,
  "57P03": null,
  "57P04": null,
  "57P05": null,
  "58000": "io_error",
  "58030": "io_error",
  "58P01": "io_error",
  "58P02": "io_error",
};
/** Defects of a statement or of the data stay INTERNAL. */
const INTERNAL = ["22012", "23514", "42P01", "54000", "XX001", "XX002"];

const raise = (code: string) => `do $$ begin raise exception using errcode = '${code}', message = 'raised'; end $$`;

onEachDatabase((openDb) => {
  let db: Db;
  before(async () => {
    db = await openDb();
  });
  after(() => db.close());

  const thrownBy = (work: Promise<unknown>) =>
    work.then(
      () => null,
      (error: unknown) => error,
    );
  const answered = (error: unknown) => toStatus(error, () => {}).code;

  for (const [code, shortage] of Object.entries(UNAVAILABLE)) {
    test(`${code} of a query and of a transaction is UNAVAILABLE with a time to retry`, async () => {
      const tried = [db.query(raise(code)), db.tx((tx) => tx.query(raise(code)))];
      for (const error of await Promise.all(tried.map(thrownBy))) {
        assert.ok(error instanceof UnavailableError, String(error));
        assert.equal(error instanceof ShortageError ? error.shortage : null, shortage);
        const { code: grpc, metadata } = toStatus(error, () => assert.fail("it is no defect"));
        assert.equal(grpc, status.UNAVAILABLE);
        assert.match(String(metadata?.get("grpc-status-details-bin")[0]), /RetryInfo/);
        if (shortage !== null)
          assert.doesNotMatch(error.message, /raised/, "what the server says of its files reaches no caller");
      }
      assert.deepEqual(await db.query("select 1 as one"), [{ one: 1 }]);
    });
  }

  for (const code of INTERNAL) {
    test(`${code} is INTERNAL`, async () => {
      assert.equal(answered(await thrownBy(db.query(raise(code)))), status.INTERNAL);
    });
  }

  test("a shortage is counted, and said until a write with the same need succeeds and time has passed", async () => {
    let nowMs = 0;
    const seen: Shortage[] = [];
    const noting = notingShortages(db, {
      monotonicMs: () => nowMs,
      onShortage: (shortage) => void seen.push(shortage),
    });
    assert.equal(await noting.shortage(), null);
    await thrownBy(noting.query(raise("53100")));
    await thrownBy(noting.tx((tx) => tx.query(raise("53100"))));
    assert.deepEqual(seen, ["disk_full", "disk_full"]);
    assert.deepEqual(await noting.shortage(), { shortage: "disk_full", isNow: true });
    nowMs += 10_000;
    assert.deepEqual(await noting.shortage(), { shortage: "disk_full", isNow: false });
    nowMs += 30_000;
    assert.equal(await noting.shortage(), null);
    await thrownBy(noting.query(raise("53200")));
    assert.deepEqual(
      await noting.shortage(),
      { shortage: "out_of_memory", isNow: false },
      "one query may need too much",
    );
  });
});

/** Rows that no compression makes small. */
const FILL =
  "insert into filler select string_agg(md5(random()::text), ' ') from generate_series(1, 3000) g group by g % 99";

describe("an embedded database on a disk that fills", { skip: noTinyDisk() }, () => {
  for (const [what, mebibytes] of [
    ["its tables", 86],
    ["its log of changes", 80],
  ] as const) {
    test(`with no room for ${what}, calls are refused and none hangs; the next start has all rows`, async (t) => {
      const disk = TinyDisk.mount(mebibytes * 1024 * 1024);
      assert.ok(disk);
      t.after(() => disk.unmount());
      addDatabase(disk.folder);
      const spare = join(disk.folder, "spare");
      writeFileSync(spare, Buffer.alloc(18 * 1024 * 1024));
      const folder = join(disk.folder, "db");
      const db = await openPglite(folder);
      await db.query("create table filler (line text)");
      let written = 0;
      let refused: unknown = null;
      while (refused === null) {
        await db.query(FILL).then(
          () => {
            written += 1;
          },
          (error: unknown) => {
            refused = error;
          },
        );
      }
      assert.ok(refused instanceof ShortageError, String(refused));
      assert.equal(refused.shortage, "disk_full");
      await assert.rejects(
        db.tx((tx) => tx.query(FILL)),
        ShortageError,
      );
      await db.query("select 1").catch((error) => assert.ok(error instanceof ShortageError));
      rmSync(spare);
      await db.close();
      const again = await openPglite(folder);
      const [{ rows } = { rows: 0 }] = await again.query<{ rows: number }>("select count(*)::int as rows from filler");
      assert.equal(rows, written * 99);
      await again.close();
    });
  }
});
