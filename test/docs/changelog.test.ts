/** The changelog has the form of Keep a Changelog, so that a reader finds what changed for them. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { page } from "./pages.ts";

const LINE_MAX = 160;
/** The parts of a version that has not been released, in their order. */
const PARTS = ["Added", "Changed", "Fixed", "Removed", "Upgrade notes"];
/** The first version lists what it has. */
const FIRST = "0.1.0";

type Version = { readonly name: string; readonly lines: readonly string[] };

function versionsOf(text: string): readonly Version[] {
  return text
    .split(/^## /m)
    .slice(1)
    .map((part) => {
      const [name = "", ...lines] = part.split("\n");
      return { name, lines };
    });
}

/** The faults of a changelog, such as `Unreleased: Misc is not one of the parts`. */
function problemsOf(text: string): readonly string[] {
  return versionsOf(text).flatMap(({ name, lines }) => {
    const parts = lines.filter((line) => line.startsWith("### ")).map((line) => line.slice(4));
    const sorted = PARTS.filter((part) => parts.includes(part));
    const others = name === FIRST ? [] : parts.filter((part) => !PARTS.includes(part));
    const isSorted = name === FIRST || others.length > 0 || parts.join() === sorted.join();
    return [
      ...(/^(Unreleased|\d+\.\d+\.\d+( - \d{4}-\d{2}-\d{2})?)$/.test(name) ? [] : [`${name} is no version`]),
      ...others.map((part) => `${name}: ${part} is not one of the parts`),
      ...(isSorted ? [] : [`${name}: the parts are not in the order ${PARTS.join(", ")}`]),
      ...lines.filter((line) => line.length > LINE_MAX).map((line) => `${name}: a long line: ${line.slice(0, 40)}`),
      ...lines
        .filter((line) => /^ +\S/.test(line))
        .map((line) => `${name}: an entry of two lines: ${line.slice(0, 40)}`),
    ];
  });
}

test("the changelog has the form of Keep a Changelog, with entries of one line", () => {
  const { text } = page("CHANGELOG.md");
  assert.deepEqual(problemsOf(text), []);
  assert.deepEqual(versionsOf(text)[0]?.name, "Unreleased");
});

test("the check of the changelog notices", () => {
  const long = `- ${"x".repeat(LINE_MAX)}`;
  assert.deepEqual(problemsOf(`# C\n\n## Next\n\n### Misc\n\n${long}\n  more\n`), [
    "Next is no version",
    "Next: Misc is not one of the parts",
    `Next: a long line: - ${"x".repeat(38)}`,
    "Next: an entry of two lines:   more",
  ]);
  assert.deepEqual(problemsOf("## Unreleased\n### Fixed\n### Added\n"), [
    `Unreleased: the parts are not in the order ${PARTS.join(", ")}`,
  ]);
});
