import { parseAllDocuments } from "yaml";
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
  const parsed = parseAllDocuments(source.text, { merge: true, prettyErrors: true });
  if (!Array.isArray(parsed)) return { documents, errors };
  parsed.forEach((document, at) => {
    const where = `${source.name}, document ${at + 1}`;
    if (document.errors.length > 0) {
      errors.push(...document.errors.map((error) => `${where}: ${firstLine(error.message)}`));
      return;
    }
    const value = toJson(() => document.toJS() as Json);
    if ("error" in value) errors.push(`${where}: ${value.error}`);
    else if (value.json !== null && value.json !== undefined) documents.push({ where, value: value.json });
  });
  return { documents, errors };
}

/** Aliases that name nothing, or expand without end, are found only here. */
function toJson(convert: () => Json): { readonly json: Json } | { readonly error: string } {
  try {
    return { json: convert() };
  } catch (error) {
    return { error: firstLine(error instanceof Error ? error.message : String(error)) };
  }
}

function firstLine(message: string): string {
  return message.split("\n", 1)[0]?.replace(/:$/, "") ?? message;
}
