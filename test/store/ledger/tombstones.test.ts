import assert from "node:assert/strict";
import { after, before, beforeEach, test } from "node:test";
import type { Db } from "../../../src/adapters/store/db/db.ts";
import type { LedgerGrant } from "../../../src/core/quota/ledger.ts";
import { onEachDatabase } from "../../support/databases.ts";
import { ledgerAt } from "../../support/ledger-at.ts";
import type { TestStore } from "../db.ts";
import { NOW } from "../jobs.ts";
import { agrees, allocation, caller, freshLedger, POOL, releaseOf } from "../ledger-fixture.ts";

onEachDatabase((openDb) => {
  let db: Db;
  let store: TestStore;
  let epoch: number;
  let grant: Awaited<ReturnType<typeof freshLedger>>["grant"];
  before(async () => {
    db = await openDb();
  });
  after(() => db.close());
  beforeEach(async () => {
    ({ store, epoch, grant } = await freshLedger(db));
  });

  async function kinds(...grants: readonly LedgerGrant[]) {
    return (await ledgerAt(store, NOW).commit(epoch, grants)).map(({ kind }) => kind);
  }

  const bury = (of: Partial<Parameters<typeof releaseOf>[0]> = {}) =>
    ledgerAt(store, NOW).bury([releaseOf({ token: "t1", ...of })]);

  test("a grant that arrives after its release is refused for good; the next grant is not", async () => {
    const [late, fresh] = [grant([allocation(), allocation({ token: "t2" })]), grant([allocation()])];
    assert.deepEqual(await bury(), [{ kind: "notHeld" }]);
    assert.deepEqual(await kinds(late, late, fresh), ["gone", "gone", "committed"]);
    assert.deepEqual(await kinds(late), ["gone"]);
    assert.deepEqual(await ledgerAt(store).tombstones(9), []);
    const live = await ledgerAt(store).findLive([allocation(), allocation({ token: "t2" })]);
    assert.deepEqual(
      live.map(({ fence }) => fence),
      [fresh.fence],
    );
    const voided = await ledgerAt(store).unconfirmedReleases(9);
    assert.deepEqual(
      voided.map(({ token, fence }) => [token, fence]),
      [
        ["t1", late.fence],
        ["t2", late.fence],
      ],
    );
    assert.ok(await agrees(store));
  });

  test("a held token is released and leaves no tombstone", async () => {
    const made = grant([allocation()]);
    assert.deepEqual(await kinds(made), ["committed"]);
    assert.deepEqual(
      (await bury()).map(({ kind }) => kind),
      ["released"],
    );
    assert.deepEqual(await ledgerAt(store).tombstones(9), []);
    await ledgerAt(store).confirmReleases(await ledgerAt(store).unconfirmedReleases(9));
    assert.equal((await ledgerAt(store, NOW).readDomain())?.settled, true);
    assert.deepEqual(await kinds(grant([allocation()])), ["committed"]);
    assert.deepEqual(await bury({ holder: caller("other") }), [{ kind: "otherHolder", holder: caller("flyte") }]);
  });

  const others: Record<string, Partial<Parameters<typeof releaseOf>[0]>> = {
    "another holder": { holder: caller("other") },
    "another project": { project: "elsewhere" },
    "another namespace": { namespace: "elsewhere" },
    "another token": { token: "t3" },
  };
  for (const [name, of] of Object.entries(others)) {
    test(`a tombstone of ${name} refuses no grant`, async () => {
      await bury(of);
      assert.deepEqual(await kinds(grant([allocation()])), ["committed"]);
      assert.equal((await ledgerAt(store).tombstones(9)).length, 1);
      assert.equal((await ledgerAt(store, NOW).readDomain())?.settled, false);
    });
  }

  test("a tombstone stays across a new epoch, since a call in progress retries under it", async () => {
    await bury({ project: "vision", namespace: "team" });
    const raised = await ledgerAt(store).raiseEpoch(null);
    assert.ok(raised.kind === "raised");
    epoch = raised.epoch;
    const again = { ...grant([allocation()]), fence: (BigInt(epoch) << 32n) + 1n };
    assert.deepEqual(await kinds(again), ["gone"]);
  });

  test("tombstones are deleted as they were read, and new releases delete those older than an hour", async () => {
    await bury();
    const [first] = await ledgerAt(store).tombstones(9);
    assert.ok(first);
    assert.deepEqual(first, {
      pool: POOL,
      token: "t1",
      holder: caller("flyte"),
      project: null,
      namespace: null,
      atMs: NOW,
    });
    await ledgerAt(store, NOW + 1).bury([releaseOf({ token: "t1" })]);
    await ledgerAt(store).forgetTombstones([first]);
    const [second] = await ledgerAt(store).tombstones(9);
    assert.equal(second?.atMs, NOW + 1);
    await ledgerAt(store).forgetTombstones(second === undefined ? [] : [second]);
    assert.deepEqual(await ledgerAt(store).tombstones(9), []);
    assert.deepEqual(await kinds(grant([allocation()])), ["committed"]);
    await bury({ token: "old" });
    await ledgerAt(store, NOW + 3_600_001).bury([releaseOf({ token: "new" })]);
    assert.deepEqual(
      (await ledgerAt(store).tombstones(9)).map(({ token }) => token),
      ["new"],
    );
  });
});
