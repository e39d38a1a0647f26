import { usageFailure } from "../shell/exit.ts";

/** A path of kubectl as standard JSONPath. `fromRoot`: it begins with `$`, the whole response. */
export type StandardPath = { readonly text: string; readonly fromRoot: boolean };

/**
 * Translates a path of kubectl, such as `.metadata.labels.example\.com/team`, to standard JSONPath:
 * `$['metadata']['labels']['example.com/team']`.
 */
export function toStandardPath(path: string): StandardPath {
  const [, anchor = "", rest = ""] = /^([$@]?)(.*)$/s.exec(path.trim()) ?? [];
  const relative = rest === "." ? "" : rest;
  const begun = anchor === "" && /^[^.[]/.test(relative) ? `.${relative}` : relative;
  return { text: `$${segmentsOf(begun, path)}`, fromRoot: anchor === "$" };
}

/** `.name` with escaped characters, `..`, or a bracket with its quoted texts and inner brackets. */
const SEGMENT = /\.{1,2}(?:\\.|[^.[\]\\])*|\[(?:'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*"|\[[^\]]*\]|[^[\]'"])*\]/gsy;

function segmentsOf(path: string, whole: string): string {
  SEGMENT.lastIndex = 0;
  let standard = "";
  let end = 0;
  for (const [segment] of path.matchAll(SEGMENT)) {
    end += segment.length;
    const translated = segment.startsWith("[") ? bracket(segment) : member(segment, path[end] === "[");
    if (translated === null) throw wrongPath(whole);
    standard += translated;
  }
  if (end !== path.length) throw wrongPath(whole);
  return standard;
}

/** Returns null for a dot without a name. `..[` selects by the bracket at any depth. */
function member(segment: string, isBeforeBracket: boolean): string | null {
  const depth = segment.startsWith("..") ? ".." : "";
  const name = segment.slice(depth === "" ? 1 : 2);
  if (name === "") return depth !== "" && isBeforeBracket ? ".." : null;
  return `${depth}${name === "*" ? "[*]" : quoted(name)}`;
}

function quoted(name: string): string {
  const plain = name.replaceAll(/\\(.)/gs, "$1");
  return `['${plain.replaceAll(/['\\]/g, "\\$&")}']`;
}

/** Within a filter, the members of `@.a.b-c` get brackets too. */
function bracket(segment: string): string {
  if (!/^\[\s*\?/.test(segment)) return segment;
  return segment.replaceAll(
    /'(?:\\.|[^'\\])*'?|"(?:\\.|[^"\\])*"?|@((?:\.(?:\\.|[\w-])+)+)/gs,
    (found, members: string | undefined) =>
      members === undefined
        ? found
        : `@${[...members.matchAll(/\.((?:\\.|[\w-])+)/gs)].map(([, name = ""]) => quoted(name)).join("")}`,
  );
}

function wrongPath(path: string): Error {
  return usageFailure(
    `--output: ${path} is not a path such as .metadata.name, ['a'], [0], [*] or [?(@.type=="Ready")]`,
  );
}
