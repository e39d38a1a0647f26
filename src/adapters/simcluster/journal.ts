import { closeSync, fsyncSync, openSync, readFileSync, renameSync, writeSync } from "node:fs";
import { join } from "node:path";
import { makeDirectory } from "../../runtime/make-directory.ts";
import { keyOf } from "./kube-object.ts";
import type { Change, Snapshot } from "./store.ts";

/** One line of the file: the first is a snapshot, each later one the changes of a moment, or the time alone. */
type Line =
  | { readonly snapshot: Snapshot }
  | { readonly nowMs: number; readonly version: number; readonly changes: readonly Change[] };

const FILE = "cluster.journal";
/** A file that has grown by so much, and to more than twice its snapshot, is written anew. */
const GROWTH_BYTES = 8 * 1024 * 1024;

/**
 * Keeps a cluster's state in a file. What `append` has returned from survives the end of the process, though not of the
 * machine; a line that a crash tore is as if it had never been written.
 */
export class Journal {
  readonly #path: string;
  #file = -1;
  #snapshotBytes = 0;
  #grownBytes = 0;
  /** The last write failed, perhaps in the middle of a line. */
  #torn = false;

  constructor(directory: string) {
    makeDirectory(directory);
    this.#path = join(directory, FILE);
  }

  /** The state as it was last written; null if there is none yet. Throws if the file is damaged before its last line. */
  load(): Snapshot | null {
    let text: string;
    try {
      text = readFileSync(this.#path, "utf8");
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "ENOENT") return null;
      throw error;
    }
    return replay(text);
  }

  /** Starts a new file with this state alone, in the place of the old one. */
  rewrite(snapshot: Snapshot): void {
    const fresh = `${this.#path}.new`;
    const file = openSync(fresh, "w");
    const line: Line = { snapshot };
    this.#snapshotBytes = writeAll(file, line);
    this.#grownBytes = 0;
    this.#torn = false;
    fsyncSync(file);
    renameSync(fresh, this.#path);
    if (this.#file >= 0) closeSync(this.#file);
    this.#file = file;
  }

  /**
   * Adds the changes of a moment, or the time alone. `state` is asked for only if the file is to be written anew: when it has
   * grown, or after a write that failed. Throws what the file system throws; then nothing of the change may be acknowledged.
   */
  append(nowMs: number, changes: readonly Change[], state: () => Snapshot): void {
    const line: Line = { nowMs, version: versionOf(changes), changes };
    const full = this.#grownBytes > Math.max(GROWTH_BYTES, this.#snapshotBytes);
    if (full || this.#torn) {
      this.rewrite(state());
      return;
    }
    this.#torn = true;
    this.#grownBytes += writeAll(this.#file, line);
    this.#torn = false;
  }

  close(): void {
    if (this.#file >= 0) closeSync(this.#file);
    this.#file = -1;
  }
}

/** Only a change that takes a version of its own counts; what the kubelet remembers takes none. */
function versionOf(changes: readonly Change[]): number {
  return changes.reduce((most, { object }) => Math.max(most, Number(object.metadata.resourceVersion)), 0);
}

function writeAll(file: number, line: Line): number {
  const bytes = Buffer.from(`${JSON.stringify(line)}\n`);
  for (let at = 0; at < bytes.length; ) at += writeSync(file, bytes, at);
  return bytes.length;
}

/** The state that a journal's text tells of; null if not even its snapshot is whole. */
export function replay(text: string): Snapshot | null {
  const whole = text.slice(0, text.lastIndexOf("\n"));
  if (whole === "" || !text.includes("\n")) return null;
  const state: State = { nowMs: 0, version: 0, entries: new Map() };
  for (const line of whole.split("\n")) replayLine(state, JSON.parse(line) as Line);
  return { ...state, entries: [...state.entries.values()] };
}

type State = { nowMs: number; version: number; readonly entries: Map<string, Snapshot["entries"][number]> };

function replayLine(state: State, line: Line): void {
  const { nowMs, version } = "snapshot" in line ? line.snapshot : line;
  state.nowMs = Math.max(state.nowMs, nowMs);
  state.version = Math.max(state.version, version);
  const changes = "snapshot" in line ? line.snapshot.entries : line.changes;
  for (const change of changes) {
    const { resource, object, run } = change;
    const id = `${resource}/${keyOf(object.metadata)}`;
    if ("gone" in change && change.gone === true) state.entries.delete(id);
    else state.entries.set(id, { resource, object, run });
  }
}
