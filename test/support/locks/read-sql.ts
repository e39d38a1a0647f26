/** A small reader of SQL: which tables a statement locks rows of, in the order in which it runs. */
import type { ForeignKey } from "./foreign-keys.ts";

/** From weak to strong. `insert`: of new rows, which are the transaction's own. */
export type LockMode = "key share" | "share" | "no key update" | "update" | "insert" | "table";

export type RowLock = {
  readonly table: string;
  readonly mode: LockMode;
  /** How many rows: one, several in a stated order, or several in no order. */
  readonly rows: "one" | "ordered" | "many";
};

/** The keys of tables, and the foreign keys between them. */
export type Schema = {
  readonly keysOf: (table: string) => readonly (readonly string[])[];
  readonly foreignKeys: readonly ForeignKey[];
};

type Tokens = readonly string[];

const QUERY = new Set(["select", "with", "insert", "update", "delete"]);

/** Reads the locks of a statement. */
export function locksOf(sql: string, schema: Schema): readonly RowLock[] {
  return statementLocks(tokensOf(sql), schema);
}

function tokensOf(sql: string): Tokens {
  const bare = sql.replace(/--.*$/gm, "").replace(/'(?:[^']|'')*'/g, "''");
  return bare.match(/"[^"]*"|\$\d+|[A-Za-z_]\w*|\d+|''|[^\s]/g)?.map((token) => token.toLowerCase()) ?? [];
}

/**
 * The parts of a statement run in this order: the parts of its `with` that others read, as the text has them; the
 * statement itself; and then, the last first, parts that write and that nothing reads.
 */
function statementLocks(tokens: Tokens, schema: Schema): readonly RowLock[] {
  const { parts, main } = withParts(tokens);
  const isRead = ({ name }: Part, at: number) =>
    [...parts.slice(at + 1).map(({ body }) => body), main].some((body) => reads(body, name));
  const read = parts.filter(isRead);
  const unread = parts.filter((part, at) => !isRead(part, at) && part.body[0] !== "select");
  const names = new Set(parts.map(({ name }) => name));
  return [
    ...read.flatMap(({ body }) => statementLocks(body, schema)),
    ...plainLocks(main, names, schema),
    ...unread.reverse().flatMap(({ body }) => statementLocks(body, schema)),
  ];
}

type Part = { readonly name: string; readonly body: Tokens };

/** Takes a statement's `with` apart. */
function withParts(tokens: Tokens): { readonly parts: readonly Part[]; readonly main: Tokens } {
  if (tokens[0] !== "with") return { parts: [], main: tokens };
  const parts: Part[] = [];
  let at = 1;
  for (;;) {
    const name = tokens[at] ?? "";
    const open = tokens.indexOf("(", tokens.indexOf("as", at));
    const close = closing(tokens, open);
    parts.push({ name, body: tokens.slice(open + 1, close) });
    if (tokens[close + 1] !== ",") return { parts, main: tokens.slice(close + 1) };
    at = close + 2;
  }
}

function closing(tokens: Tokens, open: number): number {
  let depth = 0;
  for (let at = open; at < tokens.length; at += 1) {
    if (tokens[at] === "(") depth += 1;
    if (tokens[at] === ")") depth -= 1;
    if (depth === 0) return at;
  }
  throw new Error(`a statement has a bracket that nothing closes: ${tokens.join(" ")}`);
}

function reads(body: Tokens, name: string): boolean {
  return body.some((token, at) => token === name && /^(from|join|using|,)$/.test(body[at - 1] ?? ""));
}

/** The locks of a statement without a `with`: those of the queries in it, then its own. */
function plainLocks(tokens: Tokens, parts: ReadonlySet<string>, schema: Schema): readonly RowLock[] {
  const inner: RowLock[] = [];
  const flat: string[] = [];
  for (let at = 0; at < tokens.length; at += 1) {
    flat.push(tokens[at] ?? "");
    if (tokens[at] !== "(") continue;
    const close = closing(tokens, at);
    const body = tokens.slice(at + 1, close);
    if (QUERY.has(body[0] ?? "")) inner.push(...statementLocks(body, schema));
    else inner.push(...innerQueries(body, schema));
    // The columns of an insert are read later; other brackets hold nothing that matters to it.
    if (flat[0] === "insert" && flat.length <= 6) flat.push(...body);
    flat.push(")");
    at = close;
  }
  return [...inner, ...ownLocks(flat, parts, schema)];
}

function innerQueries(tokens: Tokens, schema: Schema): readonly RowLock[] {
  const open = tokens.indexOf("(");
  if (open < 0) return [];
  const close = closing(tokens, open);
  const body = tokens.slice(open + 1, close);
  const own = QUERY.has(body[0] ?? "") ? statementLocks(body, schema) : innerQueries(body, schema);
  return [...own, ...innerQueries(tokens.slice(close + 1), schema)];
}

