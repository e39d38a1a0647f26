/** Walks the names that a document exports, in its order: what each does in Gangway, or why it is not there. */
import assert from "node:assert/strict";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, type TestContext, test } from "node:test";

/** A name of the document. `done`: what is done in Gangway; `see` looks at it. `absent`: docs/migrating.md says why. */
export type Row =
  | { readonly name: string; readonly done: string; readonly see: See; readonly seen: unknown }
  | { readonly name: string; readonly absent: true };

/** May return a promise. */
type See = (t: TestContext) => unknown;

export const row = (name: string, done: string, see: See, seen: unknown): Row => ({ name, done, see, seen });
/** Names without a counterpart. */
export const absent = (...names: readonly string[]): readonly Row[] => names.map((name) => ({ name, absent: true }));

const MIGRATING = readFileSync(join(import.meta.dirname, "../../docs/migrating.md"), "utf8");
/** The tables of the page name those without a counterpart in code style, one row for several. */
const EXPLAINED = new Set(
  MIGRATING.split("\n")
    .filter((line) => line.startsWith("| `"))
    .flatMap((line) => [...(line.split(" | ")[0] ?? "").matchAll(/`([A-Za-z0-9_.]+)`/g)].map(([, name = ""]) => name)),
);

/**
 * `document`: the beginning of the name of its file in the folder of documents. `part`: the names that the table is
 * about; omitted: all.
 */
export function walk(document: string, rows: readonly Row[], part = /^/): void {
  describe(document, () => {
    for (const one of rows) {
      if ("absent" in one) {
        test(`${one.name}: docs/migrating.md says why it is not here`, () => {
          assert.ok(EXPLAINED.has(one.name), `no row of a table of docs/migrating.md names ${one.name}`);
        });
      } else {
        test(`${one.name}: ${one.done}`, async (t) => {
          assert.deepEqual(await one.see(t), one.seen);
        });
      }
    }
    test("the table has each name once", () => {
      const names = rows.map(({ name }) => name);
      assert.deepEqual(names, [...new Set(names)]);
    });
    const text = textOf(document);
    test("the table leaves out no name of the document", {
      skip: text === null && "GANGWAY_CONTRACTS names no folder",
    }, () => {
      const known = new Set(rows.flatMap(({ name }) => [name, name.split(".").at(-1) ?? ""]));
      const missing = exportedIn(text ?? "").filter((name) => part.test(name) && !known.has(name));
      assert.deepEqual(missing, []);
    });
  });
}

function textOf(document: string): string | null {
  const folder = process.env["GANGWAY_CONTRACTS"] ?? "";
  if (folder === "" || !existsSync(folder)) return null;
  const file = readdirSync(folder).find((name) => name.replace(/^\d+-/, "").startsWith(document));
  return file === undefined ? null : readFileSync(join(folder, file), "utf8");
}

/** Functions, types and constants of a page of Go documentation, or functions of a Go file; generated copies aside. */
function exportedIn(text: string): readonly string[] {
  const found = [
    ...text.matchAll(/^(?:\s*\d+\s+)?(?:- )?func (?:\([^)]*\) )?([A-Z]\w*)\(/gm),
    ...text.matchAll(/^(?:- )?type ([A-Z]\w*)/gm),
    ...text.matchAll(/^\t([A-Z]\w+)(?:\s+\w+)?\s+= "/gm),
  ].map(([, name = ""]) => name);
  return [...new Set(found)].filter((name) => !name.startsWith("DeepCopy"));
}
