import { parseAllDocuments, type YAMLError } from "yaml";
import type { Json } from "../../runtime/json.ts";
import type { ManifestSource } from "./sources.ts";

/** One YAML document. `where` names its file and its number in the file. */
export type ManifestDocument = { readonly where: string; readonly value: Json };

/** Parses a source as YAML (JSON is YAML too). Skips empty documents, and returns the errors of invalid ones. */
export function parseDocuments(source: ManifestSource): {
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

/** Explains a Helm template, `{{ .Values.image }}`: to YAML this is a mapping whose key is a mapping. */
function errorText({ code, message }: YAMLError): string {
  const text = firstLine(message);
  if (code !== "NON_STRING_KEY") return text;
  return `${text.replace(/^With stringKeys, all keys/, "keys")}; templates with {{ }} must be rendered first`;
}

/** Converts a document to JSON. Fails for unknown aliases, and for aliases that expand too far. */
function toJson(convert: () => Json): { readonly json: Json } | { readonly error: string } {
  try {
    return { json: convert() };
  } catch (error) {
    return { error: firstLine(error instanceof Error ? error.message : String(error)) };
  }
}

/** Returns the path of a number that JSON cannot express (.nan, .inf); null if there is none. */
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
