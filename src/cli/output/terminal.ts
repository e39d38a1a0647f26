/** Protects the terminal from text that others wrote: names, labels, messages and logs reach it as text alone. */
import { yaml } from "../../runtime/lazy-yaml.ts";
import { hasUnsafe, replaceUnsafe, visibleText } from "../../runtime/visible-text.ts";
import type { CliDeps } from "../shell/deps.ts";

/** Dependencies of commands. `stdout` and `stderr` show control characters, such as those that move the cursor. */
export type TerminalDeps = CliDeps & {
  /** Writes text with its control characters: colours of this program, and logs that the user wants raw. */
  readonly stdoutAsIs: (text: string) => void;
  readonly stderrAsIs: (text: string) => void;
};

/** A value as YAML, with escapes for such characters. It reads back to the same value. */
export function yamlText(value: unknown): string {
  const text = yaml().stringify(value);
  if (!hasUnsafe(text)) return text;
  const { Document, visit } = yaml();
  const document = new Document(value);
  visit(document, {
    Scalar: (_, node) => {
      // Only between double quotes YAML knows escapes.
      if (typeof node.value === "string" && hasUnsafe(node.value)) node.type = "QUOTE_DOUBLE";
    },
  });
  return replaceUnsafe(document.toString(), yamlEscape);
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
