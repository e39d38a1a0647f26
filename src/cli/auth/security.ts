/** How the command line protects its calls, and what it shows: by options, the environment and the context. */

import type { Security } from "../../config/client-config.ts";
import { isLoopback, parseListenAddress } from "../../runtime/listen-address.ts";
import type { ChannelSecurity, ClientTls } from "../rpc/channel.ts";
import type { CliDeps } from "../shell/deps.ts";
import { usageFailure } from "../shell/exit.ts";
import { loginToken } from "./login.ts";

export const NO_SECURITY: Security = {
  tls: false,
  caFile: "",
  clientCertFile: "",
  clientKeyFile: "",
  tlsServerName: "",
  tokenFile: "",
};

/** What is given, and for the rest what `otherwise` gives. A certificate and its key are one setting. */
export function mergeSecurity(given: Security, otherwise: Security): Security {
  const pair = given.clientCertFile !== "" || given.clientKeyFile !== "" ? given : otherwise;
  return {
    tls: given.tls || otherwise.tls,
    caFile: given.caFile || otherwise.caFile,
    clientCertFile: pair.clientCertFile,
    clientKeyFile: pair.clientKeyFile,
    tlsServerName: given.tlsServerName || otherwise.tlsServerName,
    tokenFile: given.tokenFile || otherwise.tokenFile,
  };
}

/**
 * Reads the files. The token's is read again for each call, because another program may renew it; while it cannot be
 * read, the last token serves. A login is renewed before its token expires. Throws a usage failure if a token would
 * leave this machine without encryption.
 */
export async function callSecurity(
  security: Security,
  addresses: readonly string[],
  deps: Pick<CliDeps, "readFile" | "writePrivateFile" | "clock" | "signal">,
): Promise<ChannelSecurity> {
  const tls = await clientTls(security, deps);
  if (security.tokenFile === "") return { tls, token: null };
  const open = addresses.find((address) => tls === null && !isLoopback(parseListenAddress(address).host));
  if (open !== undefined) throw usageFailure(`a token is not sent to ${open} without TLS: add --tls or --ca-file`);
  const readToken = async () => {
    const kept = (await readText(security.tokenFile, deps)).trim();
    const text = kept.startsWith("{") ? await loginToken(kept, security.tokenFile, deps) : kept;
    if (!/^[\x21-\x7e]{1,16384}$/.test(text)) throw usageFailure(`${security.tokenFile} does not hold a token alone`);
    return text;
  };
  let last = await readToken();
  const token = async () => {
    last = await readToken().catch(() => last);
    return last;
  };
  return { tls, token };
}

/** More than the files of certificates and keys that there are. */
const FILE_BYTES_MAX = 1024 * 1024;

/** Keys have kinds, such as `EC PRIVATE KEY`. */
const PEM_OF = {
  CERTIFICATE: /^-----BEGIN (?:TRUSTED )?CERTIFICATE-----/m,
  "PRIVATE KEY": /^-----BEGIN (?:[A-Z]+ )?PRIVATE KEY-----/m,
};

/** Reads the files. Null: calls are not encrypted. */
async function clientTls(
  { tls, caFile, clientCertFile, clientKeyFile, tlsServerName }: Security,
  deps: Pick<CliDeps, "readFile" | "signal">,
): Promise<ClientTls | null> {
  if ((clientCertFile === "") !== (clientKeyFile === "")) {
    throw usageFailure("a client certificate and its key belong together: give --client-cert and --client-key");
  }
  if (!tls && caFile === "" && clientCertFile === "" && tlsServerName === "") return null;
  const read = async (path: string, what: "CERTIFICATE" | "PRIVATE KEY") => {
    if (path === "") return null;
    const text = await readText(path, deps);
    if (PEM_OF[what].test(text)) return text;
    throw usageFailure(`${path} has no ${what.toLowerCase()} in PEM`);
  };
  const [ca, cert, key] = await Promise.all([
    read(caFile, "CERTIFICATE"),
    read(clientCertFile, "CERTIFICATE"),
    read(clientKeyFile, "PRIVATE KEY"),
  ]);
  return { ca, cert, key, serverName: tlsServerName || null };
}

function readText(path: string, { readFile, signal }: Pick<CliDeps, "readFile" | "signal">): Promise<string> {
  return readFile(path, { bytesMax: FILE_BYTES_MAX, signal }).catch((error: unknown) => {
    throw usageFailure(`${path} cannot be read: ${error instanceof Error ? error.message : error}`);
  });
}
