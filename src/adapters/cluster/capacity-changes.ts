import {
  type CapacityEntry,
  type EntryChange,
  type EntryKey,
  entryKeyText,
  presentEntry,
} from "../../core/plan/model/capacity-entry.ts";

/** The entries of a cluster's capacity as they are now. */
export type CapacitySource = {
  /** All entries. Null until nodes and pods have been listed completely. */
  readonly all: () => readonly CapacityEntry[] | null;
  /** One entry. Null: there is none. */
  readonly entry: (key: EntryKey) => CapacityEntry | null;
};

/**
 * A part of a capacity record: all entries, or those that changed since the part before. `since` is the epoch of the
 * complete part that the changes follow; null: this part is complete.
 */
export type CapacityPart = { readonly since: number | null; readonly changes: readonly EntryChange[] };

/**
 * Finds what changed in a cluster's capacity since it was last recorded. Computes and compares only the entries that
 * were marked. After a part that was not recorded, the next one is complete.
 */
export class CapacityChanges {
  readonly #source: CapacitySource;
  #since: number | null = null;
  /** True if a restart came after the last part was taken: the record of that part does not count then. */
  #restarted = false;
  readonly #marked = new Map<string, EntryKey>();
  /** The recorded entries, as JSON by key. */
  readonly #recorded = new Map<string, string>();

  constructor(source: CapacitySource) {
    this.#source = source;
  }

  /** Notes that an entry may have changed. */
  mark(key: EntryKey): void {
    this.#marked.set(entryKeyText(key), key);
  }

  /** Makes the next part complete. */
  restart(): void {
    this.#since = null;
    this.#restarted = true;
    this.#recorded.clear();
  }

  /** The next part, which may be empty. Null until the cluster has been listed. */
  next(): CapacityPart | null {
    const since = this.#since;
    this.#restarted = false;
    const changes = since === null ? this.#complete() : this.#changed();
    return changes === null ? null : { since, changes };
  }

  /** Notes that a part was recorded under this epoch. Null: it was not recorded. */
  recorded(epoch: number | null): void {
    if (epoch === null) this.restart();
    else if (!this.#restarted) this.#since = epoch;
  }

  #complete(): readonly EntryChange[] | null {
    const all = this.#source.all();
    if (all === null) return null;
    this.#marked.clear();
    this.#recorded.clear();
    return all.map((entry) => {
      this.#recorded.set(entryKeyText(entry), JSON.stringify(entry));
      return presentEntry(entry);
    });
  }

  #changed(): readonly EntryChange[] {
    const marked = [...this.#marked];
    this.#marked.clear();
    return marked.flatMap(([text, key]) => {
      const entry = this.#source.entry(key);
      return this.#isNews(text, entry) ? [{ key, entry }] : [];
    });
  }

  /** True if the entry differs from the recorded one, which it then replaces. */
  #isNews(text: string, entry: CapacityEntry | null): boolean {
    if (entry === null) return this.#recorded.delete(text);
    const json = JSON.stringify(entry);
    if (this.#recorded.get(text) === json) return false;
    this.#recorded.set(text, json);
    return true;
  }
}
