/** Writes what is made from the sources, and notes which files it was made from. */
import { mkdirSync, renameSync, statSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";

const root = join(import.meta.dirname, "..");

/** The files that something was made from, by their path in the clone, with their mtime and size. */
export type Inputs = Readonly<Record<string, readonly [mtimeMs: number, size: number]>>;

/** `startedMs`: when their reading began. */
export function inputsOf(paths: readonly string[], startedMs: number): Inputs {
  return Object.fromEntries(paths.map((path) => [path, stamp(path, startedMs)]));
}

/** A file that changed while it was read gets a stamp that never fits, so that the next call reads it again. */
function stamp(path: string, startedMs: number): readonly [number, number] {
  const { mtimeMs, size } = statSync(join(root, path));
  return [mtimeMs < startedMs ? mtimeMs : 0, size];
}

/** True while every file is as it was. */
export function isCurrent(inputs: Inputs): boolean {
  return Object.entries(inputs).every(([path, [mtimeMs, size]]) => {
    const stat = statSync(join(root, path), { throwIfNoEntry: false });
    return stat?.mtimeMs === mtimeMs && stat.size === size;
  });
}

/** Several processes may write the same file at once: it appears whole. */
export function writeWhole(path: string, content: string | Uint8Array): void {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(`${path}.${process.pid}`, content);
  renameSync(`${path}.${process.pid}`, path);
}
