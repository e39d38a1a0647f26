/** Places of uids that share a time: they take 18 of the random bits. */
export const UUID_PLACES = 2 ** 18;

/**
 * A UUIDv7 (RFC 9562): 48 bits of milliseconds, then 10 random bytes. Later ones sort after earlier ones.
 * `place`: orders those of one time, from 0. Omitted: their order is random.
 */
export function uuidV7(timeMs: number, random: Uint8Array, place?: number): string {
  const time = Math.floor(timeMs).toString(16).padStart(12, "0");
  const bytes = [...random.subarray(0, 10)];
  if (place !== undefined) {
    bytes[0] = place >> 14;
    bytes[1] = (place >> 6) & 0xff;
    bytes[2] = place & 0x3f;
  }
  bytes[0] = 0x70 | ((bytes[0] ?? 0) & 0x0f);
  bytes[2] = 0x80 | ((bytes[2] ?? 0) & 0x3f);
  const hex = time + bytes.map((byte) => byte.toString(16).padStart(2, "0")).join("");
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join("-");
}
