/** Writes the table of what is judged in a pod in docs/pods.md, from the rules themselves. */
import { POD_RULES } from "../src/core/pods/judge/rules/pod-rules.ts";
import { tableText, withTable, writeTable } from "./page-table.ts";

const PLACE = { page: "docs/pods.md", shows: "What is judged in a pod" };

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

/** The page with the table in its place. */
export function withJudgedTable(page: string): string {
  return withTable(page, PLACE, tableText(["object", "member", "allowed"], rowsOf()));
}

if (import.meta.main) writeTable(PLACE, withJudgedTable);
