import assert from "node:assert/strict";
import { test } from "node:test";
import { runInNewContext } from "node:vm";
import fc from "fast-check";
import {
  FILTER_KEYS,
  FILTER_TEXT_MAX,
  readFilterText,
  TERM_VALUES_MAX,
  type TextFilter,
} from "../../../../src/core/job/request/filter-text.ts";

const NOW = 1_750_000_000_000;
const HOUR = 3_600_000;

const name = fc.stringMatching(/^[a-z][-a-z0-9]{0,8}$/);
/** What a name or an owner may be written with. */
const value = fc.stringMatching(/^[A-Za-z][-A-Za-z0-9:@./]{0,12}$/);
const values = fc.uniqueArray(value, { minLength: 1, maxLength: 4 });
const phases = fc.subarray(["WAITING", "ADMITTED", "RUNNING", "SUSPENDED", "FAILED"] as const, { minLength: 1 });
const hours = fc.integer({ min: 1, max: 400_000 });

/** A term, and the member that it gives. */
type Written = { readonly text: string; readonly member: TextFilter };

const list = (key: string, member: string) =>
  values.map((all): Written => ({ text: `${key}:${all.join(",")}`, member: { [member]: all } }));
const one = (key: string) => value.map((only): Written => ({ text: `${key}:${only}`, member: { [key]: only } }));
const ended = hours.map((span): Written => ({ text: `ended:<${span}h`, member: { endedSinceMs: NOW - span * HOUR } }));

/** Arbitrary terms of each key. */
const TERMS: Readonly<Record<string, fc.Arbitrary<Written>>> = {
  word: name.map((word): Written => ({ text: word, member: { namePrefix: word } })),
  phase: fc.tuple(phases, fc.boolean()).map(([all, isUpper]): Written => {
    const text = `phase:${all.join(",")}`;
    return { text: isUpper ? text : text.toLowerCase(), member: { phases: all } };
  }),
  reason: list("reason", "reasons"),
  queue: fc.oneof(
    list("queue", "queues"),
    value.map((queue): Written => ({ text: `queue:${queue}+`, member: { queueSubtree: queue } })),
  ),
  owner: list("owner", "createdBy"),
  namespace: list("namespace", "namespaces"),
  name: list("name", "names"),
  kind: list("kind", "kinds"),
  label: fc.dictionary(value, value, { minKeys: 1, maxKeys: 3, noNullPrototype: true }).map((labels): Written => {
    const parts = Object.entries(labels).map(([key, wanted]) => `${key}=${wanted}`);
    return { text: `label:${parts.join(",")}`, member: { labels } };
  }),
  project: one("project"),
  cluster: one("cluster"),
  flavor: one("flavor"),
  node: one("node"),
  age: fc.tuple(hours, fc.boolean()).map(([span, isLonger]): Written => {
    const atMs = NOW - span * HOUR;
    const member = isLonger ? { createdBeforeMs: atMs } : { createdSinceMs: atMs };
    return { text: `age:${isLonger ? ">" : "<"}${span}h`, member };
  }),
  ended,
};

test("each key has terms in these tests", () => {
  assert.deepEqual(Object.keys(TERMS).sort(), ["word", ...FILTER_KEYS].sort());
});

test("a text means all of its terms, in any order and with any blanks", () => {
  const texts = fc
    .shuffledSubarray(Object.keys(TERMS))
    .chain((keys) => fc.tuple(...keys.map((key) => TERMS[key] as fc.Arbitrary<Written>)));
  const blanks = fc.array(fc.constantFrom(" ", "  ", "\t", "\n"), { minLength: 20, maxLength: 20 });
  fc.assert(
    fc.property(texts, blanks, (terms, between) => {
      const text = terms.map(({ text: term }, at) => `${between[at]}${term}`).join("");
      const filter = Object.assign({}, ...terms.map(({ member }) => member));
      assert.deepEqual(readFilterText(text, NOW), { kind: "filter", filter });
    }),
  );
});

