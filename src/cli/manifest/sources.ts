import type { CliIo } from "../deps.ts";
import { usageFailure } from "../exit.ts";

/** The text of one manifest file. `name` is its name in messages. */
export type ManifestSource = { readonly name: string; readonly text: string };

const MANIFEST = /\.(?:ya?ml|json)$/;
/** More than any set of manifests. Protects against a large folder that was given by mistake. */
const FILES_MAX = 1000;

/**
 * Reads the manifests that `-f` names, in their order. A path is a file, a folder (its *.yaml, *.yml and *.json files,
 * by name), or `-` for stdin.
 */
export async function readSources(paths: readonly string[], io: CliIo): Promise<readonly ManifestSource[]> {
  const sources: ManifestSource[] = [];
  for (const path of paths) {
    if (path === "-") sources.push({ name: "stdin", text: await readText("stdin", io.readStdin()) });
    else
      for (const file of await filesOf(path, io))
        sources.push({ name: file, text: await readText(file, io.readFile(file)) });
    if (sources.length > FILES_MAX)
      throw usageFailure(`--filename names more than ${FILES_MAX} files; submit fewer at once`);
  }
  return sources;
}

async function readText(name: string, text: Promise<string>): Promise<string> {
  try {
    return await text;
  } catch (error) {
    throw usageFailure(`${name} cannot be read: ${error instanceof Error ? error.message : String(error)}`);
  }
}

async function filesOf(path: string, io: CliIo): Promise<readonly string[]> {
  const entry = await io.lookUp(path);
  if (entry === null) throw usageFailure(`${path} does not exist`);
  if (entry.kind === "file") return [path];
  const names = entry.names.filter((name) => MANIFEST.test(name)).sort();
  if (names.length === 0) throw usageFailure(`folder ${path} has no *.yaml, *.yml or *.json file`);
  return names.map((name) => `${path.replace(/\/+$/, "")}/${name}`);
}
