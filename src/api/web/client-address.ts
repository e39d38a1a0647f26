/** Finds the address of a browser that calls through proxies. */
import { BlockList, isIP } from "node:net";
import { type AddressRanges, addRange, contains } from "../../runtime/address-ranges.ts";
import { formatAddress } from "../../runtime/listen-address.ts";
import { withoutMapping } from "./guards.ts";

/** Addresses of proxies whose `X-Forwarded-For` counts. */
export type TrustedProxies = AddressRanges;

/** Reads addresses and ranges such as `10.0.0.0/8`, separated by commas. Throws an error that names the wrong one. */
export function parseTrustedProxies(text: string): TrustedProxies {
  const proxies = new BlockList();
  const parts = text.split(",").map((one) => one.trim());
  for (const part of parts.filter((one) => one !== "")) {
    if (!addRange(proxies, part)) throw new Error(`"${part}" is neither an address nor a range such as 10.0.0.0/8`);
  }
  return proxies;
}

/** More proxies than a request passes. */
const HOPS_MAX = 20;

/**
 * The other end of a call, for the audit log: ADDRESS:PORT of the connection. Behind trusted proxies: the address from
 * which the first of them was called. What a client itself writes into the header stands left of that. It never
 * counts.
 */
export function clientAddress(
  connection: { readonly address: string | undefined; readonly port: number | undefined },
  forwarded: string | undefined,
  trusted: TrustedProxies,
): string {
  const direct = withoutMapping(connection.address ?? "");
  let nearest: string | null = null;
  const hops = (forwarded ?? "").split(",").slice(-HOPS_MAX).reverse();
  for (const hop of hops) {
    if (!isTrusted(nearest ?? direct, trusted)) break;
    const address = addressOf(hop.trim());
    if (address === null) break;
    nearest = address;
  }
  return nearest ?? formatAddress({ host: direct, port: connection.port ?? 0 });
}

function isTrusted(address: string, trusted: TrustedProxies): boolean {
  return isIP(address) !== 0 && contains(trusted, address);
}

/** Some proxies add the port. */
function addressOf(hop: string): string | null {
  const bare = /^\[([0-9a-fA-F:.]+)\](?::\d+)?$/.exec(hop)?.[1] ?? /^([0-9.]+):\d+$/.exec(hop)?.[1] ?? hop;
  return isIP(bare) === 0 ? null : withoutMapping(bare);
}
