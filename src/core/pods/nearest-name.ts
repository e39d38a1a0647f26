/** The most unknown names of one answer that get help. The help for one costs much more than to read it. */
const HELPED_MAX = 10;
/** Names of fields, keys and resources are shorter. The time of a comparison grows with the square of the length. */
const NAME_CHARS_MAX = 80;
/** The most known names that one unknown name is compared with. */
const KNOWN_MAX = 1_000;

/** Finds the known name that was probably meant by an unknown one. Null if none is close. */
export type NameHelp = (name: string, known: Iterable<string>) => string | null;

/** Helps with the first few unknown names of an answer; for the others it returns null. */
export function nameHelp(): NameHelp {
  let left = HELPED_MAX;
  return (name, known) => {
    left -= 1;
    return left < 0 ? null : nearestName(name, known);
  };
}

/**
 * The known name that is closest to a misspelt one. Null if none is close, or if the name is too long for a comparison.
 * Reads at most the first 1,000 known names. If a caller may send several unknown names, use `nameHelp`.
 */
export function nearestName(name: string, known: Iterable<string>): string | null {
  if (name.length > NAME_CHARS_MAX) return null;
  let best: { readonly name: string; readonly distance: number } | null = null;
  const limit = Math.max(1, Math.floor(name.length / 3));
  let read = 0;
  for (const candidate of known) {
    read += 1;
    if (read > KNOWN_MAX) break;
    if (Math.abs(candidate.length - name.length) > limit) continue;
    const distance = editDistance(name.toLowerCase(), candidate.toLowerCase());
    if (distance <= limit && (best === null || distance < best.distance)) best = { name: candidate, distance };
  }
  return best?.name ?? null;
}

/** Levenshtein's distance: insertions, deletions and replacements. */
function editDistance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, column) => column);
  for (let i = 0; i < a.length; i++) {
    const next = [i + 1];
    for (let j = 0; j < b.length; j++) {
      const replaced = (row[j] ?? 0) + (a[i] === b[j] ? 0 : 1);
      next.push(Math.min(replaced, (row[j + 1] ?? 0) + 1, (next[j] ?? 0) + 1));
    }
    row = next;
  }
  return row[b.length] ?? 0;
}
