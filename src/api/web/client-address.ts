/** Finds the address of a browser that calls through proxies. */
import { BlockList, isIP } from "node:net";
import { withoutMapping } from "./guards.ts";

/** Addresses of proxies whose `X-Forwarded-For` counts. */
export type TrustedProxies = Pick<BlockList, "check">;

/** Reads addresses and ranges such as `10.0.0.0/8`, separated by commas. Throws an error that names the wrong one. */
export function parseTrustedProxies(text: string): TrustedProxies {
  const proxies = new BlockList();
  const parts = text.split(",").map((one) => one.trim());
  for (const part of parts.filter((one) => one !== "")) {
    const [address = "", bits = isIP(address) === 6 ? "128" : "32", ...rest] = part.split("/");
    const family = isIP(address);
    const isRange = /^\d{1,3}$/.test(bits) && Number(bits) <= (family === 6 ? 128 : 32) && rest.length === 0;
    if (family === 0 || !isRange) throw new Error(`"${part}" is neither an address nor a range such as 10.0.0.0/8`);
    proxies.addSubnet(address, Number(bits), family === 6 ? "ipv6" : "ipv4");
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
  return nearest ?? `${direct.includes(":") ? `[${direct}]` : direct}:${connection.port ?? 0}`;
}

function isTrusted(address: string, trusted: TrustedProxies): boolean {
  const family = isIP(address);
  return family !== 0 && trusted.check(address, family === 6 ? "ipv6" : "ipv4");
}

/** Some proxies add the port. */
function addressOf(hop: string): string | null {
  const bare = /^\[([0-9a-fA-F:.]+)\](?::\d+)?$/.exec(hop)?.[1] ?? /^([0-9.]+):\d+$/.exec(hop)?.[1] ?? hop;
  return isIP(bare) === 0 ? null : withoutMapping(bare);
}
