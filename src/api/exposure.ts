/** The rule for addresses that other machines can reach: calls are encrypted there, and their callers known. */
import { isLoopback, type ListenAddress, parseListenAddress } from "../runtime/listen-address.ts";
import type { ServerTls } from "../runtime/server-tls.ts";

export type Exposure = {
  /** HOST:PORT. Port 0 takes any free port. */
  readonly listen: string;
  /** Allows an address that other machines can reach although encryption or authentication is missing. */
  readonly insecure: boolean;
  /** Null: calls are not encrypted. */
  readonly tls: Pick<ServerTls, "clients"> | null;
  /** True: the service asks every caller for credentials. */
  readonly authenticates: boolean;
};

const HOW = {
  encryption: "GANGWAY_TLS_CERT_FILE and GANGWAY_TLS_KEY_FILE",
  authentication: "GANGWAY_TLS_CLIENT_CA_FILE or GANGWAY_AUTHENTICATION_FILE",
} as const;

/** What calls from other machines would lack. Empty for an address that only this machine can reach. */
export function lacking({ listen, tls, authenticates }: Omit<Exposure, "insecure">): readonly (keyof typeof HOW)[] {
  if (isLoopback(parseListenAddress(listen).host)) return [];
  return [...(tls === null ? ["encryption" as const] : []), ...(authenticates ? [] : ["authentication" as const])];
}

/** Returns the address. Throws if calls would lack something there, unless the operator insists. */
export function allowedAddress(exposure: Exposure): ListenAddress {
  const { listen, insecure } = exposure;
  const address = parseListenAddress(listen);
  const lacks = lacking(exposure);
  if (lacks.length === 0 || insecure) return address;
  throw new Error(
    `will not listen on ${listen}: other machines can reach this address, and the server has no ` +
      `${lacks.join(" and no ")}; set ${lacks.map((one) => HOW[one]).join(", and ")}, ` +
      "or pass --insecure to serve there anyway",
  );
}
