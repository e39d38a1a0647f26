/** Decides which requests of browsers are turned away before anything else of them is looked at. */

/** The names by which a listener may be called. */
export type OwnNames = {
  /** The host of the configured address. */
  readonly listenHost: string;
  /** HOST or HOST:PORT, in lower case. One without a port stands for all ports. */
  readonly hosts: readonly string[];
};

export type GuardedRequest = {
  readonly method: string;
  /** The header `Host`, or `:authority` in HTTP/2. */
  readonly host: string | undefined;
  /** The address of this end of the connection. */
  readonly localAddress: string | undefined;
  readonly origin: string | undefined;
  /** The header `Sec-Fetch-Site`. */
  readonly fetchSite: string | undefined;
};

export type TurnedAway = { readonly reason: "host" | "origin"; readonly message: string };

const AUTHORITY = /^(\[[0-9a-f:.]{2,45}\]|[a-z0-9_.-]{1,255})(?::([0-9]{1,5}))?$/;
const LOOPBACK_NAMES: readonly string[] = ["localhost", "127.0.0.1", "[::1]"];
const SHOWN_CHARS = 100;

/**
 * Returns why a request is turned away, or null. A page of another site could make a browser call a service that asks
 * nobody for credentials: by a name of its own that leads to this address, or by a form or script on its page.
 */
export function turnedAway(request: GuardedRequest, names: OwnNames): TurnedAway | null {
  const host = request.host?.toLowerCase();
  if (host === undefined || !isOwnHost(host, request.localAddress, names)) {
    const message =
      `this service is not called ${shown(host)}; use the address that it listens on, or name the host in ` +
      "GANGWAY_CONSOLE_HOSTS";
    return { reason: "host", message };
  }
  const { method, origin, fetchSite } = request;
  if (method !== "POST") return null;
  if (origin !== undefined && !isOwnOrigin(origin.toLowerCase(), host, names)) {
    const message = `a page of ${shown(origin)} may not call this service; name its host in GANGWAY_CONSOLE_HOSTS`;
    return { reason: "origin", message };
  }
  // Browsers let no page set this header. Programs do not send it.
  if (fetchSite !== undefined && fetchSite !== "same-origin" && fetchSite !== "none") {
    return { reason: "origin", message: "a page of another site may not call this service" };
  }
  return null;
}

/** An entry of GANGWAY_CONSOLE_HOSTS in lower case; null if the text is none. */
export function parseHost(text: string): string | null {
  const lower = text.toLowerCase();
  return AUTHORITY.test(lower) ? lower : null;
}

function isOwnHost(host: string, localAddress: string | undefined, names: OwnNames): boolean {
  const [, name = ""] = AUTHORITY.exec(host) ?? [];
  if (name === "") return false;
  if (isListed(host, names.hosts) || name === names.listenHost.toLowerCase()) return true;
  const own = inBrackets(withoutMapping(localAddress ?? ""));
  return name === own || (isLoopbackName(own) && LOOPBACK_NAMES.includes(name));
}

function isOwnOrigin(origin: string, host: string, { hosts }: OwnNames): boolean {
  const [, scheme, authority = ""] = /^(https?):\/\/(.+)$/.exec(origin) ?? [];
  if (scheme === undefined) return false;
  const port = scheme === "https" ? ":443" : ":80";
  return withoutPort(authority, port) === withoutPort(host, port) || isListed(authority, hosts);
}

function isListed(authority: string, hosts: readonly string[]): boolean {
  const [, name = ""] = AUTHORITY.exec(authority) ?? [];
  return hosts.includes(authority) || hosts.includes(name);
}

function withoutPort(authority: string, port: string): string {
  return authority.endsWith(port) ? authority.slice(0, -port.length) : authority;
}

/** IPv4 addresses as a socket of IPv6 shows them. */
export function withoutMapping(address: string): string {
  return address.startsWith("::ffff:") && address.includes(".") ? address.slice("::ffff:".length) : address;
}

function inBrackets(address: string): string {
  return address.includes(":") ? `[${address}]` : address;
}

function isLoopbackName(name: string): boolean {
  return name === "[::1]" || name.startsWith("127.");
}

function shown(text: string | undefined): string {
  return text === undefined ? "nothing" : JSON.stringify(text.slice(0, SHOWN_CHARS));
}
