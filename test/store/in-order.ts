/** Runs two operations on a real server so that the second one meets the first one in the middle of its transaction. */
import type { Db } from "../../src/adapters/store/db/db.ts";
import { waitUntil } from "../support/bounded.ts";

/** How many connections of this database wait for a lock. */
const WAITING = `
select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`;

/** Resolves once so many operations wait for locks, or the operation has ended without waiting. */
export async function awaitBlocked(db: Db, count: number, operation?: Promise<unknown>): Promise<void> {
  let ended = false;
  const end = () => {
    ended = true;
  };
  operation?.then(end, end);
  const isBlocked = async () => ended || (await db.query(WAITING)).length >= count;
  await waitUntil(`${count} wait for a lock`, isBlocked, { pollMs: 1 });
}

type HeldRow =
  | { readonly table: "installation" }
  | { readonly table: "namespaces" | "queues" | "clusters" | "quota_domains" | "jobs"; readonly name: string };

/**
 * Holds a row, starts `first`, which waits for it, then `second`, and lets the row go: the server gives it to those who
 * wait in the order in which they came. So `second` has read the database as it was before `first`, and goes on after
 * it.
 */
export async function inOrder<A, B>(
  db: Db,
  row: HeldRow,
  { first, second }: { readonly first: () => Promise<A>; readonly second: () => Promise<B> },
): Promise<readonly [A, B]> {
  const started = await db.tx(async (tx) => {
    if (row.table === "installation") await tx.query("select 1 from installation for update");
    else
      await tx.query(`select 1 from ${row.table} where ${row.table === "jobs" ? "uid" : "name"} = $1 for update`, [
        row.name,
      ]);
    const one = first();
    await awaitBlocked(db, 1, one);
    const other = second();
    await awaitBlocked(db, 2, other);
    // As an array, the transaction does not wait for them.
    return [one, other] as const;
  });
  return Promise.all(started);
}
