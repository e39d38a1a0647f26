/** Measures what a plugin answers before anything else reads it. */

/** The most bytes of JSON that an answer may have, and the most lists and objects within each other. */
export type AnswerBounds = { readonly bytesMax: number; readonly depthMax: number };

/**
 * Says which bound an answer passes. Null: none. Stops at the bound, so that the cost follows the bound and not the
 * answer, which may also contain itself. No JSON of an answer within the bounds is larger than `bytesMax`.
 */
export function passedAnswerBound(answer: unknown, { bytesMax, depthMax }: AnswerBounds): string | null {
  const budget = new AnswerBudget(bytesMax);
  if (budget.spend(answer, depthMax)) return null;
  if (budget.isSpent()) return `more than ${bytesMax} bytes of JSON`;
  return `more than ${depthMax} lists and objects within each other`;
}

/** The bytes that are left. Each method returns false once a bound is passed. */
class AnswerBudget {
  #left: number;

  constructor(bytes: number) {
    this.#left = bytes;
  }

  isSpent(): boolean {
    return this.#left < 0;
  }

  /** `levels`: how many lists and objects may be within each other. */
  spend(value: unknown, levels: number): boolean {
    if (typeof value === "string") return this.#text(value);
    if (typeof value !== "object" || value === null) return this.#bytes(String(value).length);
    if (levels === 0) return false;
    return Array.isArray(value) ? this.#list(value, levels) : this.#members(value, levels);
  }

  /** An empty place counts as the text of `undefined`, which is longer than the `null` of JSON. */
  #list(list: readonly unknown[], levels: number): boolean {
    return this.#bytes(2 + list.length) && Array.from(list).every((item) => this.spend(item, levels - 1));
  }

  #members(object: object, levels: number): boolean {
    if (!this.#bytes(2)) return false;
    for (const name in object) {
      if (!Object.hasOwn(object, name)) continue;
      // The colon and the comma.
      if (!this.#bytes(2) || !this.#text(name)) return false;
      if (!this.spend(object[name as keyof object], levels - 1)) return false;
    }
    return true;
  }

  #text(text: string): boolean {
    // No character takes less than a byte, so a longer text need not be read.
    const isLonger = text.length > this.#left;
    return this.#bytes(isLonger ? text.length : Buffer.byteLength(JSON.stringify(text)));
  }

  #bytes(bytes: number): boolean {
    this.#left -= bytes;
    return this.#left >= 0;
  }
}
