/** The patterns of the proto files' rules: fast matches give the answers of RE2, and take linear time. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { RE2JS } from "@bufbuild/re2";
import fc from "fast-check";
import { patternMatcher } from "../../src/api/rpc/match-pattern.ts";
import { judgePattern } from "../tools/patterns/judge-pattern.ts";

const descriptors = readFileSync(new URL("../../src/gen/gangway.binpb", import.meta.url)).toString("latin1");
/** Read as CEL reads them: two backslashes are one. */
const patterns = [
  ...new Set(
    Array.from(descriptors.matchAll(/\.matches\('((?:[^'\\]|\\.)*)'\)/g), ([, text = ""]) =>
      text.replace(/\\(.)/g, "$1"),
    ),
  ),
];

/** Texts that nearly match: of the characters of the patterns, of each kind of other ones, and repeated. */
const texts = fc
  .array(
    fc.oneof(
      { weight: 6, arbitrary: fc.constantFrom(..."aZ09-_./:job", "-", ".", "/") },
      {
        weight: 1,
        arbitrary: fc.constantFrom("\n", "\r", "\t", " ", "\v", "\0", "\u007f", "\u0085", "\u2028", "\u2029"),
      },
      { weight: 1, arbitrary: fc.constantFrom("é", "\u200b", "\ue000", "\u0378", "\ud800", "\udc00", "😀", "\u00a0") },
      { weight: 1, arbitrary: fc.nat({ max: 300 }).map((count) => "a".repeat(count)) },
    ),
    { maxLength: 30 },
  )
  .map((parts) => parts.join(""));

test("the patterns of all rules are found", () => {
  assert.ok(patterns.length > 12, patterns.join("\n"));
  assert.ok(patterns.includes("[\\p{C}\\p{Zl}\\p{Zp}]"));
});

for (const pattern of patterns) {
  test(`${pattern} matches as in RE2`, () => {
    const compiled = RE2JS.compile(pattern);
    const matches = patternMatcher(pattern);
    fc.assert(
      fc.property(texts, (text) => {
        assert.equal(matches(text), compiled.test(text));
      }),
      { numRuns: 300 },
    );
    // The characters of ASCII one by one.
    for (let code = 0; code < 128; code += 1) {
      const text = String.fromCharCode(code);
      assert.equal(matches(text), compiled.test(text), JSON.stringify(text));
    }
  });

  test(`${pattern} takes linear time`, async () => {
    assert.deepEqual(await judgePattern({ source: pattern, flags: "u" }), { kind: "linear" });
  });
}

test("a pattern that the two engines read differently is matched by RE2", () => {
  for (const [pattern, text] of [
    ["a.b", "a\rb"],
    ["^\\s$", "\v"],
    ["(?i)A", "a"],
    ["\\Aa\\z", "a"],
  ] as const) {
    assert.equal(patternMatcher(pattern)(text), RE2JS.compile(pattern).test(text), pattern);
  }
  assert.throws(() => patternMatcher("(?=a)"));
});
