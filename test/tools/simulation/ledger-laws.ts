import assert from "node:assert/strict";
import type { Db } from "../../../src/adapters/store/db/db.ts";
import { isQueueFrozen, type LedgerView, PoolTree, type ViewedAllocation, viewLedger } from "./ledger-view.ts";

/**
 * Looks at the ledger after each step of a history, and compares it with the last look. Limits may fall below what is
 * used; then nothing more may be granted.
 */
export class LedgerLaws {
  readonly #db: Db;
  #last: LedgerView | null = null;
  /** The writes that the last look has seen. */
  #writes = "";
  /** How much was seen to be turned over to heirs, and how often a look saw something frozen that is in use. */
  readonly met = { turnedOver: 0, frozen: 0 };

  constructor(db: Db) {
    this.#db = db;
  }

  /** `who`: the step that was just done. `renames`: it may name heirs, change what they need, and withdraw them. */
  async look(who: string, renames = false): Promise<void> {
    const writes = await writesSeen(this.#db);
    if (writes === this.#writes) return;
    this.#writes = writes;
    const before = this.#last;
    const now = await viewLedger(this.#db);
    this.#last = now;
    if (before === null) return;
    checkPools(before, now, who);
    checkQueues(before, now, who);
    this.#checkFrozen(before, now, who);
    this.#checkHeirs(before, now, { who, renames });
  }

  /** Nothing is granted in what is frozen. What drains there may still be turned over to nominees. */
  #checkFrozen(before: LedgerView, now: LedgerView, who: string): void {
    const pools = new Set(now.pools.filter(({ frozen }) => frozen).map(({ name }) => name));
    const isFrozen = ({ pool, queue }: ViewedAllocation) => pools.has(pool) || isQueueFrozen(now, queue);
    const known = new Map(before.allocations.map((one) => [one.id, one]));
    for (const one of now.allocations.filter(isFrozen)) {
      this.met.frozen += 1;
      const was = known.get(one.id);
      const isGranted = !one.hold && (was === undefined || was.hold || was.amount < one.amount);
      assert.ok(!isGranted, `${who}: ${wordsOf(one)} was granted, and its queue or its pool is frozen`);
    }
  }

  /**
   * What drains for nominees is theirs: while one of them lacks tokens, all that ends or shrinks is turned over, and
   * nobody takes what is held for one.
   */
  #checkHeirs(before: LedgerView, now: LedgerView, { who, renames }: { who: string; renames: boolean }): void {
    const still = new Map(now.heirs.filter(({ nominated }) => nominated).map((heir) => [heir.id, heir]));
    const rows = new Map(now.allocations.map((one) => [one.id, one]));
    const known = new Set(before.allocations.map(({ id }) => id));
    for (const one of before.allocations) {
      const ended = one.amount - (rows.get(one.id)?.amount ?? 0);
      const heirs = one.heirs.filter((id) => before.heirs.some((heir) => heir.id === id && heir.pool === one.pool));
      const isHeirless = heirs.some((id) => !still.has(id)) || heirs.every((id) => still.get(id)?.lacks === 0);
      if (ended <= 0 || isHeirless || heirs.length === 0) continue;
      const cuts = now.allocations.filter(({ id, cutToken }) => !known.has(id) && cutToken === one.token);
      const turned = cuts.reduce((sum, { amount }) => sum + amount, 0);
      assert.equal(turned, ended, `${who}: of ${wordsOf(one)} ${ended} ended, and its heirs lack more`);
    }
    for (const one of now.allocations) if (one.cutToken !== null && !known.has(one.id)) this.met.turnedOver += 1;
    for (const hold of before.allocations.filter((one) => one.hold)) {
      const isNominee = [...still.values()].some(({ jobUid, pool }) => jobUid === hold.jobUid && pool === hold.pool);
      const kept = rows.get(hold.id);
      if (kept === undefined && isNominee && !renames) assert.fail(`${who}: ${wordsOf(hold)} was taken from a nominee`);
      if (kept !== undefined) assert.equal(kept.jobUid, hold.jobUid, `${who}: ${wordsOf(hold)} has another holder`);
    }
    if (renames) return;
    for (const { id, jobUid, pool, lacks } of before.heirs) {
      const got = heldFor(now, jobUid, pool) - heldFor(before, jobUid, pool);
      const served = lacks - (still.get(id)?.lacks ?? lacks);
      if (still.has(id)) assert.equal(got, served, `${who}: a nominee lacks ${served} less of ${pool}, and got ${got}`);
    }
  }
}

/** Another text once a transaction has written anything. */
async function writesSeen(db: Db): Promise<string> {
  const [row] = await db.query<{ xmax: string }>("select pg_snapshot_xmax(pg_current_snapshot())::text as xmax");
  return row?.xmax ?? "";
}

function heldFor({ allocations }: LedgerView, jobUid: string, pool: string): number {
  const holds = allocations.filter((one) => one.hold && one.jobUid === jobUid && one.pool === pool);
  return holds.reduce((sum, { amount }) => sum + amount, 0);
}

/** A pool of which more is used than before is within its limit. */
function checkPools(before: LedgerView, now: LedgerView, who: string): void {
  const used = (view: LedgerView, name: string) =>
    view.allocations.reduce((sum, { pool, amount }) => (pool === name ? sum + amount : sum), 0);
  for (const { name, quota } of now.pools) {
    const [was, is] = [used(before, name), used(now, name)];
    assert.ok(quota === null || is <= Math.max(was, quota), `${who}: pool ${name} uses ${is} of ${quota}, was ${was}`);
  }
}

/** So is each queue, in each pool. What is held for nominees may stand above a limit until they board. */
function checkQueues(before: LedgerView, now: LedgerView, who: string): void {
  const granted = ({ allocations }: LedgerView) => allocations.filter(({ hold }) => !hold);
  for (const { name: pool } of now.pools) {
    // By the limits of now, because those of before may have counted more as used above a queue.
    const [old, tree] = [new PoolTree(now, pool, granted(before)), new PoolTree(now, pool, granted(now))];
    for (const { name } of now.queues) {
      const [was, is, { ceiling }] = [old.used(name), tree.used(name), tree.quota(name)];
      assert.ok(is <= Math.max(was, ceiling), `${who}: queue ${name} uses ${is} of ${ceiling} ${pool}, was ${was}`);
    }
  }
}

function wordsOf({ pool, token, amount, queue, jobUid, hold }: ViewedAllocation): string {
  return `${hold ? "hold" : "token"} ${token} of ${amount} ${pool} in queue ${queue} of ${jobUid ?? "a caller"}`;
}
