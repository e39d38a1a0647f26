/** Shows text of others on a terminal as text alone. */

/**
 * Characters that act on a terminal, or that nobody sees: control characters except tab and newline, those that reverse
 * the direction of text or break a line, those without width, tags, and selectors of variants except the two that emoji
 * need. In JSON they occur only within strings, where their escape means the same.
 */
const UNSAFE = /(?![\t\n])\p{Cc}|\p{Cf}|\p{Zl}|\p{Zp}|(?!\ufe0e|\ufe0f)\p{DI}/gu;

/** Replaces each such character by its escape: `\u001b` for the one that begins terminal sequences. */
export function visibleText(text: string): string {
  return replaceUnsafe(text, (found) => Array.from({ length: found.length }, (_, at) => escapeAt(found, at)).join(""));
}

/** Replaces each such character by what `shown` makes of it. */
export function replaceUnsafe(text: string, shown: (found: string) => string): string {
  return text.replaceAll(UNSAFE, shown);
}

export function hasUnsafe(text: string): boolean {
  return text.search(UNSAFE) >= 0;
}

function escapeAt(text: string, at: number): string {
  return `\\u${text.charCodeAt(at).toString(16).padStart(4, "0")}`;
}
