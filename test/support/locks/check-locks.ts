/** Checks the statements of a transaction against the order of locks. */
import { foreignKeysOf, migrationTexts } from "./foreign-keys.ts";
import { GRANTS_WAIT_FOR, LOCK_ORDER, type LockedTable, STATEMENTS_AFTER_MAX } from "./order.ts";
import { type LockMode, locksOf, type RowLock, type Schema } from "./read-sql.ts";

/** A statement that breaks a rule. */
export type Breach = { readonly statement: string; readonly rule: string };

const TABLES = new Map(LOCK_ORDER.map((table) => [table.name, table]));
const PLACES = new Map(LOCK_ORDER.map(({ name }, at) => [name, at]));

const SCHEMA: Schema = {
  keysOf: (table) => TABLES.get(table)?.keys ?? [],
  foreignKeys: foreignKeysOf(migrationTexts()),
};

/** A lock is covered by one that is as strong. New rows are the transaction's own, so that it may do all with them. */
const STRENGTH: Readonly<Record<LockMode, number>> = {
  "key share": 0,
  share: 1,
  "no key update": 2,
  update: 3,
  insert: 4,
  table: 4,
};

/** Returns the first statement of a transaction that breaks a rule. Null: none does. */
export function breachOf(statements: readonly string[]): Breach | null {
  const held = new Map<string, LockMode>();
  let after = 0;
  for (const statement of statements) {
    if (GRANTS_WAIT_FOR.some((table) => held.has(table))) after += 1;
    for (const lock of locksOf(statement, SCHEMA)) {
      const rule = brokenBy(lock, held);
      if (rule !== null) return { statement, rule };
      const before = held.get(lock.table);
      if (before === undefined || STRENGTH[before] < STRENGTH[lock.mode]) held.set(lock.table, lock.mode);
    }
    if (after > STATEMENTS_AFTER_MAX) {
      const locked = GRANTS_WAIT_FOR.join(" or ");
      const rule = `is number ${after} after a lock of ${locked}, of at most ${STATEMENTS_AFTER_MAX}: grants wait`;
      return { statement, rule };
    }
  }
  return null;
}

/** How many statements of a transaction follow its first lock that grants wait for. */
export function statementsGrantsWaitFor(statements: readonly string[]): number {
  const isWaitedFor = ({ table }: RowLock) => GRANTS_WAIT_FOR.includes(table);
  const first = statements.findIndex((statement) => locksOf(statement, SCHEMA).some(isWaitedFor));
  return first < 0 ? 0 : statements.length - first - 1;
}

/** A table that is locked again is taken to be locked at the same rows. */
function brokenBy({ table, mode, rows }: RowLock, held: ReadonlyMap<string, LockMode>): string | null {
  const known = TABLES.get(table);
  if (known === undefined) return `locks ${table}, which has no place in the order of locks`;
  // Who holds rows for update waits for it when it writes them.
  if (mode === "table") return `locks the whole table ${table}: lock a row`;
  const before = held.get(table);
  if (before !== undefined) {
    const isCovered = mode === "insert" || STRENGTH[mode] <= STRENGTH[before] || isOpen(known, mode, held);
    return isCovered ? null : `locks ${table} for ${mode}, after the transaction has locked it for ${before} only`;
  }
  const later = [...held.keys()].find((other) => placeOf(other) > placeOf(table));
  if (later !== undefined) return `locks ${table} after ${later}, which comes later in the order of locks`;
  return rows === "many" && !isOpen(known, mode, held) ? `locks several rows of ${table} in no order` : null;
}

/** True if rows of the table may be locked in any order. */
function isOpen({ gates = [], isLog }: LockedTable, mode: LockMode, held: ReadonlyMap<string, LockMode>): boolean {
  return (isLog === true && mode === "insert") || gates.some((gate) => held.has(gate));
}

function placeOf(table: string): number {
  return PLACES.get(table) ?? 0;
}
