import { existsSync, mkdirSync } from "node:fs";
import { dirname, resolve } from "node:path";

/** Makes a directory and those above it that are missing. Node's own recursive way tries for ever where a file system takes none, as /proc. */
export function makeDirectory(path: string): void {
  const directory = resolve(path);
  if (existsSync(directory)) return;
  makeDirectory(dirname(directory));
  try {
    mkdirSync(directory);
  } catch (error) {
    // Somebody else has just made it.
    if (!existsSync(directory)) throw error;
  }
}
