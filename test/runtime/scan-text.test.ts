import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { compileLinear } from "../../src/runtime/linear-pattern.ts";
import { certificatesIn, isClosedCertificate, splitOutside, withoutTrailing } from "../../src/runtime/scan-text.ts";

const text = fc.string({ unit: fc.constantFrom("/", ",", "[", "]", "a") });

test("a text without its trailing slashes is what a pattern leaves", () => {
  fc.assert(fc.property(text, (one) => assert.equal(withoutTrailing(one, "/"), one.replace(/\/+$/, ""))));
});

test("a text is split at the commas that no bracket closes", () => {
  fc.assert(
    fc.property(text, (one) =>
      assert.deepEqual(splitOutside(one, { open: "[", close: "]" }), one.split(/,(?![^[]*\])/)),
    ),
  );
});

test("certificates of a file, the first of them cut off", () => {
  const begin = "-----BEGIN CERTIFICATE-----";
  const whole = `${begin}\nb\n-----END CERTIFICATE-----`;
  const found = certificatesIn(`text ${begin}\na\n${whole} and ${whole}`);
  assert.deepEqual(found, [`${begin}\na\n`, whole, whole]);
  assert.deepEqual(found.map(isClosedCertificate), [false, true, true]);
});

const patterns: Readonly<Record<string, { pattern: string; fits?: string; not?: string; isOne?: boolean }>> = {
  "a plain one": { pattern: "^(auto|cpu|[1-9][0-9]{0,5})$", fits: "12", not: "a12" },
  "one that is not anchored": { pattern: "b+", fits: "abc", not: "ac" },
  "code points": { pattern: "^\\u0041\\u{1F600}\\\\u$", fits: "A😀\\u", not: "A" },
  "an exponential one, which is fast here": { pattern: "^(a+)+$", not: `${"a".repeat(100_000)}b` },
  "look-ahead, which is not linear": { pattern: "^(?=a)b", isOne: false },
  "a wrong one": { pattern: "(", isOne: false },
};
for (const [name, { pattern, fits, not, isOne = true }] of Object.entries(patterns)) {
  test(`a pattern from outside: ${name}`, () => {
    const compiled = compileLinear(pattern);
    assert.equal(compiled !== null, isOne);
    if (fits !== undefined) assert.equal(compiled?.test(fits), true);
    if (not !== undefined) assert.equal(compiled?.test(not), false);
  });
}
