/**
 * The templates of `-o jsonpath=…` and `-o custom-columns=…`, as kubectl's users write them. The library evaluates
 * standard JSONPath (RFC 9535), which runs no code of the template.
 */

import { compile, type JSONPathQuery, type JSONValue } from "json-p3";
import type { Json } from "../../runtime/json.ts";
import { append } from "../../runtime/lists.ts";
import { splitOutside } from "../../runtime/scan-text.ts";
import { usageFailure } from "../shell/exit.ts";
import type { Template, TemplateSource } from "../shell/options.ts";
import { toStandardPath } from "./standard-path.ts";
import { renderTable } from "./table.ts";

/** Compiles a template. Throws a usage error that shows the wrong part. */
export function compileTemplate({ kind, text }: TemplateSource): Template {
  return kind === "jsonpath" ? jsonPathTemplate(text) : columnsTemplate(text);
}

type Path = { readonly query: JSONPathQuery; readonly fromRoot: boolean };

function compilePath(path: string): Path {
  const { text, fromRoot } = toStandardPath(path);
  try {
    return { query: compile(text), fromRoot };
  } catch (error) {
    throw usageFailure(`--output: ${path} is wrong: ${error instanceof Error ? error.message : error}`);
  }
}

function valuesOf({ query, fromRoot }: Path, root: Json, current: Json): readonly Json[] {
  return query.query((fromRoot ? root : current) as JSONValue).values() as readonly Json[];
}

function textOf(value: Json): string {
  return typeof value === "string" ? value : JSON.stringify(value);
}

/** A part of a template: text as it is, the values of a path, or a body for each value of a path. */
type Part =
  | { readonly kind: "text"; readonly text: string }
  | { readonly kind: "path"; readonly path: Path }
  | { readonly kind: "range"; readonly path: Path; readonly body: Part[] };

/** `{…}` with quoted texts in it, or text up to the next brace. */
const PIECE = /\{((?:"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|[^{}"'])*)\}|[^{}]+/gsy;
const ESCAPES: Readonly<Record<string, string>> = { n: "\n", t: "\t", r: "\r" };

function jsonPathTemplate(text: string): Template {
  const isBare = !text.includes("{") && /^[.$@]/.test(text);
  const parts = partsOf(isBare ? `{${text}}` : text);
  return { render: (json) => parts.map((part) => renderPart(part, json, json)).join("") };
}

function partsOf(text: string): readonly Part[] {
  const pieces = [...text.matchAll(PIECE)];
  const end = pieces.reduce((length, [piece]) => length + piece.length, 0);
  if (end !== text.length) throw usageFailure(`--output: a brace is not closed: ${text.slice(end)}`);
  const top: Part[] = [];
  const open: Part[][] = [top];
  for (const [piece, inside] of pieces) {
    const word = inside?.trim();
    if (word === "end") open.pop();
    const into = open.at(-1);
    if (into === undefined) throw usageFailure("--output: there is an {end} without its {range}");
    if (word === "end") continue;
    const part = word === undefined ? ({ kind: "text", text: piece } as const) : partOf(word);
    into.push(part);
    append(open, bodiesOf(part));
  }
  if (open.length > 1) throw usageFailure("--output: a {range} has no {end}");
  return top;
}

function bodiesOf(part: Part): readonly Part[][] {
  return part.kind === "range" ? [part.body] : [];
}

/** The part of the text between braces. */
function partOf(word: string): Part {
  const [, ranged] = /^range\s+(.+)$/s.exec(word) ?? [];
  if (ranged !== undefined) return { kind: "range", path: compilePath(ranged), body: [] };
  return /^["']/.test(word) ? { kind: "text", text: unquote(word) } : { kind: "path", path: compilePath(word) };
}

function unquote(word: string): string {
  return word.slice(1, -1).replaceAll(/\\(.)/gs, (_, character: string) => ESCAPES[character] ?? character);
}

function renderPart(part: Part, root: Json, current: Json): string {
  switch (part.kind) {
    case "text":
      return part.text;
    case "path":
      return valuesOf(part.path, root, current).map(textOf).join(" ");
    case "range":
      return valuesOf(part.path, root, current)
        .map((value) => part.body.map((inner) => renderPart(inner, root, value)).join(""))
        .join("");
  }
}

/** A row for each item of a list, or one for a single object. */
function columnsTemplate(text: string): Template {
  const columns = splitOutside(text, { open: "[", close: "]" }).map((column) => {
    const [, title = "", path = ""] = /^([^:]+):(.+)$/s.exec(column) ?? [];
    if (title === "")
      throw usageFailure(`--output: a column must be TITLE:PATH, such as NAME:.metadata.name, not ${column}`);
    return { title, path: compilePath(path.replace(/^\{(.*)\}$/s, "$1")) };
  });
  return {
    render: (json, items) => {
      const rows = (items ?? [json]).map((item) =>
        columns.map(({ path }) => valuesOf(path, item, item).map(textOf).join(",") || "<none>"),
      );
      return `${renderTable(columns, rows, { columns: null, color: false }).join("\n")}\n`;
    },
  };
}
