import { existsSync, mkdirSync } from "node:fs";
import { dirname, resolve } from "node:path";

/**
 * Creates a directory and its missing parents. Node's own `recursive` option never returns on a file system that takes
 * no directories, such as /proc.
 */
export function makeDirectory(path: string): void {
  const directory = resolve(path);
  if (existsSync(directory)) return;
  makeDirectory(dirname(directory));
  try {
    mkdirSync(directory);
  } catch (error) {
    // Another process may have created it just now.
    if (!existsSync(directory)) throw error;
  }
}
