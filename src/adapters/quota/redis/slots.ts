import type { Host } from "./address.ts";

export const SLOTS = 16_384;

/** Consecutive slots and the primary that owns them. */
export type SlotRange = { readonly from: number; readonly to: number; readonly primary: Host };

/** The slot of a key: CRC16 (XMODEM) of what stands between its first braces, or of all of it where nothing does. */
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

/** Reads the reply of CLUSTER SLOTS. A node that does not know its own address leaves it out: it is the one that was asked. */
export function parseSlots(reply: unknown, asked: Host): readonly SlotRange[] {
  if (!Array.isArray(reply)) return [];
  const ranges: SlotRange[] = [];
  for (const entry of reply as readonly unknown[]) {
    if (!Array.isArray(entry) || !Array.isArray(entry[2])) continue;
    const [host, port] = entry[2] as readonly unknown[];
    // What Redis says of a node whose name it was never told.
    if (host === "?") continue;
    const name = typeof host === "string" && host !== "" ? host : asked.host;
    ranges.push({ from: Number(entry[0]), to: Number(entry[1]), primary: { host: name, port: Number(port) } });
  }
  return ranges;
}
