import { type BlockList, isIP } from "node:net";

/** Addresses and ranges of addresses, such as 10.0.0.0/8. */
export type AddressRanges = Pick<BlockList, "check">;

/** Adds an address or a range. False: the text is neither, and nothing is added. */
export function addRange(list: BlockList, text: string): boolean {
  const [address = "", bits] = text.split("/");
  const family = isIP(address);
  if (family === 0 || text.split("/").length > 2) return false;
  const longest = family === 4 ? 32 : 128;
  const prefix = bits === undefined ? longest : /^\d{1,3}$/.test(bits) ? Number(bits) : -1;
  if (prefix < 0 || prefix > longest) return false;
  list.addSubnet(address, prefix, family === 4 ? "ipv4" : "ipv6");
  return true;
}

/** True if the address is one of the list, or in one of its ranges. Throws if the text is no address. */
export function contains(list: AddressRanges, address: string): boolean {
  return list.check(address, isIP(address) === 4 ? "ipv4" : "ipv6");
}
