/**
 * Opens connections to API servers. It serves operators whose users register clusters: no name leads to an address that
 * is not allowed, and no broken connection ends this process.
 */
import type { LookupAddress } from "node:dns";
import { lookup } from "node:dns/promises";
import { connect, isIP, type LookupFunction, type Socket } from "node:net";
import { buildConnector } from "undici";
import { Semaphore } from "../../runtime/semaphore.ts";
import type { AllowedHosts } from "./allowed-hosts.ts";

/** A lookup occupies one of four threads that the whole process shares, for as long as the name servers are silent. */
const quickLookups = new Semaphore(2);
/** Names whose last lookup was slow wait only for each other, so that they do not delay other clusters. */
const slowLookups = new Semaphore(1);
const SLOW_MS = 1_000;
const slowHosts = new Set<string>();
/** Enough for every cluster. More names are not remembered. */
const SLOW_HOSTS_MAX = 1_000;
const underWay = new Map<string, Promise<readonly LookupAddress[]>>();
/** As Kubernetes' own clients: shorter than the 60 s after which load balancers drop silent connections. */
const KEEP_ALIVE_MS = 30_000;

/** All addresses of a name. Callers that ask for one name at the same time share the answer. */
function addressesOf(host: string): Promise<readonly LookupAddress[]> {
  const asked = underWay.get(host);
  if (asked !== undefined) return asked;
  const answer = (slowHosts.has(host) ? slowLookups : quickLookups).run(() => lookUp(host));
  underWay.set(host, answer);
  const forget = () => underWay.delete(host);
  answer.then(forget, forget);
  return answer;
}

async function lookUp(host: string): Promise<readonly LookupAddress[]> {
  const startedMs = performance.now();
  try {
    return await lookup(host, { all: true });
  } finally {
    const isSlow = performance.now() - startedMs > SLOW_MS;
    if (!isSlow) slowHosts.delete(host);
    else if (slowHosts.size < SLOW_HOSTS_MAX) slowHosts.add(host);
  }
}

/** The addresses of a host that are allowed. Throws an error that says which rule refuses them if there are none. */
export async function allowedAddresses(host: string, hosts: AllowedHosts): Promise<readonly LookupAddress[]> {
  const family = isIP(host);
  if (family === 0 && !hosts.allowsName(host) && !hosts.hasRanges) throw new HostRefused(host, hosts.refusal(host, ""));
  const all = family === 0 ? await addressesOf(host) : [{ address: host, family }];
  const allowed = all.filter(({ address }) => hosts.refusal(host, address) === null);
  if (allowed.length === 0) throw new HostRefused(host, hosts.refusal(host, all[0]?.address ?? ""));
  return allowed;
}

export const HOST_REFUSED = "HOST_REFUSED";

/** A host that `GANGWAY_CLUSTER_HOSTS` does not allow. */
export class HostRefused extends Error {
  override readonly name = "HostRefused";
  readonly code = HOST_REFUSED;

  constructor(host: string, refusal: string | null) {
    super(`the host ${host} ${refusal ?? "has no address"}`);
  }
}

/** A lookup for connections that are made elsewhere: it finds only allowed addresses. */
export function guardedLookup(hosts: AllowedHosts): LookupFunction {
  return (host, options, callback) => {
    allowedAddresses(host, hosts).then(
      (found) => answerLookup(found, options, callback),
      (error: NodeJS.ErrnoException) => callback(error, []),
    );
  };
}

function answerLookup(found: readonly LookupAddress[], ...[options, callback]: Tail<Parameters<LookupFunction>>): void {
  const [{ address, family } = { address: "", family: 0 }] = found;
  if (options.all === true) callback(null, [...found]);
  else callback(null, address, family);
}

type Tail<List extends readonly unknown[]> = List extends readonly [unknown, ...infer Rest] ? Rest : never;

/**
 * Makes connections for undici. The TCP connection comes first and has a listener for errors from its start, so that
 * nothing which TLS refuses can leave a socket whose error nobody hears.
 */
export function guardedConnector(
  tls: buildConnector.BuildOptions,
  { hosts, timeoutMs }: { readonly hosts: AllowedHosts; readonly timeoutMs: number },
): buildConnector.connector {
  const secure = buildConnector({ ...tls, allowH2: false, timeout: timeoutMs, keepAlive: false });
  return (options, callback) => {
    let socket: Socket | null = null;
    let isDone = false;
    const end: (...outcome: Parameters<buildConnector.Callback>) => void = (...outcome) => {
      if (isDone) return;
      isDone = true;
      clearTimeout(timer);
      if (outcome[0] !== null) socket?.destroy();
      callback(...outcome);
    };
    const timer = setTimeout(() => end(new Error(`no connection within ${timeoutMs / 1000} s`), null), timeoutMs);
    const open = async () => {
      const found = await allowedAddresses(options.hostname, hosts);
      if (isDone) return;
      const port = Number(options.port || (options.protocol === "https:" ? 443 : 80));
      const lookup: LookupFunction = (_host, ...rest) => answerLookup(found, ...rest);
      const tcp = connect({ host: options.hostname, port, lookup, noDelay: true });
      socket = tcp.setKeepAlive(true, KEEP_ALIVE_MS);
      tcp.on("error", (error) => end(error, null));
      tcp.once("connect", () => {
        if (options.protocol === "https:") attempt(() => secure({ ...options, httpSocket: tcp }, end), end);
        else end(null, tcp);
      });
    };
    open().catch((error: Error) => end(error, null));
  };
}

function attempt(run: () => void, end: buildConnector.Callback): void {
  try {
    run();
  } catch (error) {
    end(error instanceof Error ? error : new Error(String(error)), null);
  }
}
