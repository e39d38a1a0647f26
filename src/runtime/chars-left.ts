/** A number, or the brackets and commas of a value. */
const VALUE_CHARS = 3;
const QUOTES = 2;

/**
 * How many of so many characters about are left after the texts of a value. Negative: none. Reads no more than that,
 * however large the value is. `charsOf`: how many a text takes. Omitted: its length.
 */
export function charsLeft(value: unknown, chars: number, charsOf = lengthOf): number {
  if (typeof value === "string") return chars - charsOf(value) - QUOTES;
  let left = chars - VALUE_CHARS;
  if (typeof value !== "object" || value === null) return left;
  const members = value as Readonly<Record<string, unknown>>;
  for (const name in members) {
    if (left < 0) break;
    left = charsLeft(members[name], left - charsOf(name) - QUOTES, charsOf);
  }
  return left;
}

function lengthOf(text: string): number {
  return text.length;
}
