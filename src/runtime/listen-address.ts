import { BlockList, isIP } from "node:net";

export type ListenAddress = { readonly host: string; readonly port: number };

const LOOPBACK = new BlockList();
LOOPBACK.addSubnet("127.0.0.0", 8, "ipv4");
LOOPBACK.addAddress("::1", "ipv6");

/** Reads `HOST:PORT`, `[IPV6]:PORT` or `localhost:PORT`. Throws an error that names the text. */
export function parseListenAddress(listen: string): ListenAddress {
  const match = /^(?:\[([^\]]+)\]|([^:]+)):(\d{1,5})$/.exec(listen);
  const host = match?.[1] ?? match?.[2];
  const port = Number(match?.[3]);
  if (host === undefined || port > 65_535) {
    throw new Error(`cannot listen on "${listen}": it must be HOST:PORT with a port of 0 to 65535`);
  }
  return { host, port };
}

/** True if only this machine can connect to the host. */
export function isLoopback(host: string): boolean {
  if (host === "localhost") return true;
  const family = isIP(host);
  return family !== 0 && LOOPBACK.check(host, family === 6 ? "ipv6" : "ipv4");
}

export function formatAddress({ host, port }: ListenAddress): string {
  return isIP(host) === 6 ? `[${host}]:${port}` : `${host}:${port}`;
}
