import { once } from "node:events";
import { BlockList, createServer, isIP } from "node:net";
import { contains } from "./address-ranges.ts";

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
  return host === "localhost" || (isIP(host) !== 0 && contains(LOOPBACK, host));
}

export function formatAddress({ host, port }: ListenAddress): string {
  return isIP(host) === 6 ? `[${host}]:${port}` : `${host}:${port}`;
}

/**
 * Listens for a moment, to learn early whether the address is free. Throws an error that says why it is not.
 * `setting`: where the operator chooses another address.
 */
export async function tryListen(address: ListenAddress, setting?: string): Promise<void> {
  const server = createServer();
  try {
    server.listen({ host: address.host, port: address.port });
    await once(server, "listening");
  } catch (error) {
    throw listenError(formatAddress(address), error instanceof Error ? error : new Error(String(error)), setting);
  }
  server.close();
  await once(server, "close");
}

/** Explains the error code of the operating system, which the error's message contains. */
export function listenError(address: string, error: Error, setting = "--listen"): Error {
  return new Error(`cannot listen on ${address}: ${whyNotBound(error, setting)}`, { cause: error });
}

function whyNotBound({ message }: Error, setting: string): string {
  if (message.includes("EADDRINUSE")) {
    return `the address is in use by another process; stop that process, or choose another address with ${setting}`;
  }
  if (message.includes("EADDRNOTAVAIL")) return "this machine has no such address";
  if (message.includes("EACCES")) return "this user may not use the port";
  if (message.includes("ENOTFOUND")) return "its host has no address";
  return message;
}
