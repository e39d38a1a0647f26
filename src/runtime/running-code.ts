/**
 * Shows other threads which code a thread runs now. A thread that is blocked cannot say what blocks it: so it writes it
 * into shared memory before the code runs.
 */

/** Room for a short text, in bytes. A longer text is cut. */
const TEXT_BYTES_MAX = 240;
const SEQUENCE = 0;
const LENGTH = 1;
const HEADER_INTS = 2;
const HEADER_BYTES = HEADER_INTS * Int32Array.BYTES_PER_ELEMENT;
const SEQUENCE_MAX = 0x7fffffff;

/** The code that a thread runs, as another thread sees it. `sequence` rises with each one. 0: none runs. */
export type CodeSeen = { readonly sequence: number; readonly text: string };

export function sharedCode(): SharedArrayBuffer {
  return new SharedArrayBuffer(HEADER_BYTES + TEXT_BYTES_MAX);
}

/** Marks sections of code of one thread. A section inside of another one is part of it. */
export class RunningCode {
  readonly #header: Int32Array;
  readonly #text: Buffer;
  #sequence = 0;
  #isInside = false;

  constructor(shared: SharedArrayBuffer) {
    this.#header = new Int32Array(shared, 0, HEADER_INTS);
    this.#text = Buffer.from(shared, HEADER_BYTES);
  }

  /** Runs code that cannot pause, and shows it by this text meanwhile. */
  run<T>(text: string, code: () => T): T {
    if (this.#isInside) return code();
    this.#isInside = true;
    this.#sequence = this.#sequence === SEQUENCE_MAX ? 1 : this.#sequence + 1;
    Atomics.store(this.#header, LENGTH, this.#text.write(text, "utf8"));
    Atomics.store(this.#header, SEQUENCE, this.#sequence);
    try {
      return code();
    } finally {
      Atomics.store(this.#header, SEQUENCE, 0);
      this.#isInside = false;
    }
  }
}

/** Reads what the thread runs now. Null: it changes right now. */
export function readCode(shared: SharedArrayBuffer): CodeSeen | null {
  const header = new Int32Array(shared, 0, HEADER_INTS);
  const sequence = Atomics.load(header, SEQUENCE);
  const length = Atomics.load(header, LENGTH);
  const text = Buffer.from(shared, HEADER_BYTES).toString("utf8", 0, length);
  return Atomics.load(header, SEQUENCE) === sequence ? { sequence, text: sequence === 0 ? "" : text } : null;
}
