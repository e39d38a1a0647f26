import type { Host } from "./address.ts";

export const SLOTS = 16_384;

/** Consecutive slots and the primary that owns them. */
export type SlotRange = { readonly from: number; readonly to: number; readonly primary: Host };

/**
 * Returns the slot of a key: the CRC16 (XMODEM) of the text in its first braces, or of the whole key if there is none.
 */
export function slotOf(key: string): number {
  const open = key.indexOf("{");
  const close = open < 0 ? -1 : key.indexOf("}", open + 1);
  const hashed = close > open + 1 ? key.slice(open + 1, close) : key;
  let crc = 0;
  for (const byte of Buffer.from(hashed)) {
    crc ^= byte << 8;
    for (let bit = 0; bit < 8; bit += 1) crc = crc & 0x8000 ? ((crc << 1) ^ 0x1021) & 0xffff : (crc << 1) & 0xffff;
  }
  return crc % SLOTS;
}

/**
 * Reads the reply of CLUSTER SLOTS. A node that does not know its own address leaves it out; `asked` is then its
 * address.
 */
export function parseSlots(reply: unknown, asked: Host): readonly SlotRange[] {
  if (!Array.isArray(reply)) return [];
  const ranges: SlotRange[] = [];
  for (const entry of reply as readonly unknown[]) {
    if (!Array.isArray(entry) || !Array.isArray(entry[2])) continue;
    const [host, port] = entry[2] as readonly unknown[];
    // Redis writes "?" for a node whose name it does not know.
    if (host === "?") continue;
    const name = typeof host === "string" && host !== "" ? host : asked.host;
    ranges.push({ from: Number(entry[0]), to: Number(entry[1]), primary: { host: name, port: Number(port) } });
  }
  return ranges;
}
