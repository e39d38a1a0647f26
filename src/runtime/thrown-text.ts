import { foreignText } from "./foreign-text.ts";

const CAUSES_MAX = 4;
/** Errors of the language, whose place in the code a reader needs. */
const SLIPS = [TypeError, ReferenceError, RangeError, SyntaxError];

/**
 * The text of anything that was thrown: its message and those of its causes, since `fetch failed` alone does not help.
 * An error of the language also has its file and line. Never throws, and is never long.
 */
export function thrownText(thrown: unknown): string {
  try {
    const messages: string[] = [];
    let error = thrown;
    for (let depth = 0; depth < CAUSES_MAX && error !== undefined && error !== null; depth++) {
      const text = wordsOf(error);
      if (!messages.some((one) => one.includes(text))) messages.push(text);
      error = error instanceof Error ? error.cause : undefined;
    }
    const text = messages.length === 0 ? String(thrown) : messages.join(": ");
    return foreignText(text) + placeOf(thrown);
  } catch {
    return "something that is no error was thrown";
  }
}

/** Some errors of Node have only a code, such as ECONNREFUSED. */
function wordsOf(error: unknown): string {
  return error instanceof Error
    ? error.message || String((error as { code?: unknown }).code ?? error.name)
    : String(error);
}

/** The end of a line of a stack: `step.ts:12:34)`. */
const FRAME_END = /^([^/\s:]+:\d+(?::\d+)?)\)?$/;

/** In brackets, file and line without the folders, which a submitter of jobs need not see. */
function placeOf(thrown: unknown): string {
  if (!(thrown instanceof Error) || !SLIPS.some((slip) => thrown instanceof slip)) return "";
  const frames = (thrown.stack ?? "").split("\n").filter((line) => line.startsWith("    at "));
  const frame = frames.find((line) => line.includes("file://")) ?? "";
  const [, place] = FRAME_END.exec(frame.slice(frame.lastIndexOf("/") + 1)) ?? [];
  return place === undefined ? "" : ` (${place})`;
}
