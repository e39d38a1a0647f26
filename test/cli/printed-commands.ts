/** Commands that messages print. */

/** A command in quotes. */
const QUOTED = /["`]gangway ([^"`]+)["`]/g;
/** A command after a colon: up to the end of its sentence or of its line. */
const BARE = /: gangway (.+?)(?=\. |\.?$)/gm;

/** What follows `gangway` in each command that a text prints, in their order. */
export function printedCommands(text: string): readonly string[] {
  const found = [...text.matchAll(QUOTED), ...text.matchAll(BARE)];
  return found.sort((one, other) => one.index - other.index).map(([, words = ""]) => words);
}

/** The words of a command as a shell reads them. */
export function wordsOf(line: string): readonly string[] {
  const parts = line.match(/(?:'[^']*'|\\'|[^\s'\\])+/g) ?? [];
  return parts.map((part) => part.replaceAll(/'([^']*)'|\\(')/g, (_, quoted = "", escaped = "") => quoted + escaped));
}
