/** docs/access.md has the permissions of the built-in roles as the code gives them. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { ALL_PERMISSIONS } from "../../src/core/access/permissions.ts";
import { BUILT_IN_ROLES } from "../../src/core/access/roles.ts";
import { page } from "./pages.ts";

test("the table of permissions has every permission of every built-in role, and no other", () => {
  const cells = page("docs/access.md")
    .text.split("\n")
    .filter((line) => line.startsWith("| "))
    .map((line) =>
      line
        .split("|")
        .slice(1, -1)
        .map((cell) => cell.trim()),
    );
  const head = cells.findIndex(([first]) => first === "permission");
  assert.deepEqual(
    cells[head]?.slice(1),
    BUILT_IN_ROLES.map(({ name }) => name),
  );
  const rows = cells.slice(head + 2, head + 2 + ALL_PERMISSIONS.length);
  const expected = ALL_PERMISSIONS.map((permission) => [
    `\`${permission}\``,
    ...BUILT_IN_ROLES.map(({ permissions }) => (permissions.includes(permission) ? "yes" : "")),
  ]);
  assert.deepEqual(rows, expected);
});
