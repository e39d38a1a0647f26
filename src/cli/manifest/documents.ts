import type { Json } from "../../runtime/json.ts";
import { readYamlDocuments, type YamlLimits, type YamlProblem } from "../../runtime/yaml.ts";
import { type ManifestSource, SOURCE_BYTES_MAX } from "./sources.ts";

/** One YAML document. `where` names its file and its number in the file. */
export type ManifestDocument = { readonly where: string; readonly value: Json };

const LIMITS: YamlLimits = {
  bytesMax: SOURCE_BYTES_MAX,
  // The service's messages nest less deep.
  depthMax: 64,
  // Templates have at most 1 MiB. Some seconds of work.
  tokensMax: 500_000,
  referencesMax: 1_000,
};

export type DocumentStep = ManifestDocument | { readonly error: string };

/**
 * Parses a source as YAML (JSON is YAML too). Yields its documents without the empty ones, the errors of invalid ones,
 * and null where the caller may pause.
 */
export function* readDocuments(source: ManifestSource): Generator<DocumentStep | null> {
  let number = 0;
  for (const document of readYamlDocuments(source.text, LIMITS)) {
    yield null;
    if (document === null) continue;
    number += 1;
    const where = `${source.name}, document ${number}`;
    if (document.kind === "value") yield* checked({ where, value: document.value });
    else for (const problem of document.problems) yield { error: `${where}: ${problemText(problem)}` };
  }
}

function checked(document: ManifestDocument): readonly DocumentStep[] {
  const notFinite = findNotFinite(document.value, "");
  if (notFinite !== null) return [{ error: `${document.where}: ${notFinite}: must be a finite number` }];
  return document.value === null ? [] : [document];
}

/** Explains a Helm template, `{{ .Values.image }}`: to YAML this is a mapping whose key is a mapping. */
function problemText({ line, message, detail }: YamlProblem): string {
  if (detail === "") return line === null ? message : `line ${line} ${message}`;
  if (!detail.startsWith("With stringKeys, all keys")) return detail;
  return `${detail.replace(/^With stringKeys, all keys/, "keys")}; templates with {{ }} must be rendered first`;
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
