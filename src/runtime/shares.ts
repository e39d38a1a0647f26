/** How much each of several keys has used lately, beside the others. */
export class Shares {
  readonly #halfLifeMs: number;
  readonly #used = new Map<string, number>();
  #total = 0;
  #agedMs = Number.NEGATIVE_INFINITY;

  constructor(halfLifeMs: number) {
    this.#halfLifeMs = halfLifeMs;
  }

  add(key: string): void {
    this.#used.set(key, (this.#used.get(key) ?? 0) + 1);
    this.#total += 1;
  }

  /** True if the key has used more than the mean. */
  isBeyond(key: string): boolean {
    return (this.#used.get(key) ?? 0) * this.#used.size > this.#total;
  }

  /** Call it often: halves what was used once a half-life, and so forgets keys that use nothing any more. */
  age(nowMs: number): void {
    if (nowMs - this.#agedMs < this.#halfLifeMs) return;
    this.#agedMs = nowMs;
    this.#total = 0;
    for (const [key, used] of this.#used) {
      const left = Math.floor(used / 2);
      this.#total += left;
      if (left > 0) this.#used.set(key, left);
      else this.#used.delete(key);
    }
  }
}
