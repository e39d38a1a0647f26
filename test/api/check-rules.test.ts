/** The rules of the proto files as Gangway checks them, compared with protovalidate's own engine. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { type DescMessage, fromBinary, type Message } from "@bufbuild/protobuf";
import type { Path } from "@bufbuild/protobuf/reflect";
import { createValidator, type Violation } from "@bufbuild/protovalidate";
import { checkValues } from "../../src/api/rpc/check-values.ts";
import { patternMatcher } from "../../src/api/rpc/match-pattern.ts";
import { compileExpression } from "../../src/api/rpc/rules/expression.ts";
import { checkRules } from "../../src/api/rpc/rules/message-rules.ts";
import { NoteList } from "../../src/core/job/request/notes.ts";
import type { FieldNote } from "../../src/core/job/request/sent.ts";
import { Bank } from "../tools/fuzz/bank.ts";
import { planCall } from "../tools/fuzz/plan.ts";
import { METHODS, shortName } from "../tools/fuzz/surface.ts";

const REQUESTS = 4_000;
const SEED = Number(process.env["GANGWAY_SEED"] ?? 1);
const matchers = new Map<string, (text: string) => boolean>();
const validator = createValidator({
  regexMatch: (pattern, text) => {
    const matches = matchers.get(pattern) ?? patternMatcher(pattern);
    matchers.set(pattern, matches);
    return matches(text);
  },
});

/** What protovalidate says. Null: it cannot evaluate a rule, such as for a duration that is out of range. */
function saidByLibrary(schema: DescMessage, message: Message): readonly FieldNote[] | null {
  const result = validator.validate(schema, message);
  if (result.kind === "error") return null;
  return result.kind === "valid" ? [] : result.violations.map(noteOf);
}

function noteOf(violation: Violation): FieldNote {
  const message = allowedWords(violation) ?? violation.message;
  return { field: pathText(violation.field), message: `${violation.forKey ? "key " : ""}${message}` };
}

/** Gangway names the words that are allowed. */
function allowedWords({ field: path, ruleId }: Violation): string | null {
  const of = path.findLast((part) => part.kind === "field" || part.kind === "oneof");
  if (of?.kind === "oneof")
    return `exactly one of these fields is required: ${of.fields.map(({ name }) => name).join(", ")}`;
  if (!["enum.defined_only", "enum.not_in"].includes(ruleId) || of?.enum === undefined) return null;
  const words = of.enum.values.filter(({ number }) => number !== 0).map(({ name, number }) => `${name} (${number})`);
  return `must be one of ${words.join(", ")}`;
}

function pathText(path: Path): string {
  let text = "";
  for (const part of path) {
    if (part.kind === "list_sub") text += `[${part.index}]`;
    else if (part.kind === "map_sub") text += `[${part.key}]`;
    else text += text === "" ? part.name : `.${part.name}`;
  }
  return text;
}

/** Null: it is nested too deeply. */
function decoded(schema: DescMessage, request: Uint8Array): Message | null {
  try {
    return fromBinary(schema, request);
  } catch {
    return null;
  }
}

function notesOf(schema: DescMessage, message: Message): readonly FieldNote[] {
  const notes = new NoteList<FieldNote>();
  checkRules(schema, message, notes);
  return notes.list((rest) => ({ field: "", ...rest }));
}

test("law: a request breaks the same rules as in protovalidate, in the same order and words", () => {
  let broken = 0;
  const bank = new Bank();
  for (let number = 0; number < REQUESTS; number += 1) {
    const { method, request } = planCall({ seed: SEED, bank, methods: METHODS }, number, [
      "valid",
      "mutated",
      "generated",
    ]);
    const message = decoded(method.input, request);
    if (message === null) continue;
    // Durations that break their own definition have a note of their own, in place of those of rules.
    const malformed = new Set(checkValues(method.input, message).map(({ field }) => field));
    const wellFormed = ({ field }: FieldNote) => !malformed.has(field);
    const expected = saidByLibrary(method.input, message)?.filter(wellFormed);
    if (expected === undefined) continue;
    const found = notesOf(method.input, message).filter(wellFormed);
    const first = found.filter(({ more }) => more === undefined);
    const context = `${shortName(method)}, request ${number} of seed ${SEED}`;
    const more = found.at(-1)?.more ?? 0;
    assert.deepEqual(first, expected.slice(0, more === 0 ? undefined : first.length), context);
    assert.ok(first.length + more >= expected.length, context);
    broken += Number(expected.length > 0);
  }
  assert.ok(broken > REQUESTS / 4 && broken < REQUESTS, `${broken} of ${REQUESTS} requests broke rules`);
});

test("each rule of every request is known", () => {
  for (const { input } of METHODS) notesOf(input, fromBinary(input, new Uint8Array()));
});

const expressions: Readonly<Record<string, { holds: readonly unknown[]; breaks: readonly unknown[] }>> = {
  "this == '' || this.matches('^a+$')": { holds: ["", "aa"], breaks: ["b", "ab"] },
  "size(this) > 0 && size(bytes(this)) <= 4 && !this.startsWith('x')": {
    holds: ["a", "é🚀".slice(0, 1), "éé"],
    breaks: ["", "ééé", "xa"],
  },
  "size(this) == 2": { holds: ["🚀a", [1, 2], "ab"], breaks: ["🚀", [1], "abc"] },
  "size(this) > 2 || this.map(one, one.name).unique()": {
    holds: [
      [{ name: "a" }, { name: "b" }],
      [1, 2, 3],
    ],
    breaks: [[{ name: "a" }, { name: "a" }]],
  },
  "this == 0.0 || (this >= 0.5 && this < 2.0)": { holds: [0, 0.5, 1.9], breaks: [0.4, 2, Number.NaN] },
  "(this.first_name != '') != (this.uid != '')": {
    holds: [{ firstName: "a", uid: "" }],
    breaks: [
      { firstName: "", uid: "" },
      { firstName: "a", uid: "b" },
    ],
  },
  "!(this.a && this.b)": { holds: [{ a: true, b: false }], breaks: [{ a: true, b: true }] },
};
for (const [expression, { holds, breaks }] of Object.entries(expressions)) {
  test(`the expression ${expression} holds where CEL says so`, () => {
    const compiled = compileExpression(expression);
    for (const value of holds) assert.equal(compiled(value), true, JSON.stringify(value));
    for (const value of breaks) assert.equal(compiled(value), false, JSON.stringify(value));
  });
}

test("an expression that uses more of CEL is refused when it is compiled", () => {
  for (const expression of [
    "this.endsWith('a')",
    "this in ['a']",
    "has(this.a)",
    "this.filter(one, one == 1).unique()",
    "this.map(a, a.map(b, b)).unique()",
    "other == 1",
    "this ? true : false",
    "this.matches(this)",
  ]) {
    assert.throws(() => compileExpression(expression), /must not use|must be constants/, expression);
  }
});
