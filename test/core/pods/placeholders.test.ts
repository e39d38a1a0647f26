import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { placeholdersIn } from "../../../src/core/pods/placeholders.ts";
import { render } from "../../../src/core/pods/variables.ts";

/** The form of placeholders as a pattern, which takes quadratic time. */
const PLACEHOLDER = /\{\{\s*[.$]([A-Za-z]+)(?:\.([^}\s]+))?\s*\}\}/g;
const piece = fc.constantFrom("{{", "{", "}", "}}", ".", "$", "a", "Inputs", " ", "\n", "\u00a0", "-", "{{.a.", "é");

test("placeholders are what their pattern finds, for texts of any such pieces", () => {
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 20 }), (pieces) => {
      const text = pieces.join("");
      assert.deepEqual(
        [...placeholdersIn(text)],
        [...text.matchAll(PLACEHOLDER)].map(({ index, 0: whole, 1: name = "", 2: key }) => ({
          at: index,
          end: index + whole.length,
          name,
          key,
        })),
      );
    }),
    { numRuns: 2_000 },
  );
});

/** Each would take minutes in quadratic time. */
const long: Readonly<Record<string, string>> = {
  "keys that never end": "{{.a.".repeat(400_000),
  "keys whose end closes nothing": `${"{{.a.".repeat(400_000)} }`,
  braces: "{".repeat(2_000_000),
  spaces: `{{${" ".repeat(1_000_000)}{{.a${" ".repeat(1_000_000)}`,
  "one key with many beginnings": `${"{{.a.{{-{".repeat(200_000)}}}`,
};
for (const [name, text] of Object.entries(long)) {
  test(`a long text of ${name} is read once`, () => {
    const { length } = [...placeholdersIn(text)];
    assert.ok(length <= 1);
    if (length === 0) assert.equal(render(text, { variables: { a: "b" } }), text);
  });
}
