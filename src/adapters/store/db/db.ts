/** Runs one statement with its parameters and returns its rows. A statement is one round trip. */
export type Executor = {
  readonly query: <R>(text: string, params?: readonly unknown[]) => Promise<readonly R[]>;
};

/**
 * A database. SQL functions take their executor as first argument: within a transaction every statement must use the
 * transaction's own executor. Otherwise a database with one connection would wait for itself.
 */
export type Db = Executor & {
  /**
   * Commits when `fn` resolves, rolls back when it throws. `fn` may run more than once, and awaits only its statements;
   * `ledger/read-both` alone awaits one read of the counters too. Statements run in the order of their calls. `fn` may
   * start several before it awaits the first, and need not await its last ones: they then share a round trip. The
   * transaction fails if one of them fails.
   */
  readonly tx: <T>(fn: (tx: Executor) => Promise<T>) => Promise<T>;
  readonly close: () => Promise<void>;
};

/** Thrown inside a transaction to roll it back with an expected outcome. */
class Undo<T> extends Error {
  readonly outcome: T;
  constructor(outcome: T) {
    super("transaction undone");
    this.outcome = outcome;
  }
}

/** A transaction that `undo(outcome)` may end: it rolls everything back, and the outcome is returned. */
export async function undoable<T>(db: Db, fn: (tx: Executor, undo: (outcome: T) => never) => Promise<T>): Promise<T> {
  try {
    return await db.tx((tx) =>
      fn(tx, (outcome) => {
        throw new Undo(outcome);
      }),
    );
  } catch (error) {
    if (error instanceof Undo) return (error as Undo<T>).outcome;
    throw error;
  }
}

/**
 * Does not wait for the last statements of a transaction, so that they share a round trip with its commit. `Db.tx`
 * fails if one of them fails.
 */
export function leaveToCommit(last: Promise<unknown>): void {
  last.catch(() => undefined);
}

/** An executor that remembers the statements that have not ended. `settled` throws if one of them fails. */
export function withPending({ query }: Executor): Executor & { readonly settled: () => Promise<unknown> } {
  const pending = new Set<Promise<unknown>>();
  return {
    query: <R>(text: string, params?: readonly unknown[]) => {
      const rows = query<R>(text, params);
      pending.add(rows);
      const end = () => void pending.delete(rows);
      rows.then(end, end);
      return rows;
    },
    settled: () => Promise.all(pending),
  };
}

/** One repeatable-read, read-only transaction: all its statements see the same commit. */
export function readSnapshot<T>(db: Db, fn: (tx: Executor) => Promise<T>): Promise<T> {
  return db.tx(async (tx) => {
    const set = tx.query("set transaction isolation level repeatable read, read only");
    const [result] = await Promise.all([fn(tx), set]);
    return result;
  });
}

/** The only row of a statement that always returns exactly one. */
export function onlyRow<R>(rows: readonly R[]): R {
  const [row] = rows;
  if (row === undefined || rows.length > 1) throw new Error(`expected one row, got ${rows.length}`);
  return row;
}

/**
 * A value as a parameter of type json or jsonb. It is text, so that no driver has to guess what an array or a string
 * means. Pass several documents as `jsonTexts`: one document that SQL takes apart must not hold the character NUL.
 */
export function json(value: unknown): string {
  return JSON.stringify(value);
}

/**
 * Several documents as a parameter of type text[]. Null is the null of SQL. In a JSON text, only quotes and backslashes
 * need an escape, so JSON itself can write it as an item of the list. That takes less time than the two replacements of
 * drivers.
 */
export function jsonTexts(values: readonly unknown[]): string {
  return `{${values.map((value) => (value === null ? "NULL" : JSON.stringify(json(value)))).join(",")}}`;
}

/** Text as a text column accepts it: PostgreSQL refuses the character NUL. */
export function storable(text: string): string {
  return text.replaceAll("\u0000", "\ufffd");
}
