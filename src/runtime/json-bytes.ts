import { getOrCreate } from "./get-or-create.ts";

/** The size of JSON without its text, for values that would be large if they were written. */

/** A text of which only the size is known, in a value that is only measured. */
export class SizedText {
  /** The bytes of the text in JSON, in UTF-8, without the quotes. */
  readonly bytes: number;

  constructor(bytes: number) {
    this.bytes = bytes;
  }
}

/** Shorter texts are measured again: that costs less than to remember them. */
const REMEMBERED_CHARS_MIN = 64;
const QUOTES = 2;

/**
 * Measures values that share parts. Each object and each long text is measured once, so that the cost follows the parts
 * and not the sum. A measured object must not change.
 */
export class JsonMeter {
  readonly #objects = new WeakMap<object, number>();
  readonly #texts = new Map<string, number>();

  /** The bytes of a value as `JSON.stringify` writes it, in UTF-8. A `SizedText` counts as a text of its size. */
  bytesOf(value: unknown): number {
    if (typeof value === "string") return this.textBytes(value) + QUOTES;
    if (value instanceof SizedText) return value.bytes + QUOTES;
    if (typeof value !== "object" || value === null) return String(JSON.stringify(value) ?? null).length;
    return getOrCreate(this.#objects, value, () =>
      Array.isArray(value) ? this.#listBytes(value) : this.#memberBytes(value),
    );
  }

  /** The bytes of a text in JSON, without the quotes. */
  textBytes(text: string): number {
    if (text.length < REMEMBERED_CHARS_MIN) return escapedBytes(text);
    const known = getOrCreate(this.#texts, text, () => escapedBytes(text));
    return known;
  }

  #listBytes(list: readonly unknown[]): number {
    let bytes = 2 + Math.max(0, list.length - 1);
    for (const item of list) bytes += this.bytesOf(item);
    return bytes;
  }

  #memberBytes(object: object): number {
    let bytes = 1;
    const members = object as Readonly<Record<string, unknown>>;
    for (const name in members) {
      const value = members[name];
      if (value !== undefined) bytes += this.textBytes(name) + QUOTES + 1 + this.bytesOf(value) + 1;
    }
    return Math.max(bytes, 2);
  }
}

function escapedBytes(text: string): number {
  return Buffer.byteLength(JSON.stringify(text)) - QUOTES;
}
