import { append } from "../../runtime/lists.ts";
import { withoutTrailing } from "../../runtime/scan-text.ts";
import type { CliIo, ReadLimit } from "../shell/deps.ts";
import { usageFailure } from "../shell/exit.ts";

/** The text of one manifest file. `name` is its name in messages. */
export type ManifestSource = { readonly name: string; readonly text: string };

const MANIFEST = /\.(?:ya?ml|json)$/;
/** More than any set of manifests. Protects against a large folder that was given by mistake. */
const FILES_MAX = 1000;
/** As much as the service takes in one request. */
export const SOURCE_BYTES_MAX = 16 * 1024 * 1024;
/** All files are in memory together. */
const SOURCES_BYTES_MAX = 64 * 1024 * 1024;

/** The files to read from, and the signal that ends reading. Omitted: nothing ends it. */
export type SourceIo = CliIo & { readonly signal?: AbortSignal };

/**
 * Reads the manifests that `-f` names, in their order. A path is a file, a folder (its *.yaml, *.yml and *.json files,
 * by name), or `-` for stdin.
 */
export async function readSources(
  paths: readonly string[],
  io: SourceIo,
  bytesMax = SOURCE_BYTES_MAX,
): Promise<readonly ManifestSource[]> {
  const { signal } = io;
  const files: (string | null)[] = [];
  for (const path of paths) append(files, path === "-" ? [null] : await filesOf(path, io));
  if (files.length > FILES_MAX)
    throw usageFailure(`--filename names more than ${FILES_MAX} files; submit fewer at once`);
  const sources: ManifestSource[] = [];
  let left = SOURCES_BYTES_MAX;
  for (const file of files) {
    const source = await readSource(file, io, { bytesMax: Math.min(bytesMax, left), signal });
    left -= Buffer.byteLength(source.text);
    sources.push(source);
  }
  return sources;
}

/** A null file is stdin. */
async function readSource(file: string | null, io: CliIo, limit: ReadLimit): Promise<ManifestSource> {
  const name = file ?? "stdin";
  try {
    return { name, text: await (file === null ? io.readStdin(limit) : io.readFile(file, limit)) };
  } catch (error) {
    // The interruption ends the command, not this file.
    if (limit.signal?.aborted) throw error;
    throw usageFailure(`${name} cannot be read: ${error instanceof Error ? error.message : String(error)}`);
  }
}

async function filesOf(path: string, io: CliIo): Promise<readonly string[]> {
  const entry = await io.lookUp(path);
  if (entry === null) throw usageFailure(`${path} does not exist`);
  if (entry.kind === "file") return [path];
  const names = entry.names.filter((name) => MANIFEST.test(name)).sort();
  if (names.length === 0) throw usageFailure(`folder ${path} has no *.yaml, *.yml or *.json file`);
  return names.map((name) => `${withoutTrailing(path, "/")}/${name}`);
}
