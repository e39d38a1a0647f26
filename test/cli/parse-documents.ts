import { type ManifestDocument, readDocuments } from "../../src/cli/manifest/documents.ts";
import type { ManifestSource } from "../../src/cli/manifest/sources.ts";

/** Reads a source to its end. */
export function parseDocuments(source: ManifestSource): {
  readonly documents: readonly ManifestDocument[];
  readonly errors: readonly string[];
} {
  const steps = [...readDocuments(source)].flatMap((step) => step ?? []);
  return {
    documents: steps.flatMap((step) => ("error" in step ? [] : step)),
    errors: steps.flatMap((step) => ("error" in step ? step.error : [])),
  };
}
