/** Protects the terminal from text that others wrote: names, labels, messages and logs reach it as text alone. */
import type { CliDeps } from "../deps.ts";

/** Dependencies of commands. `stdout` and `stderr` show control characters, such as those that move the cursor. */
export type TerminalDeps = CliDeps & {
  /** Writes text with its control characters: colours of this program, YAML, and logs that the user wants raw. */
  readonly stdoutAsIs: (text: string) => void;
  readonly stderrAsIs: (text: string) => void;
};

/**
 * Control characters except tab and newline, and characters that reverse the direction of text or break a line. In JSON
 * they occur only within strings, where their escape means the same.
 */
const UNSAFE = /(?![\t\n])\p{Cc}|[\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/gu;

/** Replaces each such character by its escape: `\u001b` for the one that begins terminal sequences. */
export function visibleText(text: string): string {
  return text.replaceAll(UNSAFE, (found) => `\\u${found.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

/**
 * Makes YAML safe for a terminal. YAML writes most control characters as escapes. It quotes text that has others, where
 * their escape means the same.
 */
export function visibleYaml(text: string): string {
  return text.replaceAll(/[\u007f-\u009f]/g, visibleText);
}

/** Text leaves for the terminal here. A file or a pipe gets stdout as it is; stderr is always for people. */
export function terminalDeps(deps: CliDeps): TerminalDeps {
  const stdoutAsIs = deps.stdout;
  const stdout = deps.isTty ? (text: string) => stdoutAsIs(visibleText(text)) : stdoutAsIs;
  const stderrAsIs = deps.stderr;
  return { ...deps, stdout, stdoutAsIs, stderrAsIs, stderr: (text) => stderrAsIs(visibleText(text)) };
}
