import { chmodSync, existsSync, mkdirSync, statSync } from "node:fs";
import { dirname, resolve } from "node:path";

/** The permissions that the owner may have, and those of everybody else. */
const OWN = 0o700;
const OTHERS = 0o077;

/**
 * Creates a directory and its missing parents. Node's own `recursive` option never returns on a file system that takes
 * no directories, such as /proc.
 */
export function makeDirectory(path: string, mode?: number): void {
  const directory = resolve(path);
  if (existsSync(directory)) return;
  makeDirectory(dirname(directory));
  try {
    mkdirSync(directory, mode);
  } catch (error) {
    // Another process may have created it just now.
    if (!existsSync(directory)) throw error;
  }
}

/**
 * Creates a directory that other users can neither list nor enter. Takes their permissions away if it exists with some.
 * Throws if it belongs to another user. A file system that keeps no permissions is used as it is.
 */
export function makePrivateDirectory(path: string): void {
  makeDirectory(path, OWN);
  const mode = statSync(path).mode & 0o777;
  if ((mode & OTHERS) === 0 || process.platform === "win32") return;
  try {
    chmodSync(path, mode & OWN);
  } catch (error) {
    const why = `other users may enter it (mode ${mode.toString(8)}), and this user may not change that`;
    throw new Error(`will not use ${path}: ${why}; run chmod 700 as its owner, or use a folder below it`, {
      cause: error,
    });
  }
}
