import type { LogLine } from "../../core/job/container-log.ts";

/** The longest piece of a line: a program that never ends its line must not fill our memory. */
const PIECE_BYTES_MAX = 64 * 1024;
const LINE_BREAK = 0x0a;
const TIME = /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?(Z|[+-]\d\d:\d\d) ?/;
const TIME_BYTES_MAX = 40;

/**
 * Splits a log with timestamps into lines, as many at a time as have arrived. Bytes that are not UTF-8 are replaced.
 */
export async function* logLines(bytes: AsyncIterable<Uint8Array>): AsyncGenerator<readonly LogLine[]> {
  const splitter = new Splitter();
  for await (const chunk of bytes) {
    const lines = splitter.take(Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength));
    if (lines.length > 0) yield lines;
  }
  const rest = splitter.end();
  if (rest.length > 0) yield rest;
}

class Splitter {
  #rest: Buffer = Buffer.alloc(0);
  /** The time of the line whose pieces are being returned. Undefined at the start of a line. */
  #timeNs: bigint | null | undefined;

  take(chunk: Buffer): LogLine[] {
    const lines: LogLine[] = [];
    let all = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk]);
    for (let at = all.indexOf(LINE_BREAK); at >= 0; at = all.indexOf(LINE_BREAK)) {
      lines.push(this.#piece(all.subarray(0, at), false));
      all = all.subarray(at + 1);
    }
    while (all.length > PIECE_BYTES_MAX) {
      const end = characterEnd(all, PIECE_BYTES_MAX);
      lines.push(this.#piece(all.subarray(0, end), true));
      all = all.subarray(end);
    }
    this.#rest = Buffer.from(all);
    return lines;
  }

  end(): LogLine[] {
    const rest = this.#rest;
    this.#rest = Buffer.alloc(0);
    return rest.length === 0 ? [] : [this.#piece(rest, false)];
  }

  #piece(bytes: Buffer, partial: boolean): LogLine {
    const begun = this.#timeNs;
    const { timeNs, text } = begun === undefined ? stamped(bytes) : { timeNs: begun, text: bytes.toString() };
    this.#timeNs = partial ? timeNs : undefined;
    return { timeNs, text: !partial && text.endsWith("\r") ? text.slice(0, -1) : text, partial };
  }
}

/** The largest length up to `max` that does not split a UTF-8 character. */
function characterEnd(bytes: Buffer, max: number): number {
  for (let end = max; end > max - 4; end -= 1) if (((bytes[end] ?? 0) & 0xc0) !== 0x80) return end;
  return max;
}

function stamped(bytes: Buffer): { readonly timeNs: bigint | null; readonly text: string } {
  const match = TIME.exec(bytes.subarray(0, TIME_BYTES_MAX).toString("latin1"));
  if (match === null) return { timeNs: null, text: bytes.toString() };
  const [all, seconds = "", fraction = "", zone = "Z"] = match;
  const ms = Date.parse(seconds + zone);
  if (Number.isNaN(ms)) return { timeNs: null, text: bytes.toString() };
  const timeNs = BigInt(ms) * 1_000_000n + BigInt(fraction.padEnd(9, "0"));
  return { timeNs, text: bytes.subarray(all.length).toString() };
}
