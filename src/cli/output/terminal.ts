/** Protects the terminal from text that others wrote: names, labels, messages and logs reach it as text alone. */
import { yaml } from "../../runtime/lazy-yaml.ts";
import type { CliDeps } from "../shell/deps.ts";

/** Dependencies of commands. `stdout` and `stderr` show control characters, such as those that move the cursor. */
export type TerminalDeps = CliDeps & {
  /** Writes text with its control characters: colours of this program, and logs that the user wants raw. */
  readonly stdoutAsIs: (text: string) => void;
  readonly stderrAsIs: (text: string) => void;
};

/**
 * Characters that act on a terminal, or that nobody sees: control characters except tab and newline, those that reverse
 * the direction of text or break a line, those without width, tags, and selectors of variants except the two that emoji
 * need. In JSON they occur only within strings, where their escape means the same.
 */
const UNSAFE = /(?![\t\n])\p{Cc}|\p{Cf}|\p{Zl}|\p{Zp}|(?!\ufe0e|\ufe0f)\p{DI}/gu;

/** Replaces each such character by its escape: `\u001b` for the one that begins terminal sequences. */
export function visibleText(text: string): string {
  return text.replaceAll(UNSAFE, (found) =>
    Array.from({ length: found.length }, (_, at) => escapeAt(found, at)).join(""),
  );
}

function escapeAt(text: string, at: number): string {
  return `\\u${text.charCodeAt(at).toString(16).padStart(4, "0")}`;
}

/** A value as YAML, with escapes for such characters. It reads back to the same value. */
export function yamlText(value: unknown): string {
  const text = yaml().stringify(value);
  if (text.search(UNSAFE) < 0) return text;
  const { Document, visit } = yaml();
  const document = new Document(value);
  visit(document, {
    Scalar: (_, node) => {
      // Only between double quotes YAML knows escapes.
      if (typeof node.value === "string" && node.value.search(UNSAFE) >= 0) node.type = "QUOTE_DOUBLE";
    },
  });
  return document.toString().replaceAll(UNSAFE, yamlEscape);
}

/** Surrogates name no character in YAML, unlike in JSON. */
function yamlEscape(found: string): string {
  const code = found.codePointAt(0) ?? 0;
  const digits = code.toString(16);
  return code > 0xffff ? `\\U${digits.padStart(8, "0")}` : `\\u${digits.padStart(4, "0")}`;
}

/** Text leaves for the terminal here. A file or a pipe gets stdout as it is; stderr is always for people. */
export function terminalDeps(deps: CliDeps): TerminalDeps {
  const stdoutAsIs = deps.stdout;
  const stdout = deps.isTty ? (text: string) => stdoutAsIs(visibleText(text)) : stdoutAsIs;
  const stderrAsIs = deps.stderr;
  return { ...deps, stdout, stdoutAsIs, stderrAsIs, stderr: (text) => stderrAsIs(visibleText(text)) };
}
