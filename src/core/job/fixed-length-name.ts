/** How a name came out: within its lengths, or refused because not even its hash fits. */
export type NameOutcome = { readonly kind: "name"; readonly name: string } | { readonly kind: "refused" };

export type NameLengths = {
  /** A shorter name gets `0`s on the right. */
  readonly min: number;
  /** A longer name is hashed. */
  readonly max: number;
};

/** Letters and digits that every name may have, as Flyte encodes. */
const ALPHABET = "abcdefghijklmnopqrstuvwxyz123456";

/** The offset basis and the prime of FNV-1a by bits. Source: RFC 9923. */
const FNV = {
  64: { basis: 0xcbf29ce484222325n, prime: 0x100000001b3n },
  128: { basis: 0x6c62272e07bb014262b821756295c58dn, prime: 0x1000000000000000000013bn },
} as const;

/**
 * The parts of a name joined by `-`, empty ones left out; where that is too long, `f` and its hash instead. Source: Flyte's
 * `FixedLengthUniqueIDForParts` and `GetGeneratedNameWith`, with 64 bits at least.
 */
export function fixedLengthName(parts: readonly string[], lengths: NameLengths, bits: 64 | 128 = 64): NameOutcome {
  const joined = parts.filter((part) => part !== "").join("-");
  const name = joined.length <= lengths.max ? joined.padEnd(lengths.min, "0") : `f${hashed(joined, bits)}`;
  return name.length <= lengths.max ? { kind: "name", name } : { kind: "refused" };
}

/** FNV-1a of the text's UTF-8, big-endian in base 32 without padding. */
function hashed(text: string, bits: 64 | 128): string {
  const { basis, prime } = FNV[bits];
  let hash: bigint = basis;
  for (const byte of new TextEncoder().encode(text)) hash = BigInt.asUintN(bits, (hash ^ BigInt(byte)) * prime);
  const characters = Math.ceil(bits / 5);
  let left = hash << BigInt(characters * 5 - bits);
  let encoded = "";
  for (let at = 0; at < characters; at++) {
    encoded = ALPHABET.charAt(Number(left & 31n)) + encoded;
    left >>= 5n;
  }
  return encoded;
}
