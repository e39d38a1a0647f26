import { closeSync, fsyncSync, openSync, readFileSync, renameSync, writeSync } from "node:fs";
import { join } from "node:path";
import { makeDirectory } from "../../../runtime/make-directory.ts";
import { keyOf } from "./kube-object.ts";
import type { ClusterSnapshot, ObjectChange } from "./object-store.ts";

/** One line of the file: the first is a snapshot, each later one has a time and the changes until then. */
type JournalLine =
  | { readonly snapshot: ClusterSnapshot }
  | { readonly nowMs: number; readonly version: number; readonly changes: readonly ObjectChange[] };

const FILE = "cluster.journal";
/** A file is rewritten after it has grown by this much, and to more than twice its snapshot. */
const GROWTH_BYTES = 8 * 1024 * 1024;

/**
 * Saves a cluster's state in a file. Changes that `append` has written survive a killed process, but not a crash of the
 * machine. An incomplete last line is ignored.
 */
export class Journal {
  readonly #path: string;
  #file = -1;
  #snapshotBytes = 0;
  #grownBytes = 0;
  /** True: the last write failed, perhaps in the middle of a line. */
  #isTorn = false;

  constructor(directory: string) {
    makeDirectory(directory);
    this.#path = join(directory, FILE);
  }

  /** Reads the saved state. Null: there is none yet. Throws if a line before the last one is damaged. */
  load(): ClusterSnapshot | null {
    let text: string;
    try {
      text = readFileSync(this.#path, "utf8");
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "ENOENT") return null;
      throw error;
    }
    return replay(text);
  }

  /** Replaces the file by a new one that has only this snapshot. */
  rewrite(snapshot: ClusterSnapshot): void {
    const fresh = `${this.#path}.new`;
    const file = openSync(fresh, "w");
    try {
      const line: JournalLine = { snapshot };
      this.#snapshotBytes = writeAll(file, line);
      fsyncSync(file);
      renameSync(fresh, this.#path);
    } catch (error) {
      closeSync(file);
      throw error;
    }
    this.#grownBytes = 0;
    this.#isTorn = false;
    if (this.#file >= 0) closeSync(this.#file);
    this.#file = file;
  }

  /**
   * Adds the time and the changes until then. Calls `state` only to rewrite the file: when it has grown, or after a
   * failed write. Throws the file system's error; the caller must then not acknowledge the changes.
   */
  append(nowMs: number, changes: readonly ObjectChange[], state: () => ClusterSnapshot): void {
    const line: JournalLine = { nowMs, version: versionOf(changes), changes };
    const full = this.#grownBytes > Math.max(GROWTH_BYTES, this.#snapshotBytes);
    if (full || this.#isTorn) {
      this.rewrite(state());
      return;
    }
    this.#isTorn = true;
    this.#grownBytes += writeAll(this.#file, line);
    this.#isTorn = false;
  }

  close(): void {
    if (this.#file >= 0) closeSync(this.#file);
    this.#file = -1;
  }
}

/** Returns the highest version of the changes. A change of the kubelet's state has no new version. */
function versionOf(changes: readonly ObjectChange[]): number {
  return changes.reduce((most, { object }) => Math.max(most, Number(object.metadata.resourceVersion)), 0);
}

function writeAll(file: number, line: JournalLine): number {
  const bytes = Buffer.from(`${JSON.stringify(line)}\n`);
  for (let at = 0; at < bytes.length; ) at += writeSync(file, bytes, at);
  return bytes.length;
}

/** Rebuilds the state from a journal's text. Null: not even the snapshot is complete. */
export function replay(text: string): ClusterSnapshot | null {
  const whole = text.slice(0, text.lastIndexOf("\n"));
  if (whole === "" || !text.includes("\n")) return null;
  const state: ReplayState = { nowMs: 0, version: 0, entries: new Map() };
  for (const line of whole.split("\n")) replayLine(state, JSON.parse(line) as JournalLine);
  return { ...state, entries: [...state.entries.values()] };
}

type ReplayState = {
  nowMs: number;
  version: number;
  readonly entries: Map<string, ClusterSnapshot["entries"][number]>;
};

function replayLine(state: ReplayState, line: JournalLine): void {
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
