/** Writes JSON as YAML. */

export type Json = string | number | boolean | null | readonly Json[] | { readonly [key: string]: Json };

/** Words that YAML 1.1 or 1.2 would read as something else than text. */
const READ_AS_OTHER = /^(null|true|false|yes|no|on|off|~|y|n|[-+.0-9].*)$/i;
const PLAIN = /^[A-Za-z_/][A-Za-z0-9_./-]*( [A-Za-z0-9_./-]+)*$/;

export function yamlText(value: Json): string {
  return `${lines(value).join("\n")}\n`;
}

function lines(value: Json): readonly string[] {
  if (isList(value)) return value.length === 0 ? ["[]"] : value.flatMap((item) => behind("- ", lines(item)));
  if (typeof value === "object" && value !== null) {
    const entries = Object.entries(value);
    return entries.length === 0 ? ["{}"] : entries.flatMap(([key, of]) => entry(scalar(key), of));
  }
  return [typeof value === "string" ? scalar(value) : String(value)];
}

function entry(key: string, value: Json): readonly string[] {
  if (typeof value === "string" && isBlock(value)) {
    return [`${key}: |${value.endsWith("\n") ? "" : "-"}`, ...value.replace(/\n$/, "").split("\n").map(indented)];
  }
  const isNested = typeof value === "object" && value !== null && Object.keys(value).length > 0;
  if (!isNested) return [`${key}: ${lines(value).join("")}`];
  return [`${key}:`, ...lines(value).map(indented)];
}

function behind(mark: string, [first = "", ...rest]: readonly string[]): readonly string[] {
  return [`${mark}${first}`, ...rest.map(indented)];
}

function indented(line: string): string {
  return line === "" ? "" : `  ${line}`;
}

/** Text of several lines that a block can hold as it is. */
function isBlock(text: string): boolean {
  const hasOdd = /[^\n\x20-\x7e\u00a0-\ud7ff\ue000-\ufffd]|\n\n$|[ ]\n|^[ \n]/.test(text);
  return text.includes("\n") && !hasOdd && text.trim() !== "";
}

function scalar(text: string): string {
  return PLAIN.test(text) && !READ_AS_OTHER.test(text) ? text : JSON.stringify(text);
}

function isList(value: Json): value is readonly Json[] {
  return Array.isArray(value);
}
