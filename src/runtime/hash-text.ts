/** 64 bits. */
export type EntityHash = { readonly low: number; readonly high: number };

/** A fast hash of a text: MurmurHash's 32-bit mixing with two seeds. It is no defence against attackers. */
export function hashText(text: string): EntityHash {
  let low = 0x9747b28c;
  let high = 0x1b873593;
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    low = Math.imul(low ^ code, 0xcc9e2d51);
    low = (low << 15) | (low >>> 17);
    high = Math.imul(high ^ code, 0x85ebca6b);
    high = (high << 13) | (high >>> 19);
  }
  return { low: finish(low ^ text.length), high: finish(high ^ text.length) };
}

function finish(hash: number): number {
  const mixed = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  const again = Math.imul(mixed ^ (mixed >>> 13), 0xc2b2ae35);
  return (again ^ (again >>> 16)) >>> 0;
}

/** A sum of hashes of entities. It does not depend on their order, and an entity can be taken off again. */
export class HashSum {
  #low = 0;
  #high = 0;

  add({ low, high }: EntityHash, sign: 1 | -1): void {
    this.#low = (this.#low + sign * low) >>> 0;
    this.#high = (this.#high + sign * high) >>> 0;
  }

  get hash(): EntityHash {
    return { low: this.#low, high: this.#high };
  }

  /** 16 hexadecimal digits. */
  get text(): string {
    return this.#high.toString(16).padStart(8, "0") + this.#low.toString(16).padStart(8, "0");
  }
}
