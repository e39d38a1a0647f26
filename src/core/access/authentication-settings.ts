/** Reads the file that says which callers the service knows. Operators learn every mistake at the start. */

import { isJsonObject, type Json } from "../../runtime/json.ts";
import { append } from "../../runtime/lists.ts";
import { flagOf, known, listOf, objectOf, textOf } from "../../runtime/read-members.ts";
import { type ConsoleSettings, readConsoleSettings } from "./console-settings.ts";
import { isSecureUrl } from "./secure-url.ts";

/** An issuer of OpenID Connect whose tokens are taken. */
export type IssuerSettings = {
  /** As the claim `iss` has it. */
  readonly issuer: string;
  /** A token must be for one of them. */
  readonly audiences: readonly string[];
  readonly subjectClaim: string;
  readonly subjectPrefix: string;
  /** Null: tokens give no groups. */
  readonly groupsClaim: string | null;
  readonly groupsPrefix: string;
  /** The file of the authorities that sign the issuer's certificate. Null: those that Node trusts. */
  readonly caFile: string | null;
};

/** The cluster whose service accounts may call. */
export type KubernetesSettings = {
  /** A file. Null: this process runs in the cluster. */
  readonly kubeconfig: string | null;
  /** The audience that a token must have. */
  readonly audience: string;
};

export type AuthenticationSettings = {
  readonly issuers: readonly IssuerSettings[];
  /** Null: service accounts cannot call. */
  readonly kubernetes: KubernetesSettings | null;
  /** Robots may call, with tokens of the service's own. */
  readonly robots: boolean;
  /** A certificate without other names is known by its common name. */
  readonly certificateCommonName: boolean;
  /** Null: browsers log in with tokens alone. */
  readonly console: ConsoleSettings | null;
};

export const NO_AUTHENTICATION: AuthenticationSettings = {
  issuers: [],
  kubernetes: null,
  robots: false,
  certificateCommonName: false,
  console: null,
};

/** True if callers must show credentials. `certificates`: clients may show certificates. */
export function hasMethod(settings: AuthenticationSettings & { readonly certificates: boolean }): boolean {
  const { issuers, kubernetes, robots, certificates } = settings;
  return certificates || robots || kubernetes !== null || issuers.length > 0;
}

type SettingsOutcome =
  | { readonly kind: "read"; readonly settings: AuthenticationSettings }
  /** Each error names a member and says what is allowed. */
  | { readonly kind: "refused"; readonly errors: readonly string[] };

const ISSUERS_MAX = 16;
/** The beginnings of subjects of other methods, and what a holder of tokens must not begin with. */
const RESERVED = ["anonymous", "system:", "robot:", "spiffe://", "dns:", "cn:", "org:", "job/"];

export function readAuthentication(value: Json): SettingsOutcome {
  const errors: string[] = [];
  if (!isJsonObject(value)) return { kind: "refused", errors: ["it must be an object"] };
  known(value, "", ["issuers", "kubernetes", "robots", "certificates", "console"], errors);
  const issuers = listOf(value["issuers"] ?? [], "issuers", errors).map((one, at) =>
    readIssuer(one, `issuers[${at}]`, errors),
  );
  if (issuers.length > ISSUERS_MAX) errors.push(`issuers has more than ${ISSUERS_MAX}`);
  append(errors, mistaken(issuers));
  const kubernetes = value["kubernetes"] === undefined ? null : readKubernetes(value["kubernetes"], errors);
  const certificates = objectOf(value["certificates"] ?? {}, "certificates", errors);
  known(certificates, "certificates.", ["commonName"], errors);
  const certificateCommonName = flagOf(certificates["commonName"] ?? false, "certificates.commonName", errors);
  const robots = flagOf(value["robots"] ?? false, "robots", errors);
  const console = value["console"] === undefined ? null : readConsoleSettings(value["console"], issuers, errors);
  if (errors.length > 0) return { kind: "refused", errors };
  return { kind: "read", settings: { issuers, kubernetes, robots, certificateCommonName, console } };
}

function readKubernetes(value: Json, errors: string[]): KubernetesSettings {
  const of = objectOf(value, "kubernetes", errors);
  known(of, "kubernetes.", ["kubeconfig", "audience"], errors);
  const { kubeconfig, audience = "gangway" } = of;
  return {
    kubeconfig: kubeconfig === undefined ? null : textOf(kubeconfig, "kubernetes.kubeconfig", errors),
    audience: textOf(audience, "kubernetes.audience", errors),
  };
}

function readIssuer(value: Json, at: string, errors: string[]): IssuerSettings {
  const of = objectOf(value, at, errors);
  const text = (member: string, fallback: string | null) => textOf(of[member] ?? fallback, `${at}.${member}`, errors);
  known(of, `${at}.`, [...MEMBERS], errors);
  const issuer = text("issuer", null);
  if (!isSecureUrl(issuer)) {
    errors.push(`${at}.issuer must be an https URL without query; http is allowed for a loopback address alone`);
  }
  const audiences = listOf(of["audiences"] ?? [], `${at}.audiences`, errors).map((one, index) =>
    textOf(one, `${at}.audiences[${index}]`, errors),
  );
  if (audiences.length === 0) errors.push(`${at}.audiences must name at least one audience`);
  const subjectPrefix = text("subjectPrefix", `${issuer}#`);
  return {
    issuer,
    audiences,
    subjectClaim: text("subjectClaim", "sub"),
    subjectPrefix,
    groupsClaim: of["groupsClaim"] === undefined ? null : text("groupsClaim", null),
    groupsPrefix: text("groupsPrefix", subjectPrefix),
    caFile: of["caFile"] === undefined ? null : text("caFile", null),
  };
}

const MEMBERS = [
  "issuer",
  "audiences",
  "subjectClaim",
  "subjectPrefix",
  "groupsClaim",
  "groupsPrefix",
  "caFile",
] as const;

/** Two subjects must differ if their issuers do. */
function mistaken(issuers: readonly IssuerSettings[]): readonly string[] {
  return issuers.flatMap((one, at) => {
    const earlier = issuers.slice(0, at);
    const prefixes = ["subjectPrefix", "groupsPrefix"] as const;
    return [
      ...(earlier.some(({ issuer }) => issuer === one.issuer) ? [`issuers[${at}].issuer is that of another one`] : []),
      ...prefixes
        .filter((member) => RESERVED.some((word) => overlap(word, one[member])))
        .map((member) => `issuers[${at}].${member} must not begin like ${RESERVED.join(", ")}`),
      ...prefixes
        .filter((member) => earlier.some((other) => overlap(other[member], one[member])))
        .map((member) => `issuers[${at}].${member} begins like that of another issuer, or is empty`),
    ];
  });
}

function overlap(one: string, other: string): boolean {
  return one.startsWith(other) || other.startsWith(one);
}
