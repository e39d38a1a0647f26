import { parseAllDocuments, type YAMLError } from "yaml";
import type { Json } from "../../runtime/json.ts";
import type { Source } from "./sources.ts";

/** One document of a source; `where` names file and number. */
export type ManifestDocument = { readonly where: string; readonly value: Json };

/** The documents of a source that are not empty, and what is wrong with those that are no YAML (JSON is YAML too). */
export function parseDocuments(source: Source): {
  readonly documents: readonly ManifestDocument[];
  readonly errors: readonly string[];
} {
  const documents: ManifestDocument[] = [];
  const errors: string[] = [];
  const parsed = parseAllDocuments(source.text, { merge: true, prettyErrors: true, stringKeys: true });
  if (!Array.isArray(parsed)) return { documents, errors };
  parsed.forEach((document, at) => {
    const where = `${source.name}, document ${at + 1}`;
    if (document.errors.length > 0) {
      errors.push(...document.errors.map((error) => `${where}: ${errorText(error)}`));
      return;
    }
    const value = toJson(() => document.toJS() as Json);
    if ("error" in value) {
      errors.push(`${where}: ${value.error}`);
      return;
    }
    const notFinite = findNotFinite(value.json, "");
    if (notFinite !== null) errors.push(`${where}: ${notFinite}: must be a finite number`);
    else if (value.json !== null && value.json !== undefined) documents.push({ where, value: value.json });
  });
  return { documents, errors };
}

/** A chart's template, `{{ .Values.image }}`, is YAML in which a mapping is a key: it is told so instead of becoming a name. */
function errorText({ code, message }: YAMLError): string {
  const text = firstLine(message);
  if (code !== "NON_STRING_KEY") return text;
  return `${text.replace(/^With stringKeys, all keys/, "keys")}; templates with {{ }} must be rendered first`;
}

/** Aliases that name nothing, or expand without end, are found only here. */
function toJson(convert: () => Json): { readonly json: Json } | { readonly error: string } {
  try {
    return { json: convert() };
  } catch (error) {
    return { error: firstLine(error instanceof Error ? error.message : String(error)) };
  }
}

/** Where a number is that YAML knows and JSON does not (.nan, .inf); null where there is none. */
function findNotFinite(value: Json | undefined, path: string): string | null {
  if (typeof value === "number") return Number.isFinite(value) ? null : path;
  if (typeof value !== "object" || value === null) return null;
  for (const [member, inner] of Object.entries(value)) {
    const found = findNotFinite(inner, Array.isArray(value) ? `${path}[${member}]` : `${path}${path && "."}${member}`);
    if (found !== null) return found;
  }
  return null;
}

function firstLine(message: string): string {
  return message.split("\n", 1)[0]?.replace(/:$/, "") ?? message;
}
