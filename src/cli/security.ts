/** How the command line protects its calls: what the options, the environment and the context say of TLS. */

import type { CliDeps } from "./deps.ts";
import { usageFailure } from "./exit.ts";
import type { ClientTls } from "./rpc/channel.ts";

/** Paths of files, relative to the working directory. Empty: not given. */
export type Security = {
  /** True: TLS also without any of the files. */
  readonly tls: boolean;
  readonly caFile: string;
  readonly clientCertFile: string;
  readonly clientKeyFile: string;
  /** The name in the service's certificate, if the service is reached by another one. */
  readonly tlsServerName: string;
};

export const NO_SECURITY: Security = {
  tls: false,
  caFile: "",
  clientCertFile: "",
  clientKeyFile: "",
  tlsServerName: "",
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
  };
}

/** More than the files of certificates and keys that there are. */
const FILE_BYTES_MAX = 1024 * 1024;

/** Reads the files. Null: calls are not encrypted. */
export async function clientTls(
  { tls, caFile, clientCertFile, clientKeyFile, tlsServerName }: Security,
  { readFile, signal }: Pick<CliDeps, "readFile" | "signal">,
): Promise<ClientTls | null> {
  if ((clientCertFile === "") !== (clientKeyFile === "")) {
    throw usageFailure("a client certificate and its key belong together: give --client-cert and --client-key");
  }
  if (!tls && caFile === "" && clientCertFile === "" && tlsServerName === "") return null;
  const read = async (path: string) => {
    if (path === "") return null;
    const text = await readFile(path, { bytesMax: FILE_BYTES_MAX, signal }).catch((error: unknown) => {
      throw usageFailure(`${path} cannot be read: ${error instanceof Error ? error.message : error}`);
    });
    if (!text.includes("-----BEGIN ")) throw usageFailure(`${path} is not in PEM`);
    return text;
  };
  const [ca, cert, key] = await Promise.all([read(caFile), read(clientCertFile), read(clientKeyFile)]);
  return { ca, cert, key, serverName: tlsServerName || null };
}
