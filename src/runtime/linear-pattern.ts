import { RE2JS } from "@bufbuild/re2";

/** A pattern that takes linear time for any text. */
export type LinearPattern = { readonly test: (text: string) => boolean };

/** `\u0041` and `\u{1F600}`, which RE2 spells `\x{41}` and `\x{1F600}`; or any other escaped character. */
const ESCAPE = /\\(?:u([0-9a-fA-F]{4})|u\{([0-9a-fA-F]{1,6})\}|.)/gs;

/**
 * Compiles a regular expression whose text comes from outside of the program, for example from a plugin. It has the
 * syntax of RE2: no look-around and no references back. Null: it is none.
 */
export function compileLinear(pattern: string): LinearPattern | null {
  const spelled = pattern.replace(ESCAPE, (whole, four?: string, braced?: string) => {
    const code = four ?? braced;
    return code === undefined ? whole : `\\x{${code}}`;
  });
  try {
    return RE2JS.compile(spelled);
  } catch {
    return null;
  }
}
