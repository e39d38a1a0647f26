/**
 * Patterns that the prover refuses and that stay, each with its reason. A pattern may be here only if no text of others
 * reaches it, or if something before it bounds the text. Code that makes a pattern may be here if a test proves each
 * pattern that it makes.
 */
export const EXCEPTIONS: Readonly<Record<string, string>> = {
  "/(?![\\t\\n])\\p{Cc}|\\p{Cf}|\\p{Zl}|\\p{Zp}|(?!\\ufe0e|\\ufe0f)\\p{DI}/gu":
    "the look-aheads read one character each, and the pattern repeats nothing",
  'src/api/rpc/match-pattern.ts: new RegExp(pattern, "u")':
    "makes the patterns of the proto files, which test/api/match-pattern.property.test.ts proves one by one",
};
