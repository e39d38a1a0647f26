/**
 * Patterns that the prover refuses and that stay, each with its reason. A pattern may be here only if no text of others
 * reaches it, or if something before it bounds the text.
 */
export const EXCEPTIONS: Readonly<Record<string, string>> = {
  "/(?![\\t\\n])\\p{Cc}|[\\u061c\\u200e\\u200f\\u2028-\\u202e\\u2066-\\u2069]/gu":
    "the look-ahead reads one character, and the pattern repeats nothing",
};
