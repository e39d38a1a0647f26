import type { CliIo } from "../deps.ts";
import { usageFailure } from "../exit.ts";

/** One manifest file's text; `name` is how messages call it. */
export type Source = { readonly name: string; readonly text: string };

const MANIFEST = /\.(?:ya?ml|json)$/;
/** Far more than any set of manifests; a folder given by mistake should not be read to its end. */
const FILES_MAX = 1000;

/** The manifests that `-f` names, in the order given: files, every *.yaml, *.yml and *.json of a folder by name, `-` for stdin. */
export async function readSources(paths: readonly string[], io: CliIo): Promise<readonly Source[]> {
  const sources: Source[] = [];
  for (const path of paths) {
    if (path === "-") sources.push({ name: "stdin", text: await readText("stdin", io.readStdin()) });
    else
      for (const file of await filesOf(path, io))
        sources.push({ name: file, text: await readText(file, io.readFile(file)) });
    if (sources.length > FILES_MAX) throw usageFailure(`more than ${FILES_MAX} files`);
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
  if (names.length === 0) throw usageFailure(`${path} has no *.yaml, *.yml or *.json`);
  return names.map((name) => `${path.replace(/\/+$/, "")}/${name}`);
}
