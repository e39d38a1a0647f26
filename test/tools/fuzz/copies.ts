/** The service takes 16 MiB in one message. More of them cost the fuzz memory and show nothing else. */
const BYTES_MAX = 20 * 2 ** 20;

/** A list of one item: so many copies, or as many as make a message that is too large. */
export function copies<Item>(item: Item, count: number): Item[] {
  const most = Math.ceil(BYTES_MAX / (1 + bytesOf(item)));
  return Array.from({ length: Math.min(count, most) }, () => item);
}

/** About as many bytes as the value takes in a message. */
function bytesOf(value: unknown): number {
  if (typeof value === "string") return Buffer.byteLength(value);
  if (value instanceof Uint8Array) return value.length;
  if (typeof value !== "object" || value === null) return 1;
  return Object.values(value).reduce<number>((sum, part) => sum + 1 + bytesOf(part), 0);
}
