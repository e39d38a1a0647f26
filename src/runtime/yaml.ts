/**
 * Parses YAML, and JSON with it, in a time that grows only linearly with the text. The parser's own check for duplicate
 * keys is quadratic, and it recurses as deep as the text nests.
 */

import type { CST, Document, Parser, ScalarTag, YAMLMap } from "yaml";
import type { Json } from "./json.ts";
import { yaml } from "./lazy-yaml.ts";
import { append } from "./lists.ts";

export type YamlLimits = {
  /** The longest text, in bytes of UTF-8. */
  readonly bytesMax: number;
  /** How deep a document may nest. */
  readonly depthMax: number;
  /** The most tokens of one document: words, marks, spaces and line breaks. The time to parse grows with them. */
  readonly tokensMax: number;
  /** The most anchors and aliases of one document. 0 also refuses tags and directives: the text is plain data. */
  readonly referencesMax: number;
};

/**
 * `line` null: the problem concerns the whole text. `message` is the end of a sentence about the line or the text; it
 * never quotes a value, which may be a secret. `detail` may; it is empty if there is nothing to add.
 */
export type YamlProblem = { readonly line: number | null; readonly message: string; readonly detail: string };

export type YamlDocument =
  | { readonly kind: "value"; readonly value: Json }
  | { readonly kind: "invalid"; readonly problems: readonly YamlProblem[] };

/** After this many tokens the caller gets a chance to do something else: some milliseconds of work. */
const TOKENS_BETWEEN_PAUSES = 5_000;
/** The parser reports an error for each wrong character. A reader needs only the first ones. */
const PROBLEMS_MAX = 10;
/** The longest part of a key that a message shows. */
const NAME_SHOWN_MAX = 63;
/** A mode of a file such as 0755, as kubectl reads it: YAML 1.1 writes octal numbers so, YAML 1.2 decimal ones. */
const OCTAL: ScalarTag = {
  identify: () => false,
  default: true,
  tag: "tag:yaml.org,2002:int",
  test: /^0[0-7]+$/,
  resolve: (text) => Number.parseInt(text, 8),
};
/** The most values of a document after its aliases are expanded. */
const VALUES_MAX = 1_000_000;

/** The only document of a text. Null: the text has none. */
export function readYaml(text: string, limits: YamlLimits): YamlDocument {
  const documents = [...readYamlDocuments(text, limits)].flatMap((step) => step ?? []);
  const [first = { kind: "value", value: null }, second] = documents;
  return second === undefined || first.kind === "invalid" ? first : invalid(null, "must be a single document");
}

/**
 * Yields each document of a text. Yields null where the caller may pause. Ends after a document that breaks a limit,
 * since the rest of the text is not read then.
 */
export function* readYamlDocuments(text: string, limits: YamlLimits): Generator<YamlDocument | null, void> {
  const bytes = Buffer.byteLength(text);
  if (bytes > limits.bytesMax) {
    yield invalid(null, `must be at most ${limits.bytesMax} bytes, but has ${bytes}`);
    return;
  }
  const { Composer, LineCounter, Parser } = yaml();
  const lines = new LineCounter();
  lines.addNewLine(0);
  const place = (offset: number) => lines.linePos(offset);
  const parser = new Parser(lines.addNewLine);
  const composer = new Composer({
    uniqueKeys: false,
    merge: limits.referencesMax > 0,
    stringKeys: true,
    customTags: (tags) => [OCTAL, ...tags],
  });
  for (const token of tokensOf(text, parser, limits)) {
    if (token === null) yield null;
    else if ("problem" in token) return yield invalid(place(parser.offset).line, token.problem);
    else for (const document of composer.next(token)) yield toValue(document, place);
  }
  for (const document of composer.end()) yield toValue(document, place);
}

/** Yields the parts of a text, null after some of them, and what is wrong with a document that breaks a limit. */
function* tokensOf(
  text: string,
  parser: Parser,
  limits: YamlLimits,
): Generator<CST.Token | null | { readonly problem: string }, void> {
  const gauge = new Gauge(limits, parser);
  let count = 0;
  for (const lexeme of new (yaml().Lexer)().lex(text)) {
    const problem = gauge.add(lexeme);
    if (problem !== null) return yield { problem };
    for (const token of parser.next(lexeme)) {
      if (token.type === "document") gauge.reset();
      yield token;
    }
    count += 1;
    if (count % TOKENS_BETWEEN_PAUSES === 0) yield null;
  }
  yield* parser.end();
}

/** Counts the lexemes of a document while it is parsed, so that a limit is noticed before anything costly happens. */
class Gauge {
  readonly #limits: YamlLimits;
  readonly #parser: Parser;
  readonly #cst = yaml().CST;
  #tokens = 0;
  #references = 0;
  #isScalarNext = false;

