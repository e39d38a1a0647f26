/** docs/pods.md has the table of what is counted, judged and warned of, as the code has it. */
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { FIT_ADMISSION, FIT_MEMBERS, type FitRow } from "../../src/core/pods/fit/fit-table.ts";
import { membersOf } from "../../src/core/pods/judge/pod-types.ts";
import { page, root } from "./pages.ts";

const BEGIN =
  "<!-- What decides where a pod runs. `GANGWAY_RECORD=transcripts` with this page's test writes this table. -->";
const END = "<!-- The end of what decides where a pod runs. -->";
const PAGE = "docs/pods.md";

test("every member of a pod's spec is in the table, and no other", () => {
  assert.deepEqual(Object.keys(FIT_MEMBERS).sort(), [...membersOf("PodSpec").keys()].sort());
});

test("the page has the table, and the members that decide nothing", () => {
  const { text } = page(PAGE);
  const made = withTable(text);
  if (process.env["GANGWAY_RECORD"] === "transcripts") writeFileSync(join(root, PAGE), made);
  assert.equal(page(PAGE).text, made, "run this test with GANGWAY_RECORD=transcripts");
});

function withTable(text: string): string {
  const [from, to] = [text.indexOf(BEGIN), text.indexOf(END)];
  assert.ok(from >= 0 && to > from, `${PAGE} has a place for the table`);
  return `${text.slice(0, from + BEGIN.length)}\n\n${tableText()}\n\n${text.slice(to)}`;
}

function tableText(): string {
  const isUsed = ([, { treatment }]: readonly [string, FitRow]) => treatment !== "unused";
  const rows = [
    ...Object.entries(FIT_MEMBERS)
      .filter(isUsed)
      .map(([name, row]) => [`\`${name}\``, row.treatment, row.what]),
    ...Object.entries(FIT_ADMISSION).map(([name, row]) => [name, row.treatment, row.what]),
  ];
  const all = [["member", "treatment", "what"], ...rows];
  const width = (at: number) => Math.max(...all.map((row) => row[at]?.length ?? 0));
  const line = (row: readonly string[]) => `| ${row.map((cell, at) => cell.padEnd(width(at))).join(" | ")} |`;
  const rule = `| ${[0, 1, 2].map((at) => "-".repeat(width(at))).join(" | ")} |`;
  const unused = Object.entries(FIT_MEMBERS).flatMap(([name, { treatment }]) =>
    treatment === "unused" ? [`\`${name}\``] : [],
  );
  const [head = [], ...body] = all;
  return [
    line(head),
    rule,
    ...body.map(line),
    "",
    `Members that place and refuse no pod that is valid: ${unused.join(", ")}.`,
  ].join("\n");
}
