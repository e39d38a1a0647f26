import type { Db, Executor } from "../../../src/adapters/store/db/db.ts";
import { type Breach, breachOf } from "./check-locks.ts";
import { EXCEPTIONS } from "./order.ts";

/** The files of the store, with their functions, in a stack. Those of `db` only run what others pass to them. */
const STORE_FRAME = /at (?:async )?(?:(\S+) )?\(?file:\/\/\S*\/(src\/adapters\/store\/(?!db\/)[\w/-]+\.ts):/g;
/** Deep enough to see the function of the store behind every helper. */
const FRAMES = 16;

/** Breaches of this process. The code under test may catch the error of a breach and go on. */
const breaches: string[] = [];

/** Throws if a transaction of this process broke the order. */
export function requireNoBreach(): void {
  if (breaches.length > 0) throw new Error(breaches.join("\n"));
}

/** The verdicts on sequences of statements: the same ones come again and again. */
const verdicts = new Map<string, Breach | null>();

/** A place in the store. */
type Frame = { readonly file: string; readonly name: string };

/** What tests of the check itself look at. */
type Watching = {
  /** Told the files of the store behind each statement. */
  readonly seen?: (file: string) => void;
  /** Where a transaction began. Omitted: as the stack says. */
  readonly place?: () => Frame | null;
  /** Told the text of a breach. Omitted: it fails the process at its end. */
  readonly report?: (breach: string) => void;
};

/**
 * A database that checks each transaction of the store against the order of locks, at its end, and fails it if it
 * breaks the order. A statement alone is a transaction too. Does not check what tests themselves do.
 */
export function checkedDb(db: Db, watching: Watching = {}): Db {
  const noted = (at: Error): Error => {
    if (watching.seen !== undefined) for (const { file } of framesOf(at.stack ?? "")) watching.seen(file);
    return at;
  };
  return {
    ...db,
    query: async (text, params) => {
      check([text], noted(here()), watching);
      return db.query(text, params);
    },
    tx: async (fn) => {
      const at = noted(here());
      return db.tx(async (tx) => {
        const statements: string[] = [];
        const query: Executor["query"] = (text, params) => {
          if (watching.seen !== undefined) noted(here());
          statements.push(text);
          return tx.query(text, params);
        };
        try {
          return await fn({ query });
        } finally {
          check(statements, at, watching);
        }
      });
    },
  };
}

/** The place of a call. Its text is made only when it is read. */
function here(): Error {
  const before = Error.stackTraceLimit;
  Error.stackTraceLimit = FRAMES;
  const at = new Error("here");
  Error.stackTraceLimit = before;
  return at;
}

function check(statements: readonly string[], at: Error, watching: Watching): void {
  const breach = verdictOn(statements);
  if (breach === null) return;
  const frame = watching.place === undefined ? frameOf(at.stack ?? "") : watching.place();
  if (frame === null || EXCEPTIONS[`${frame.file} ${frame.name}`] !== undefined) return;
  const number = `${statements.indexOf(breach.statement) + 1} of ${statements.length}`;
  const text = `${frame.file}, ${frame.name}: statement ${number} ${breach.rule}: ${breach.statement}`;
  if (watching.report === undefined) breaches.push(text);
  else watching.report(text);
  throw new Error(text);
}

function verdictOn(statements: readonly string[]): Breach | null {
  const key = statements.join("\0");
  const known = verdicts.get(key);
  if (known !== undefined) return known;
  const verdict = breachOf(statements);
  verdicts.set(key, verdict);
  return verdict;
}

/** The function of the store that is nearest in a stack. Null: none is. */
export function frameOf(stack: string): Frame | null {
  return framesOf(stack)[0] ?? null;
}

function framesOf(stack: string): readonly Frame[] {
  return [...stack.matchAll(STORE_FRAME)].map(([, name = "a function", file = ""]) => ({ file, name }));
}
