/** Who calls: the words that the ways of authentication share. */
import type { Soon } from "../../runtime/soon.ts";

export type Method = "anonymous" | "oidc" | "kubernetes" | "certificate" | "robot";

/** A caller. Subjects of different methods and issuers never look alike: each begins in its own way. */
export type Identity = {
  readonly subject: string;
  readonly groups: readonly string[];
  readonly method: Method;
  /** The issuer of the credential. Empty: it has none. */
  readonly issuer: string;
  /** When the credential expires. Null: it does not. */
  readonly expiresAtMs: number | null;
};

/** Every caller of a service without a method of authentication. */
export const ANONYMOUS: Identity = {
  subject: "anonymous",
  groups: [],
  method: "anonymous",
  issuer: "",
  expiresAtMs: null,
};

/** The names in a client's certificate that an authority has signed. */
export type PeerCertificate = {
  readonly uris: readonly string[];
  readonly dnsNames: readonly string[];
  readonly commonName: string | null;
  readonly organizations: readonly string[];
  readonly expiresAtMs: number;
};

/** What a call shows. `invalid`: the client has shown a certificate that does not count, and this says why. */
export type Credentials = {
  /** The values of the header `authorization`. */
  readonly authorization: readonly string[];
  readonly certificate: PeerCertificate | { readonly invalid: string } | null;
  /** The secret of a browser's session. It counts only without the header. Omitted: none. */
  readonly session?: string;
};

/** `why` is the end of a sentence, and shows nothing of the credential. */
export type Authentication =
  | { readonly kind: "identity"; readonly identity: Identity }
  | { readonly kind: "refused"; readonly why: string };

/**
 * Judges what a call shows, at once if that was verified before. Throws an `UnavailableError`, perhaps later, if a part
 * that is needed for it is away.
 */
export type Authenticate = (credentials: Credentials) => Soon<Authentication>;

export function refusal(why: string): Authentication {
  return { kind: "refused", why };
}

/** A holder of tokens may be as long. */
const SUBJECT_CHARS_MAX = 256;
/** More groups than a person has; a decision looks at each. */
const GROUPS_MAX = 256;
const UNPRINTABLE = /[\p{C}\p{Zl}\p{Zp}]/u;

/** Returns the identity if its names can be recorded and shown. */
export function identified(identity: Identity): Authentication {
  const { subject, groups } = identity;
  if (!isName(subject)) return refusal(`has no subject of at most ${SUBJECT_CHARS_MAX} characters of printable text`);
  if (groups.length > GROUPS_MAX) return refusal(`has more than ${GROUPS_MAX} groups`);
  if (!groups.every(isName)) return refusal("has a group that is no printable text, or too long");
  return { kind: "identity", identity };
}

function isName(text: string): boolean {
  return text !== "" && text.length <= SUBJECT_CHARS_MAX && !UNPRINTABLE.test(text);
}
