/** Remedies for calls that fail for their encryption or their caller: in most cases this side has made the mistake. */
import { isIP } from "node:net";
import { connect } from "node:tls";
import { type CallError, STATUS } from "./call-error.ts";
import type { ChannelSecurity } from "./channel.ts";

/** Node's codes of certificates that no known authority has signed. */
const UNKNOWN_AUTHORITY: readonly string[] = [
  "DEPTH_ZERO_SELF_SIGNED_CERT",
  "SELF_SIGNED_CERT_IN_CHAIN",
  "UNABLE_TO_VERIFY_LEAF_SIGNATURE",
  "UNABLE_TO_GET_ISSUER_CERT",
  "UNABLE_TO_GET_ISSUER_CERT_LOCALLY",
  "CERT_SIGNATURE_FAILURE",
];

/** How long the service has to answer whether it encrypts. */
const PROBE_MS_MAX = 2_000;

type Failed = Pick<CallError, "code" | "details" | "reasonCode">;

/** The lines that say what to do. Empty: the failure is of another kind. */
export async function remedyOf(
  error: Failed,
  { address, security }: { readonly address: string; readonly security: ChannelSecurity },
): Promise<readonly string[]> {
  if (error.code === STATUS.UNAUTHENTICATED) return ofCaller(security);
  if (error.code === STATUS.PERMISSION_DENIED) return OF_PERMISSION;
  if (error.code !== STATUS.UNAVAILABLE) return [];
  if (security.tls !== null) return ofTls(error, address);
  if (/ECONNREFUSED|ENOTFOUND|EAI_AGAIN|ETIMEDOUT|EHOSTUNREACH/.test(error.reasonCode)) return [];
  return (await takesTls(address)) ? PLAIN_TO_TLS : [];
}

const PLAIN_TO_TLS = [
  "  The service encrypts its calls, and this command does not. Give --ca-file FILE with the authority that signed",
  "  the service's certificate, or --tls if this machine knows that authority.",
];

const TLS_TO_PLAIN = [
  "  The service does not encrypt its calls, and this command does. Leave out --tls, --ca-file, --client-cert and",
  '  --tls-server-name, also in the environment and in the context ("gangway context list").',
];

const OF_PERMISSION = [
  '  "gangway whoami" says who you are here, and "gangway can-i VERB RESOURCE" what you may do. An administrator',
  '  gives permissions with "gangway binding create".',
];

function ofCaller({ token, tls }: ChannelSecurity): readonly string[] {
  const ways = '"gangway login", or --token-file FILE with the token of a robot';
  if (token !== null)
    return [
      "  The command showed a token that the service does not take: it has expired, was revoked, or is for another",
      `  service. Get a new one: ${ways}.`,
    ];
  if (tls !== null && tls.cert !== null)
    return ["  The command showed a client certificate alone. The service may want a token, too:", `  ${ways}.`];
  return [`  The command showed no token. Give one: ${ways}.`];
}

function ofTls({ details, reasonCode }: Failed, address: string): readonly string[] {
  if (reasonCode === "ERR_SSL_WRONG_VERSION_NUMBER" || /wrong version number|packet length too long/i.test(details))
    return TLS_TO_PLAIN;
  if (UNKNOWN_AUTHORITY.includes(reasonCode))
    return [
      "  No authority that this command knows has signed the service's certificate. Give --ca-file FILE with the one",
      "  that did. Without --ca-file, the authorities of this machine count.",
    ];
  if (reasonCode === "ERR_TLS_CERT_ALTNAME_INVALID")
    return [
      `  The service's certificate is for another name than that of ${address}. Call the service by a name of its`,
      "  certificate with --address NAME:PORT, or give that name with --tls-server-name NAME.",
    ];
  if (reasonCode === "CERT_HAS_EXPIRED")
    return ["  The service's certificate has expired. Its operator must renew it; nothing here can."];
  if (reasonCode === "CERT_NOT_YET_VALID")
    return ["  The service's certificate is not valid yet. Compare the clocks of this machine and of the service."];
  if (/certificate required|handshake failure|bad certificate|unknown ca|certificate unknown/i.test(details))
    return [
      "  The service wants a certificate of this command, and takes none or not this one: give --client-cert FILE and",
      "  --client-key FILE of a certificate that an authority of the service has signed. Where a token alone is to be",
      "  enough, the operator of the service sets GANGWAY_TLS_CLIENT=optional.",
    ];
  return [];
}

/** True if an encrypted connection to the first of these addresses begins. Its certificate is not looked at. */
async function takesTls(addresses: string): Promise<boolean> {
  const [address = ""] = addresses.split(",");
  const { hostname, port } = new URL(`https://${address}`);
  const host = hostname.replace(/^\[|\]$/g, "");
  const { promise, resolve } = Promise.withResolvers<boolean>();
  const name = isIP(host) === 0 ? { servername: host } : {};
  // Nothing is sent on this connection.
  const socket = connect({
    host,
    port: Number(port || 443),
    rejectUnauthorized: false,
    ALPNProtocols: ["h2"],
    ...name,
  });
  socket.setTimeout(PROBE_MS_MAX, () => resolve(false));
  socket.once("secureConnect", () => resolve(true));
  socket.once("error", () => resolve(false));
  socket.once("close", () => resolve(false));
  return promise.finally(() => socket.destroy());
}
