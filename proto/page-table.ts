/** Writes a table into a page, between the two comments that mark its place. */
import { readFileSync, writeFileSync } from "node:fs";

/** Where a page has a table that the code gives, such as the settings of a job. */
export type TablePlace = {
  /** Relative to the repository: `docs/jobs.md`. */
  readonly page: string;
  /** What the table shows, as its comments in the page call it. */
  readonly shows: string;
};

/** The table as Markdown. Its columns are as wide as their longest cell. */
export function tableText(head: readonly string[], given: readonly (readonly string[])[]): string {
  const rows = given.map((row) => row.map((cell) => cell.replaceAll("|", "\\|")));
  const widths = head.map((title, at) => Math.max(title.length, ...rows.map((row) => (row[at] ?? "").length)));
  const line = (cells: readonly string[]) => `| ${cells.map((cell, at) => cell.padEnd(widths[at] ?? 0)).join(" | ")} |`;
  return [line(head), line(widths.map((width) => "-".repeat(width))), ...rows.map(line)].join("\n");
}

/** The text of a page with the table in its place. */
export function withTable(text: string, { page, shows }: TablePlace, table: string): string {
  const begin = `<!-- ${shows}. \`npm run generate\` writes this table. -->`;
  const from = text.indexOf(begin);
  const to = text.indexOf(`<!-- The end of ${shows[0]?.toLowerCase()}${shows.slice(1)}. -->`);
  if (from < 0 || to < from) throw new Error(`${page} has no place for this table: ${shows}`);
  return `${text.slice(0, from + begin.length)}\n\n${table}\n\n${text.slice(to)}`;
}

/** Writes the table into the file of its page. */
export function writeTable(place: TablePlace, withIt: (text: string) => string): void {
  const file = new URL(`../${place.page}`, import.meta.url);
  writeFileSync(file, withIt(readFileSync(file, "utf8")));
}
