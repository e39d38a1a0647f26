/** docs/clusters.md names the rights of Gangway's account, and what does not work without each. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { PERMISSIONS, type Permission } from "../../src/adapters/cluster/permissions.ts";

function targetOf({ group, resource, subresource, name }: Permission): string {
  const path = `${resource}${subresource === "" ? "" : `/${subresource}`}${group === "" ? "" : `.${group}`}`;
  return name === undefined ? `\`${path}\`` : `\`${path}\` named \`${name}\``;
}

test("the page has a row for each right, with its verbs and what is off without it, and no others", () => {
  const page = readFileSync(new URL("../../docs/clusters.md", import.meta.url), "utf8");
  const rows = page.split("\n").map((line) => line.split("|").map((cell) => cell.trim()));
  const head = rows.findIndex(([, right, verbs]) => right === "right" && verbs === "verbs");
  assert.ok(head >= 0, "there is a table of rights");
  const end = rows.findIndex((cells, at) => at > head && cells.length === 1);
  const written = rows.slice(head + 2, end).map((cells) => cells.slice(1, 4));
  const byTarget = Map.groupBy(PERMISSIONS, targetOf);
  const expected = [...byTarget].map(([target, of]) => {
    return [target, of.map(({ verb }) => verb).join(", "), of[0]?.without ?? ""];
  });
  assert.deepEqual(written, expected);
});
