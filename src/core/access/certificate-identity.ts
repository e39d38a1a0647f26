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
    if (uris.length > 1 || !isSpiffeId(uri)) return refusal("is a certificate with several URIs or a wrong one");
    return identified({ subject: uri, ...rest });
  }
  const [dnsName] = dnsNames;
  if (dnsName !== undefined) {
    if (!isHostName(dnsName)) return refusal("is a certificate whose first DNS name is not the name of one host");
    return identified({ subject: `dns:${dnsName.toLowerCase()}`, ...rest });
  }
  if (allow.commonName && commonName !== null) return identified({ subject: `cn:${commonName}`, ...rest });
  return refusal("is a certificate without a SPIFFE URI and without a DNS name");
}

/** SPIFFE-ID, 2: a trust domain and segments, without a port, query, encoded characters, `.` and `..`. */
const SPIFFE_ID = /^spiffe:\/\/([a-z0-9._-]+)(?:\/[A-Za-z0-9._-]+)*$/;
const TRUST_DOMAIN_CHARS_MAX = 255;

function isSpiffeId(uri: string): boolean {
  const [, trustDomain] = SPIFFE_ID.exec(uri) ?? [];
  if (trustDomain === undefined || trustDomain.length > TRUST_DOMAIN_CHARS_MAX) return false;
  return !uri.slice(SPIFFE.length).split("/").some(isDots);
}

function isDots(segment: string): boolean {
  return segment === "." || segment === "..";
}

const LABEL = /^[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?$/i;
const HOST_NAME_CHARS_MAX = 253;

/** Neither a pattern such as `*.example`, nor a name with an empty part. */
function isHostName(name: string): boolean {
  return name.length <= HOST_NAME_CHARS_MAX && name.split(".").every((label) => LABEL.test(label));
}