  constructor(limits: YamlLimits, parser: Parser) {
    this.#limits = limits;
    this.#parser = parser;
  }

  reset(): void {
    this.#tokens = 0;
    this.#references = 0;
  }

  /** Returns what is wrong with a document that has this lexeme too; null if it is within the limits. */
  add(lexeme: string): string | null {
    const { depthMax, tokensMax, referencesMax } = this.#limits;
    const type = this.#isScalarNext ? "scalar" : this.#cst.tokenType(lexeme);
    this.#isScalarNext = !this.#isScalarNext && lexeme === this.#cst.SCALAR;
    this.#tokens += 1;
    if (this.#tokens > tokensMax) return `must have at most ${tokensMax} words and marks`;
    // The document itself and the value that is being read are on the stack too.
    if (this.#parser.stack.length > depthMax + 2) return `must nest at most ${depthMax} levels`;
    if (referencesMax === 0 && (type === "tag" || type === "directive-line")) return "must have no tags or directives";
    if (type !== "anchor" && type !== "alias") return null;
    this.#references += 1;
    if (this.#references <= referencesMax) return null;
    return referencesMax === 0
      ? "must have no anchors, aliases or merge keys"
      : `must have at most ${referencesMax} anchors and aliases`;
  }
}

type Place = (offset: number) => { readonly line: number; readonly col: number };

function toValue(document: Document.Parsed, place: Place): YamlDocument {
  const errors = [...document.errors.slice(0, PROBLEMS_MAX).map((error) => parserProblem(error, place))];
  const problems = errors.length > 0 ? errors : keyProblems(document, place);
  if (problems.length > 0) return { kind: "invalid", problems };
  const line = place(document.range[0]).line;
  try {
    const value = document.toJS() as Json | undefined;
    if (isCyclic(value)) return invalid(line, "has an alias that is part of its own anchor");
    if (countValues(value) > VALUES_MAX) return invalid(line, `must have at most ${VALUES_MAX} values`);
    return { kind: "value", value: value ?? null };
  } catch (error) {
    // An unknown alias, or aliases that expand too far.
    return invalid(line, "has aliases that cannot be expanded", error instanceof Error ? error.message : String(error));
  }
}

function parserProblem({ code, message, pos }: Document.Parsed["errors"][number], place: Place): YamlProblem {
  const { line, col } = place(pos[0]);
  const detail = `${message.split("\n", 1)[0]} at line ${line}, column ${col}`;
  return { line, message: code === "NON_STRING_KEY" ? "has a key that is no text" : "is not valid YAML", detail };
}

/** Returns the duplicate keys, and keys that would change an object's prototype in careless code. */
function keyProblems(document: Document.Parsed, place: Place): readonly YamlProblem[] {
  const problems: YamlProblem[] = [];
  const { visit } = yaml();
  visit(document, {
    Map(_key, map) {
      append(problems, wrongKeys(map, place));
      return problems.length < PROBLEMS_MAX ? undefined : visit.BREAK;
    },
  });
  return problems.slice(0, PROBLEMS_MAX);
}

function wrongKeys(map: YAMLMap, place: Place): readonly YamlProblem[] {
  const { isScalar } = yaml();
  const seen = new Set<unknown>();
  const problems: YamlProblem[] = [];
  for (const { key } of map.items) {
    // The parser has refused keys that are no text.
    if (!isScalar(key)) continue;
    const { line } = place(key.range?.[0] ?? 0);
    const shown = JSON.stringify(String(key.value).slice(0, NAME_SHOWN_MAX));
    if (key.value === "__proto__") problems.push({ line, message: `must not have the key ${shown}`, detail: "" });
    if (seen.has(key.value)) {
      problems.push({ line, message: `has the key ${shown} for the second time in one object`, detail: "" });
    }
    seen.add(key.value);
  }
  return problems;
}

/** True if a value contains itself. `outer` holds the values around this one. */
function isCyclic(value: unknown, outer: Set<object> = new Set(), clear: Set<object> = new Set()): boolean {
  if (typeof value !== "object" || value === null || clear.has(value)) return false;
  if (outer.has(value)) return true;
  outer.add(value);
  const found = Object.values(value).some((inner) => isCyclic(inner, outer, clear));
  outer.delete(value);
  clear.add(value);
  return found;
}

/** Counts every value that a reader would meet, up to the limit. */
function countValues(value: unknown, counted = 0): number {
  if (typeof value !== "object" || value === null || counted > VALUES_MAX) return counted + 1;
  return Object.values(value).reduce<number>((count, inner) => countValues(inner, count), counted + 1);
}

function invalid(line: number | null, message: string, detail = ""): YamlDocument {
  return { kind: "invalid", problems: [{ line, message, detail }] };
}
