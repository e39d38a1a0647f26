const CAUSES_MAX = 4;
/** Errors of the language: who sees one looks for a place in the code. */
const SLIPS = [TypeError, ReferenceError, RangeError, SyntaxError];

/**
 * What somebody else's code has thrown, in words: a message with those of its causes, because `fetch failed` alone helps nobody, and of an error
 * of the language also the file and line. Never throws.
 */
export function thrownText(thrown: unknown): string {
  try {
    const said: string[] = [];
    let error = thrown;
    for (let depth = 0; depth < CAUSES_MAX && error !== undefined && error !== null; depth++) {
      const text = wordsOf(error);
      if (!said.some((one) => one.includes(text))) said.push(text);
      error = error instanceof Error ? error.cause : undefined;
    }
    return said.length === 0 ? String(thrown) : `${said.join(": ")}${placeOf(thrown)}`;
  } catch {
    return "something that is no error was thrown";
  }
}

/** Node says of some errors only a code: ECONNREFUSED. */
function wordsOf(error: unknown): string {
  return error instanceof Error
    ? error.message || String((error as { code?: unknown }).code ?? error.name)
    : String(error);
}

/** In brackets, the name of the file without its folders: those are nobody's who only submits jobs. */
function placeOf(thrown: unknown): string {
  if (!(thrown instanceof Error) || !SLIPS.some((slip) => thrown instanceof slip)) return "";
  const [, place] = /file:\/\/\S*?([^/\s]+:\d+(?::\d+)?)\)?$/m.exec(thrown.stack ?? "") ?? [];
  return place === undefined ? "" : ` (${place})`;
}
