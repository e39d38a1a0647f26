/** A UUIDv7 (RFC 9562): 48 bits of milliseconds, then 10 random bytes. Later ones sort after earlier ones. */
export function uuidV7(timeMs: number, random: Uint8Array): string {
  const time = Math.floor(timeMs).toString(16).padStart(12, "0");
  const bytes = [...random.subarray(0, 10)];
  bytes[0] = 0x70 | ((bytes[0] ?? 0) & 0x0f);
  bytes[2] = 0x80 | ((bytes[2] ?? 0) & 0x3f);
  const hex = time + bytes.map((byte) => byte.toString(16).padStart(2, "0")).join("");
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join("-");
}
