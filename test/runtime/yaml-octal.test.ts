import assert from "node:assert/strict";
import { test } from "node:test";
import { readYaml } from "../../src/runtime/yaml.ts";

const LIMITS = { bytesMax: 1_000, depthMax: 10, tokensMax: 1_000, referencesMax: 0 };

test("a number with a leading zero is octal, as kubectl reads it; texts and other numbers stay", () => {
  const text = "mode: 0755\nplain: 755\nzero: 0\nnine: 09\nquoted: '0755'\nnew: 0o755";
  const value = { mode: 0o755, plain: 755, zero: 0, nine: 9, quoted: "0755", new: 0o755 };
  assert.deepEqual(readYaml(text, LIMITS), { kind: "value", value });
});
