import assert from "node:assert/strict";
import { test } from "node:test";
import { checkFiles } from "./check-files.ts";
import { findPatterns } from "./find-patterns.ts";
import { judgePattern } from "./judge-pattern.ts";

const refused: Readonly<Record<string, { readonly pattern: RegExp; readonly why: RegExp }>> = {
  "a search that begins anew at each slash": { pattern: /\/+$/, why: /polynomial time of degree 2/ },
  "spaces at the end": { pattern: /\s+$/, why: /polynomial time of degree 2/ },
  "a key that is read to the end from each of its places": { pattern: /\{\{\.(\w+)\.([^}]+)\}\}/, why: /degree 2/ },
  "three loops over the same text": { pattern: /^a*b?a*c?a*$/, why: /polynomial time of degree 3/ },
  "a loop within a loop": { pattern: /^(?:a+)+$/, why: /exponential time/ },
  "alternatives that overlap": { pattern: /^(?:a|a)*$/, why: /exponential time/ },
  "a look-ahead, which may read the rest at each place": { pattern: /,(?![^[]*\])/, why: /look-ahead/ },
  "a reference back": { pattern: /^(a+)\1$/, why: /back-reference/ },
};
for (const [name, { pattern, why }] of Object.entries(refused)) {
  test(`refused: ${name}`, async () => {
    const verdict = await judgePattern(pattern);
    assert.match(verdict.kind === "refused" ? verdict.why : verdict.kind, why);
  });
}

const linear: readonly RegExp[] = [/^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/, /[^a-z]+/g, /^(\d+(?:\.\d*)?|\.\d+)$/, /a+b/y];
for (const pattern of linear) {
  test(`linear: ${pattern}`, async () => assert.deepEqual(await judgePattern(pattern), { kind: "linear" }));
}

const made: Readonly<Record<string, { readonly code: string; readonly patterns: readonly string[]; unread: number }>> =
  {
    "a literal": { code: "const a = x.replace(/b+/g, '');", patterns: ["b+"], unread: 0 },
    "constants of the file": {
      code: `const A = "[a-z]"; const B = new RegExp(\`^\${A}+\` + ["x", "y"].join("|"), "u");`,
      patterns: ["^[a-z]+x|y"],
      unread: 0,
    },
    "a text from elsewhere": { code: "const f = (text: string) => new RegExp(text);", patterns: [], unread: 1 },
    "a call without new": { code: `const f = (text: string) => RegExp(\`^\${text}\`);`, patterns: [], unread: 1 },
    "the global object": { code: "const f = (text: string) => new globalThis.RegExp(text);", patterns: [], unread: 1 },
    "a variable": { code: 'let a = "b"; a = outside; const c = new RegExp(a);', patterns: [], unread: 1 },
    "a method that makes a pattern": {
      code: "const f = (a: string, b: string) => a.match(b);",
      patterns: [],
      unread: 1,
    },
    "a method with a pattern of the file": { code: "const A = /a/g; b.matchAll(A);", patterns: ["a"], unread: 0 },
    "a method that takes text as it is": { code: 'const a = x.replaceAll("b", "").split(c);', patterns: [], unread: 0 },
  };
for (const [name, { code, patterns, unread }] of Object.entries(made)) {
  test(`patterns of a file: ${name}`, () => {
    const found = findPatterns(code);
    assert.deepEqual(
      found.patterns.map(({ source }) => source),
      patterns,
    );
    assert.equal(found.unread.length, unread);
  });
}

test("a file with a slow pattern is a problem that names its line, unless an exception gives a reason", async () => {
  const file = { path: "src/x.ts", text: 'const a = 1;\nconst b = x.replace(/\\/+$/, "");\n' };
  const { problems, proved } = await checkFiles([file], new Set(), {});
  assert.match(problems.join("\n"), /^src\/x\.ts:2: \/\\\/\+\$\/ takes polynomial time of degree 2/);
  assert.deepEqual(proved, []);
  assert.deepEqual((await checkFiles([file], new Set(), { "/\\/+$/": "a text of our own" })).problems, []);
});

test("an exception that no file needs is a problem", async () => {
  const { problems } = await checkFiles([], new Set(), { "/a/": "once needed" });
  assert.deepEqual(problems, ["test/tools/patterns/exceptions.ts: no file has /a/ any more"]);
});
