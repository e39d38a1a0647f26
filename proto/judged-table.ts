/** Writes the table of what is judged in a pod in docs/pods.md, from the rules themselves. */
import { readFileSync, writeFileSync } from "node:fs";
import { POD_RULES } from "../src/core/pods/judge/rules/pod-rules.ts";

const BEGIN = "<!-- What is judged in a pod. `npm run generate` writes this table. -->";
const END = "<!-- The end of what is judged in a pod. -->";

/** The rules of one object: its type, a member or nothing, and what is allowed. */
type Row = readonly [type: string, member: string, allowed: string];

function rowsOf(): readonly Row[] {
  return Object.entries(POD_RULES)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .flatMap(([type, { members = {}, whole = [] }]) => [
      ...Object.entries(members).map(([name, { says, required }]): Row => {
        const set = required === undefined ? [] : ["must be set"];
        return [type, `\`${name}\``, [...set, ...(says === "" ? [] : [says])].join("; ")];
      }),
      ...whole.map(({ says }): Row => [type, "", says]),
    ]);
}

/** The table, with one row for each rule. */
function judgedTable(): string {
  const rows = rowsOf().map((row) => row.map((cell) => cell.replaceAll("|", "\\|")));
  const head = ["object", "member", "allowed"];
  const widths = head.map((title, at) => Math.max(title.length, ...rows.map((row) => (row[at] ?? "").length)));
  const line = (cells: readonly string[]) => `| ${cells.map((cell, at) => cell.padEnd(widths[at] ?? 0)).join(" | ")} |`;
  return [line(head), line(widths.map((width) => "-".repeat(width))), ...rows.map(line)].join("\n");
}

/** The page with the table in its place. */
export function withJudgedTable(page: string): string {
  const from = page.indexOf(BEGIN);
  const to = page.indexOf(END);
  if (from < 0 || to < from) throw new Error("docs/pods.md has no place for what is judged");
  return `${page.slice(0, from + BEGIN.length)}\n\n${judgedTable()}\n\n${page.slice(to)}`;
}

if (import.meta.main) {
  const page = new URL("../docs/pods.md", import.meta.url);
  writeFileSync(page, withJudgedTable(readFileSync(page, "utf8")));
}
