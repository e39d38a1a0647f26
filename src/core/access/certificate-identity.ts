import { type Authentication, identified, type PeerCertificate, refusal } from "./identity.ts";

const SPIFFE = "spiffe://";

/**
 * The identity of a certificate: its SPIFFE URI, else its first DNS name, else, if the operator allows it, its common
 * name. Names other than SPIFFE URIs get a prefix, so that no certificate can have the subject of another method.
 */
export function certificateIdentity(
  { uris, dnsNames, commonName, organizations, expiresAtMs }: PeerCertificate,
  allow: { readonly commonName: boolean },
): Authentication {
  const rest = {
    groups: [...new Set(organizations.map((name) => `org:${name}`))],
    method: "certificate",
    issuer: "",
    expiresAtMs,
  } as const;
  const spiffe = uris.filter((uri) => uri.toLowerCase().startsWith(SPIFFE));
  if (spiffe.length > 0) {
    // A certificate of SPIFFE has exactly one URI (X509-SVID, 2).
    const [uri = ""] = spiffe;
    if (uris.length > 1 || !uri.startsWith(SPIFFE)) return refusal("is a certificate with several URIs or a wrong one");
    return identified({ subject: uri, ...rest });
  }
  const [dnsName] = dnsNames;
  if (dnsName !== undefined) return identified({ subject: `dns:${dnsName.toLowerCase()}`, ...rest });
  if (allow.commonName && commonName !== null) return identified({ subject: `cn:${commonName}`, ...rest });
  return refusal("is a certificate without a SPIFFE URI and without a DNS name");
}
