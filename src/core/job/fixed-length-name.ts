/** A name within its lengths. Refused if even its hash does not fit. */
type NameOutcome = { readonly kind: "name"; readonly name: string } | { readonly kind: "refused" };

type NameLengths = {
  /** A shorter name is padded with `0`s. */
  readonly min: number;
  /** A longer name is hashed. */
  readonly max: number;
};

/** The characters of the hash, as in Flyte. */
const ALPHABET = "abcdefghijklmnopqrstuvwxyz123456";

/** The offset basis and the prime of FNV-1a by bits. Source: RFC 9923. */
const FNV = {
  64: { basis: 0xcbf29ce484222325n, prime: 0x100000001b3n },
  128: { basis: 0x6c62272e07bb014262b821756295c58dn, prime: 0x1000000000000000000013bn },
} as const;

/**
 * Joins the parts of a name by `-`, without empty ones. If the name is too long, returns `f` and its hash. Source:
 * Flyte's `FixedLengthUniqueIDForParts` and `GetGeneratedNameWith`, with at least 64 bits.
 */
export function fixedLengthName(parts: readonly string[], lengths: NameLengths, bits: 64 | 128 = 64): NameOutcome {
  const joined = parts.filter((part) => part !== "").join("-");
  const name = joined.length <= lengths.max ? joined.padEnd(lengths.min, "0") : `f${hashed(joined, bits)}`;
  return name.length <= lengths.max ? { kind: "name", name } : { kind: "refused" };
}

/** FNV-1a of the text in UTF-8, big-endian in base 32 without padding. */
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
