/** Bounds how many errors and warnings about one request are kept and sent. */
import type { FieldError, FieldNote } from "./sent.ts";

/** Many times what a person reads. A template may have a hundred thousand unknown fields. */
export const NOTES_MAX = 100;

type Counted = { readonly message: string; readonly more?: number };

/** Keeps the first `NOTES_MAX` notes, and counts the others. */
export class NoteList<Note extends Counted> {
  readonly #kept: Note[] = [];
  #more = 0;

  /** Makes a note, unless it would only be counted. */
  add(make: () => Note): void {
    if (this.#kept.length < NOTES_MAX) this.#kept.push(make());
    else this.#more += 1;
  }

  addAll(notes: Iterable<Note>): void {
    for (const note of notes) {
      if (note.more !== undefined) this.#more += note.more;
      else this.add(() => note);
    }
  }

  /** The notes. If there are more, `rest` makes the last one of a text such as "and 131,151 more". */
  list(rest: (of: { readonly message: string; readonly more: number }) => Note): readonly Note[] {
    if (this.#more === 0) return this.#kept;
    return [...this.#kept, rest({ message: restText(this.#more), more: this.#more })];
  }
}

/** The first notes of several lists in their order, and how many more there are. */
export function joinNotes(...lists: readonly Iterable<FieldNote>[]): readonly FieldNote[] {
  return joined(lists).list((rest) => ({ field: "", ...rest }));
}

/** As `joinNotes`, for errors in one part of a spec. `path`: that part. */
export function joinErrors(path: string, ...lists: readonly Iterable<FieldError>[]): readonly FieldError[] {
  return joined(lists).list((rest) => ({ path, ...rest }));
}

/** How many notes a list stands for. */
export function countNotes(notes: readonly Counted[]): number {
  return notes.reduce((count, { more = 1 }) => count + more, 0);
}

/** `and 131,151 more`. */
export function restText(more: number): string {
  return `and ${more.toLocaleString("en-US")} more`;
}

function joined<Note extends Counted>(lists: readonly Iterable<Note>[]): NoteList<Note> {
  const all = new NoteList<Note>();
  for (const list of lists) all.addAll(list);
  return all;
}
