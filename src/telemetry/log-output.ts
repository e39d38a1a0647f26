import { mkdirSync, openSync, writeSync } from "node:fs";
import { dirname } from "node:path";

/** Lines that wait for a slow reader. More are dropped: they would fill the memory. */
const WAITING_BYTES_MAX = 32 * 1024 * 1024;
/** How long a reader gets to make room. */
const RETRY_MS = 10;
/** The reader of a pipe has not made room yet. */
const NO_ROOM_YET: readonly string[] = ["EAGAIN", "EBUSY"];
const NEWLINE = Buffer.from("\n");

/** Why a line is dropped: `slow_reader`, or the code of the error, such as `ENOSPC` of a disk that is full. */
type DropReason = string;

export type LogEvents = {
  /** A line is dropped. Called once for each line; must not write a line. */
  readonly onDropped: (reason: DropReason) => void;
  /** Lines are written again. `lines` were dropped before, the last of them for this reason. */
  readonly onResumed: (dropped: { readonly lines: number; readonly reason: DropReason }) => void;
};

export type LogOutput = { readonly write: (line: string) => void };

/**
 * Opens a file for log lines; null: standard output. Throws if it cannot be opened. A line is written before `write`
 * returns, so that a killed process loses none. If the reader of a pipe is too slow, lines wait for it in their order,
 * and the process continues meanwhile; lines that still wait are written when it exits. A line that cannot be written
 * is dropped, for example because the disk is full: a log never stops the service. Each later line tries again.
 */
export function openLog(file: string | null, events: LogEvents): LogOutput {
  if (file === null) return new SyncLog(process.stdout.fd, events);
  mkdirSync(dirname(file), { recursive: true });
  return new SyncLog(openSync(file, "a"), events);
}

type WriteOutcome =
  | { readonly kind: "written" | "dropped" }
  /** The output has no room for this rest yet. `isCut`: the line's beginning is written. */
  | { readonly kind: "noRoom"; readonly rest: Buffer; readonly isCut: boolean };

class SyncLog implements LogOutput {
  readonly #fd: number;
  readonly #events: LogEvents;
  readonly #waiting: Buffer[] = [];
  #waitingBytes = 0;
  /** True: the first line that waits is the rest of one whose beginning is written. */
  #isFirstCut = false;
  #dropped: { readonly lines: number; readonly reason: DropReason } | null = null;
  /** True: the last byte that was written ends no line. */
  #isMidLine = false;

  constructor(fd: number, events: LogEvents) {
    this.#fd = fd;
    this.#events = events;
  }

  write(text: string): void {
    const line = Buffer.from(text);
    if (this.#waiting.length > 0) {
      this.#wait(line);
      return;
    }
    const outcome = this.#writeLine(line, false);
    if (outcome.kind === "written") this.#sayResumed();
    if (outcome.kind !== "noRoom") return;
    this.#isFirstCut = outcome.isCut;
    this.#wait(outcome.rest);
  }

  #writeLine(line: Buffer, isRest: boolean): WriteOutcome {
    const bytes = this.#isMidLine && !isRest ? Buffer.concat([NEWLINE, line]) : line;
    let written = 0;
    try {
      while (written < bytes.length) written += writeSync(this.#fd, bytes, written);
      return { kind: "written" };
    } catch (error) {
      const { code = "unknown" } = error as NodeJS.ErrnoException;
      if (NO_ROOM_YET.includes(code)) {
        return written === 0
          ? { kind: "noRoom", rest: line, isCut: isRest }
          : { kind: "noRoom", rest: bytes.subarray(written), isCut: true };
      }
      this.#drop(code);
      return { kind: "dropped" };
    } finally {
      if (written > 0) this.#isMidLine = bytes[written - 1] !== NEWLINE[0];
    }
  }

  #wait(line: Buffer): void {
    if (this.#waitingBytes + line.length > WAITING_BYTES_MAX) {
      this.#drop("slow_reader");
      return;
    }
    this.#waiting.push(line);
    this.#waitingBytes += line.length;
    if (this.#waiting.length === 1) this.#retryLater();
  }

  #retryLater(): void {
    process.on("exit", this.#writeAll);
    setTimeout(() => {
      process.off("exit", this.#writeAll);
      if (!this.#writeWaiting()) this.#retryLater();
    }, RETRY_MS);
  }

  /** Writes the lines that wait. Returns false if some still wait. */
  #writeWaiting(): boolean {
    let done = 0;
    let isWritten = false;
    for (const line of this.#waiting) {
      const outcome = this.#writeLine(line, this.#isFirstCut && done === 0);
      if (outcome.kind === "noRoom") {
        this.#waiting[done] = outcome.rest;
        this.#isFirstCut = outcome.isCut;
        this.#waitingBytes -= line.length - outcome.rest.length;
        break;
      }
      isWritten = outcome.kind === "written";
      this.#waitingBytes -= line.length;
      done += 1;
    }
    this.#waiting.splice(0, done);
    if (this.#waiting.length > 0) return false;
    if (isWritten) this.#sayResumed();
    return true;
  }

  /** Waits for the reader as long as it is there. */
  readonly #writeAll = (): void => {
    const cell = new Int32Array(new SharedArrayBuffer(4));
    while (!this.#writeWaiting()) Atomics.wait(cell, 0, 0, RETRY_MS);
  };

  #drop(reason: DropReason): void {
    this.#dropped = { lines: (this.#dropped?.lines ?? 0) + 1, reason };
    this.#events.onDropped(reason);
  }

  #sayResumed(): void {
    const dropped = this.#dropped;
    this.#dropped = null;
    if (dropped !== null) this.#events.onResumed(dropped);
  }
}
