/** Bytes in one buffer that doubles: a server may send them one at a time. */
export class GrowingBytes {
  #buffer = Buffer.alloc(0);
  #length = 0;

  get length(): number {
    return this.#length;
  }

  append(chunk: Uint8Array): void {
    const needed = this.#length + chunk.byteLength;
    if (needed > this.#buffer.length) {
      const grown = Buffer.alloc(Math.max(needed, this.#buffer.length * 2));
      this.#buffer.copy(grown, 0, 0, this.#length);
      this.#buffer = grown;
    }
    this.#buffer.set(chunk, this.#length);
    this.#length = needed;
  }

  /** Returns the text and begins a new one. The buffer stays if it is small. */
  take(): string {
    const text = this.#buffer.toString("utf8", 0, this.#length);
    if (this.#buffer.length > KEPT_BYTES_MAX) this.#buffer = Buffer.alloc(0);
    this.#length = 0;
    return text;
  }
}

const KEPT_BYTES_MAX = 64 * 1024;