function ownLocks(flat: Tokens, parts: ReadonlySet<string>, schema: Schema): readonly RowLock[] {
  switch (flat[0]) {
    case "select":
      return selectLocks(flat, parts, schema);
    case "insert":
      return insertLocks(flat, parts, schema);
    case "update":
      return updateLocks(flat, schema);
    case "delete":
      return deleteLocks(flat, schema);
    case "lock":
      return [{ table: flat[2] ?? "", mode: "table", rows: "ordered" }];
    default:
      return [];
  }
}

const LOCKING = /\bfor (key share|share|no key update|update)((?: of \w+(?: , \w+)*)?)/g;

function selectLocks(flat: Tokens, parts: ReadonlySet<string>, schema: Schema): readonly RowLock[] {
  const sources = sourcesOf(flat, parts);
  return [...flat.join(" ").matchAll(LOCKING)].flatMap(([, mode = "", of = ""]) => {
    const names = of.replace(" of ", "").split(" , ");
    const locked = of === "" ? sources : sources.filter(({ alias }) => names.includes(alias));
    return locked.map(({ table }) => ({ table, mode: mode as LockMode, rows: rowsOf(flat, table, schema) }));
  });
}

function insertLocks(flat: Tokens, parts: ReadonlySet<string>, schema: Schema): readonly RowLock[] {
  const table = flat[2] ?? "";
  const text = flat.join(" ");
  const mode = / on conflict .*do update/.test(text) ? "no key update" : "insert";
  const sources = sourcesOf(flat, parts);
  const isOne =
    flat.includes("values") ||
    fromOf(flat) < 0 ||
    sources.some((source) => rowsOf(flat, source.table, schema) === "one");
  const rows = isOne ? "one" : text.includes("order by") ? "ordered" : "many";
  const open = flat.indexOf("(");
  const columns = open < 0 ? [] : flat.slice(open, flat.indexOf(")", open));
  return [{ table, mode, rows }, ...parentLocks(table, columns, { rows, schema })];
}

function updateLocks(flat: Tokens, schema: Schema): readonly RowLock[] {
  const table = flat[1] ?? "";
  const rows = rowsOf(flat, table, schema);
  const set = flat.slice(flat.indexOf("set"));
  const columns = set.filter((_token, at) => set[at + 1] === "=" && /^(set|,)$/.test(set[at - 1] ?? ""));
  return [{ table, mode: "no key update", rows }, ...parentLocks(table, columns, { rows, schema })];
}

function deleteLocks(flat: Tokens, schema: Schema): readonly RowLock[] {
  const table = flat[2] ?? "";
  const children = schema.foreignKeys.filter((key) => key.parent === table && key.cascades);
  return [
    { table, mode: "update", rows: rowsOf(flat, table, schema) },
    ...children.map((key): RowLock => ({ table: key.table, mode: "update", rows: "ordered" })),
  ];
}

/** The locks that foreign keys take when these columns are written. */
function parentLocks(
  table: string,
  columns: Tokens,
  { rows, schema }: { readonly rows: RowLock["rows"]; readonly schema: Schema },
): readonly RowLock[] {
  return schema.foreignKeys
    .filter((key) => key.table === table && columns.includes(key.column))
    .map(({ parent }) => ({ table: parent, mode: "key share", rows }));
}

const AFTER_SOURCE = new Set("where on join left cross inner full order group for limit using set as union".split(" "));

/** The place of a query's `from`; that of `is distinct from` is none. */
function fromOf(flat: Tokens): number {
  return flat.findIndex((token, at) => token === "from" && flat[at - 1] !== "distinct");
}

/** The tables that a query reads at its own level, with their names in it. */
function sourcesOf(flat: Tokens, parts: ReadonlySet<string>): readonly { table: string; alias: string }[] {
  const from = fromOf(flat);
  const end = flat.findIndex((token, at) => at > from && /^(where|group|order|for|limit|union)$/.test(token));
  const clause = from < 0 ? [] : flat.slice(from, end < 0 ? undefined : end);
  return clause.flatMap((token, at) => {
    const isSource = /^(from|join|,)$/.test(clause[at - 1] ?? "") && /^\w+$/.test(token) && clause[at + 1] !== "(";
    if (!isSource || token === "lateral" || parts.has(token)) return [];
    const next = clause[at + 1] === "as" ? clause[at + 2] : clause[at + 1];
    const alias = next === undefined || !/^\w+$/.test(next) || AFTER_SOURCE.has(next) ? token : next;
    return [{ table: token, alias }];
  });
}

/** How many rows of a table a statement takes, by its condition. */
function rowsOf(flat: Tokens, table: string, schema: Schema): RowLock["rows"] {
  const text = flat.join(" ");
  const condition = / where (.*)$/.exec(text)?.[1] ?? "";
  const names = (column: string) => new RegExp(`(^|and |[a-z]\\w* \\. )${column} = \\$\\d`).test(condition);
  const isOne = !/\bor\b/.test(condition) && schema.keysOf(table).some((key) => key.every(names));
  return isOne ? "one" : /\border by\b/.test(text) ? "ordered" : "many";
}
