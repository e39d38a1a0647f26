import type { Job } from "../../gen/gangway/v1/job_pb.ts";
import type { CliIo } from "../deps.ts";
import { parseDocuments } from "./documents.ts";
import { type DefaultNamespace, readManifest } from "./manifest.ts";
import { readSources } from "./sources.ts";

/** A manifest that is ready to be sent; `where` names its file and document. */
export type ReadyJob = { readonly where: string; readonly job: Job };

/** Every manifest that the paths name: those that can be sent, and what is wrong and odd about any, with its place. */
export type ReadManifests = {
  readonly ready: readonly ReadyJob[];
  readonly errors: readonly string[];
  readonly warnings: readonly string[];
};

export async function readManifests(
  paths: readonly string[],
  options: { readonly io: CliIo; readonly namespace: DefaultNamespace },
): Promise<ReadManifests> {
  const ready: ReadyJob[] = [];
  const errors: string[] = [];
  const warnings: string[] = [];
  for (const source of await readSources(paths, options.io)) {
    const parsed = parseDocuments(source);
    errors.push(...parsed.errors);
    for (const { where, value } of parsed.documents) {
      const manifest = readManifest(value, options.namespace);
      if (manifest.kind === "invalid") errors.push(...manifest.errors.map((note) => noteLine(where, note)));
      else {
        ready.push({ where, job: manifest.job });
        warnings.push(...manifest.warnings.map((note) => noteLine(where, note)));
      }
    }
  }
  return { ready, errors: [...errors, ...duplicates(ready)], warnings };
}

/** One remark on a field of a document, or on the whole of it. */
export function noteLine(where: string, note: { readonly field: string; readonly message: string }): string {
  return note.field === "" ? `${where}: ${note.message}` : `${where}: ${note.field}: ${note.message}`;
}

/** Two manifests of one name would be one job, whichever is sent first. */
function duplicates(ready: readonly ReadyJob[]): string[] {
  const takenBy = new Map<string, string>();
  const errors: string[] = [];
  for (const { where, job } of ready) {
    const { name = "", namespace = "" } = job.metadata ?? {};
    const key = `${namespace}/${name}`;
    const taken = takenBy.get(key);
    if (name === "") continue;
    if (taken === undefined) takenBy.set(key, where);
    else errors.push(noteLine(where, { field: "metadata.name", message: `${name} is also the name of ${taken}` }));
  }
  return errors;
}
