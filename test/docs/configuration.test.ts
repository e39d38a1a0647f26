/** Compares docs/configuration.md with the variables, flags and exit statuses of the code. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { EXIT } from "../../src/cli/shell/exit.ts";
import { VARIABLES, type Variable } from "../../src/config/variables.ts";
import { run } from "../cli/harness.ts";
import { page } from "./pages.ts";

/** Rows of the page's tables whose first cell is code, as their cells. */
const rows = page("docs/configuration.md")
  .text.split("\n")
  .filter((line) => line.startsWith("| `"))
  .map((line) => line.split("|").map((cell) => cell.trim().replaceAll("`", "")));

test("the page has every variable, with its default and the values that are allowed, and no other", () => {
  const onPage = rows.filter(([, name = ""]) => /^[A-Z]/.test(name));
  const documented = onPage.map(([, name, value, allowed]) => ({ name, value, allowed }));
  const known = Object.entries(VARIABLES as Readonly<Record<string, Variable>>).map(([name, variable]) => ({
    name,
    value: variable.default ?? "",
    allowed: variable.range?.join(" to ") ?? variable.values?.join(", ") ?? "",
  }));
  const byName = (a: { name?: string | undefined }, b: { name?: string | undefined }) =>
    (a.name ?? "").localeCompare(b.name ?? "");
  assert.deepEqual(documented.sort(byName), known.sort(byName));
});

for (const command of ["up", "serve", "migrate"]) {
  test(`the page has every flag of gangway ${command}, and no other`, async () => {
    const { stdout } = await run([command, "--help"]);
    const [own = ""] = stdout.split("Global Options:");
    const flags = [...own.matchAll(/^ {2}(--[a-z-]+)/gm)].map(([, flag]) => flag);
    const documented = rows
      .filter(([, name]) => name === `gangway ${command}`)
      .map(([, , flag = ""]) => flag.split(" ")[0]);
    assert.ok(flags.length > 0);
    assert.deepEqual(documented.sort(), flags.sort());
  });
}

test("the page has every exit status of the command line", () => {
  const statuses = page("docs/configuration.md")
    .text.split("\n")
    .flatMap((line) => /^\| (\d+) +\|/.exec(line)?.[1] ?? []);
  assert.deepEqual(
    statuses.map(Number),
    [...new Set<number>(Object.values(EXIT))].sort((a, b) => a - b),
  );
});