test("any text is a filter, or a sentence says what is wrong with it", () => {
  const words = fc.array(
    fc.oneof(
      fc.string({ unit: "binary", maxLength: 12 }),
      fc
        .tuple(fc.constantFrom(...FILTER_KEYS, "__proto__", "constructor"), fc.string({ maxLength: 12 }))
        .map(([key, rest]) => `${key}:${rest}`),
    ),
    { maxLength: 6 },
  );
  fc.assert(
    fc.property(words, (all) => {
      const read = readFilterText(all.join(" "), NOW);
      if (read.kind === "wrong") assert.ok(read.problem.length > 0);
      else assert.ok(Object.values(read.filter).every((member) => member !== undefined && member !== ""));
    }),
  );
});

const WRONG: Readonly<Record<string, RegExp>> = {
  "phse:waiting":
    /^there is no key "phse" in "phse:waiting"; use one of phase, reason, queue, owner, namespace, name, /,
  "toString:x": /^there is no key "toString"/,
  "phase:wating": /^there is no phase wating; use one of waiting, admitted, starting, running, /,
  "phase:": /^a value is missing in "phase:"; write phase:VALUE or phase:VALUE,VALUE$/,
  "phase:waiting,": /^a value is missing/,
  "phase=waiting": /^"phase=waiting" is neither key:value nor the beginning of a name: at most 63 /,
  Train: /^"Train" is neither /,
  "a b": /^a filter has one word with which names begin/,
  "phase:waiting phase:failed": /^phase is given twice; write all values in one term: phase:VALUE,VALUE$/,
  "queue:a+,b": /^a queue with \+ stands alone in its term: queue:NAME\+$/,
  "queue:a+ queue:b": /^queue is given twice/,
  "queue:b queue:a+": /^queue is given twice/,
  "queue:+": /^the name of the queue is missing before \+$/,
  "cluster:a,b": /^cluster takes one value$/,
  "node:a node:b": /^node is given twice$/,
  "label:team": /^"team" is no label; write label:KEY=VALUE$/,
  "label:a=1,a=2": /^the label a cannot be both 1 and 2$/,
  "label:a=1 label:a=2": /^the label a cannot be both 1 and 2$/,
  "age:1d": /^"1d" is no span; write age:>1d or age:<90m$/,
  "age:>1": /^">1" is no span/,
  "age:<1d age:<2d": /^age:< is given twice$/,
  "ended:>1d": /^ended takes < only/,
  "ended:<99999999999999999d": /is no span/,
};
for (const [text, problem] of Object.entries(WRONG)) {
  test(`the text ${text} is wrong`, () => {
    const read = readFilterText(text, NOW);
    assert.ok(read.kind === "wrong");
    assert.match(read.problem, problem);
  });
}

test("labels of several terms must all hold, and an age may have both bounds", () => {
  assert.deepEqual(readFilterText("label:a=1 age:>1h label:b=2 age:<2h", NOW), {
    kind: "filter",
    filter: { labels: { a: "1", b: "2" }, createdBeforeMs: NOW - HOUR, createdSinceMs: NOW - 2 * HOUR },
  });
});

test("a text and a term have bounds", () => {
  assert.equal(readFilterText(" ".repeat(FILTER_TEXT_MAX), NOW).kind, "filter");
  assert.equal(readFilterText(" ".repeat(FILTER_TEXT_MAX + 1), NOW).kind, "wrong");
  const owners = (count: number) => `owner:${Array.from({ length: count }, (_, at) => `o${at}`).join(",")}`;
  assert.equal(readFilterText(owners(TERM_VALUES_MAX), NOW).kind, "filter");
  assert.deepEqual(readFilterText(owners(TERM_VALUES_MAX + 1), NOW), {
    kind: "wrong",
    problem: `owner has ${TERM_VALUES_MAX + 1} values; at most ${TERM_VALUES_MAX}`,
  });
});

test("a browser can read texts too: nothing of Node is needed", async () => {
  const { build } = await import("esbuild");
  const source = new URL("../../../../src/core/job/request/filter-text.ts", import.meta.url).pathname;
  const settings = { bundle: true, write: false, format: "iife", globalName: "read", logLevel: "silent" } as const;
  const { outputFiles } = await build({ ...settings, entryPoints: [source], platform: "browser" });
  const run = `${outputFiles[0]?.text}\nJSON.stringify(read.readFilterText("phase:waiting queue:nlp+", 0))`;
  assert.equal(
    runInNewContext(run),
    JSON.stringify({ kind: "filter", filter: { phases: ["WAITING"], queueSubtree: "nlp" } }),
  );
});
