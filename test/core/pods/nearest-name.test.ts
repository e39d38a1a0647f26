import assert from "node:assert/strict";
import { test } from "node:test";
import { nameHelp, nearestName } from "../../../src/core/pods/nearest-name.ts";

const cases: Record<string, readonly [name: string, known: readonly string[], nearest: string | null]> = {
  "a letter is missing": ["contaners", ["volumes", "containers"], "containers"],
  "a letter is too many": ["volumess", ["containers", "volumes"], "volumes"],
  "a letter is wrong": ["imagf", ["image"], "image"],
  "two letters are swapped": ["nodeSelcetor", ["nodeSelector"], "nodeSelector"],
  "only the case is wrong": ["NODENAME", ["nodeName"], "nodeName"],
  "a short name may differ in one letter": ["em", ["env"], null],
  "a short name differs in one letter": ["en", ["env"], "env"],
  "a third of the letters may differ": ["abcxyz", ["abcdyf"], "abcdyf"],
  "more than a third of the letters differ": ["abcxyz", ["abcdef"], null],
  "a name that is longer by a third": ["abcdef", ["abcdefgh"], "abcdefgh"],
  "a name that is longer by more than a third": ["abcdef", ["abcdefghi"], null],
  "the closest of several names, the last one": ["containr", ["contaynerx", "container"], "container"],
  "the closest of several names, the first one": ["containr", ["container", "contaynerx"], "container"],
  "the first of two names that are equally close": ["limit", ["limits", "limita"], "limits"],
  "the name begins with the end of a known one": ["abcdef", ["xyabcd"], null],
  "the name ends with the beginning of a known one": ["abcdef", ["cdefxy"], null],
  "no name is known": ["limit", [], null],
};
for (const [name, [misspelt, known, nearest]] of Object.entries(cases)) {
  test(`${name}: ${nearest ?? "none"}`, () => assert.equal(nearestName(misspelt, known), nearest));
}

test("only the first unknown names of an answer get help, and only names that are short", () => {
  const help = nameHelp();
  const helped = Array.from({ length: 12 }, () => help("imag", ["image"]));
  assert.deepEqual(helped, [...Array.from({ length: 10 }, () => "image"), null, null]);
  assert.equal(nearestName("a".repeat(81), ["a".repeat(80)]), null);
});
