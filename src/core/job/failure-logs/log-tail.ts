import type { LogLine } from "../container-log.ts";
import { FAILURE_LOG_LIMITS, type LastLines } from "./kept-logs.ts";

/**
 * Keeps the last lines of a log that passes by. It cuts between lines, or, in a line that is too long by itself,
 * between characters. Its memory does not grow with the log.
 */
export class LogTail {
  #lines: string[] = [];
  #bytes = 0;
  /** The line whose pieces are arriving. */
  #open: string | null = null;
  #cut = false;

  add({ text, partial }: Pick<LogLine, "text" | "partial">): void {
    const line = this.#shortened((this.#open ?? "") + storable(text));
    this.#open = partial ? line : null;
    if (!partial) this.#push(line);
  }

  /** The last lines, and whether the log has more before them. */
  get last(): LastLines {
    if (this.#open !== null) {
      this.#push(this.#open);
      this.#open = null;
    }
    return { text: this.#lines.join("\n"), cut: this.#cut };
  }

  #push(line: string): void {
    this.#lines.push(line);
    this.#bytes += sizeOf(line);
    // The last line has no line break.
    while (this.#lines.length > FAILURE_LOG_LIMITS.linesMax || this.#bytes - 1 > FAILURE_LOG_LIMITS.containerBytesMax) {
      this.#bytes -= sizeOf(this.#lines.shift() ?? "");
      this.#cut = true;
    }
  }

  #shortened(line: string): string {
    const shown = endOf(line, FAILURE_LOG_LIMITS.containerBytesMax);
    if (shown.length < line.length) this.#cut = true;
    return shown;
  }
}

function sizeOf(line: string): number {
  return Buffer.byteLength(line) + 1;
}

/** No database takes NUL and halves of characters. */
function storable(text: string): string {
  return text.toWellFormed().replaceAll("\0", "\ufffd");
}

/** The end of a text: as many of its last characters as have together at most so many bytes. */
function endOf(text: string, bytesMax: number): string {
  // A unit of UTF-16 has at most three bytes.
  if (text.length * 3 <= bytesMax) return text;
  const bytes = Buffer.from(text);
  let start = Math.max(0, bytes.length - bytesMax);
  while (start < bytes.length && ((bytes[start] ?? 0) & 0xc0) === 0x80) start += 1;
  return bytes.toString("utf8", start);
}
