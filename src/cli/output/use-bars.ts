/** Shows how much of a limit is used, as bars. */
import { styleText } from "node:util";
import { type Column, renderTable, type TableOptions } from "./table.ts";

/** The use of one thing: a resource of a cluster, a pool, or a flavor of a queue. */
export type UseRow = {
  readonly name: string;
  /** The resource or flavor; empty if the name says it. */
  readonly of: string;
  readonly used: number;
  /** Null: nothing limits it. */
  readonly limit: number | null;
  readonly note: string;
};

export type UseSection = { readonly title: string; readonly rows: readonly UseRow[]; readonly none: string };

const BAR_WIDTH = 20;
const FULL = "█";
const FREE = "░";
const BAR = new RegExp(`[${FULL}${FREE}]+`);
const INDENT = "  ";
/** Longer names are cut: they, a bar and a note fit 80 columns. */
const NAME_SHOWN_MAX = 16;
const OF_SHOWN_MAX = 12;
/** From these parts of a limit on, a bar is yellow and red. */
const YELLOW_FROM = 0.75;
const RED_FROM = 0.95;

const COLUMNS: readonly Column[] = [
  { title: "", minWidth: 10, isBlank: true },
  { title: "", isBlank: true },
  { title: "", isBlank: true },
  { title: "", align: "right" },
  { title: "", align: "right", isBlank: true },
  { title: "", isBlank: true },
];

/** Returns the lines of all sections, at most `rowsMax`. Sections with more rows than fit say how many are left out. */
export function useLines(sections: readonly UseSection[], options: TableOptions, rowsMax: number): readonly string[] {
  // Each section also has a title.
  const shares = sharesOf(
    sections.map(({ rows }) => Math.max(1, rows.length)),
    rowsMax - sections.length,
  );
  const shown = sections.map(({ rows }, at) => cut(rows, shares[at] ?? 0));
  const cells = shown.flatMap(({ rows }) => rows.map(cellsOf));
  const columns = options.columns === null ? null : options.columns - INDENT.length;
  const [, ...plain] = renderTable(COLUMNS, cells, { columns, color: false });
  const lines = plain.map((line) => painted(INDENT + line, options));
  let next = 0;
  return sections.flatMap(({ title, none }, at) => {
    const { rows, left } = shown[at] ?? { rows: [], left: 0 };
    const mine = lines.slice(next, next + rows.length);
    next += rows.length;
    const more = left === 0 ? [] : [`${INDENT}and ${left} more`];
    return [title, ...(rows.length + left === 0 ? [INDENT + none] : mine), ...more];
  });
}

/** Cuts a line at the edge of the terminal, and colours its bar. */
function painted(line: string, { columns, color }: TableOptions): string {
  const fitted = columns === null ? line : line.slice(0, columns);
  return color ? fitted.replace(BAR, paintBar) : fitted;
}

/** Shares rows among sections: each gets what it needs, or the same as others that need more. */
function sharesOf(needs: readonly number[], rows: number): readonly number[] {
  const shares = needs.map(() => 0);
  let left = rows;
  for (let given = true; given && left > 0; ) {
    given = false;
    for (const [at, need] of needs.entries()) {
      if (left > 0 && (shares[at] ?? 0) < need) {
        shares[at] = (shares[at] ?? 0) + 1;
        left -= 1;
        given = true;
      }
    }
  }
  return shares;
}

/** The line that says how many are left out takes the place of a row. */
function cut(rows: readonly UseRow[], share: number): { readonly rows: readonly UseRow[]; readonly left: number } {
  if (rows.length <= share) return { rows, left: 0 };
  const kept = Math.max(0, share - 1);
  return { rows: rows.slice(0, kept), left: rows.length - kept };
}

function cellsOf({ name, of, used, limit, note }: UseRow): readonly string[] {
  const part = limit === null || limit === 0 ? null : used / limit;
  return [
    shortened(name, NAME_SHOWN_MAX),
    shortened(of, OF_SHOWN_MAX),
    part === null ? "" : barOf(part),
    limit === null ? `${used}` : `${used}/${limit}`,
    part === null ? "" : `${Math.round(part * 100)}%`,
    note,
  ];
}

/** A use above the limit, such as that of a queue that borrows, fills the bar. */
function barOf(part: number): string {
  const full = Math.min(BAR_WIDTH, Math.max(part > 0 ? 1 : 0, Math.round(part * BAR_WIDTH)));
  return FULL.repeat(full) + FREE.repeat(BAR_WIDTH - full);
}

function paintBar(cell: string): string {
  const part = cell.lastIndexOf(FULL) / BAR_WIDTH + 1 / BAR_WIDTH;
  const style = part >= RED_FROM ? "red" : part >= YELLOW_FROM ? "yellow" : "green";
  return styleText(style, cell, { validateStream: false });
}

function shortened(text: string, charsMax: number): string {
  return text.length > charsMax ? `${text.slice(0, charsMax - 1)}…` : text;
}
