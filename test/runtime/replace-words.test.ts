import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { replaceWords } from "../../src/runtime/replace-words.ts";

const cases: Readonly<Record<string, { text: string; shown: string }>> = {
  "a name at each end": { text: "ml/a, ml/b", shown: "X, Y" },
  "a name of several words": { text: "held by caller bob (x), and ml/a)", shown: "held by Z, and X)" },
  "a name before a full stop": { text: "for ml/a.", shown: "for X." },
  "a longer name that is not replaced": {
    text: "ml/a-2, ml/a/b, ml/a.b, xml/a",
    shown: "ml/a-2, ml/a/b, ml/a.b, xml/a",
  },
  "the longer of two names": { text: "gpu/h100 gpu", shown: "P Q" },
};
const instead = new Map([
  ["ml/a", "X"],
  ["ml/b", "Y"],
  ["caller bob (x)", "Z"],
  ["gpu", "Q"],
  ["gpu/h100", "P"],
]);
for (const [name, { text, shown }] of Object.entries(cases)) {
  test(`replaces ${name}`, () => {
    assert.equal(replaceWords(text, instead), shown);
  });
}

test("law: no text that stands alone is left, and nothing else changes", () => {
  const word = fc.stringMatching(/^[ab]{1,3}$/);
  fc.assert(
    fc.property(fc.array(word, { maxLength: 20 }), fc.array(word, { maxLength: 5 }), (words, names) => {
      const shown = replaceWords(words.join(" "), new Map(names.map((name) => [name, "*"])));
      assert.equal(shown, words.map((one) => (names.includes(one) ? "*" : one)).join(" "));
    }),
  );
});
