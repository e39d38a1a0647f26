/** Explains a failed call by the kubeconfig that it was made with, without words of the server. */
import { HOST_REFUSED } from "./guarded-connector.ts";
import type { KubeFailure } from "./kube-failure.ts";

const OTHER_AUTHORITY = "certificate-authority-data of the kubeconfig is not the authority of the server's certificate";
const TOO_LATE = "it took too long";

/** By code: the server is not one that this kubeconfig trusts. */
const DISTRUSTED: Readonly<Record<string, string>> = {
  DEPTH_ZERO_SELF_SIGNED_CERT: OTHER_AUTHORITY,
  SELF_SIGNED_CERT_IN_CHAIN: OTHER_AUTHORITY,
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: OTHER_AUTHORITY,
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: OTHER_AUTHORITY,
  CERT_SIGNATURE_FAILURE: OTHER_AUTHORITY,
  CERT_HAS_EXPIRED: "the server's certificate has expired",
  ERR_TLS_CERT_ALTNAME_INVALID: "the server's certificate is for other names than the host of the kubeconfig",
};

/** By status: the server answers, and refuses this kubeconfig. */
const REFUSED: Readonly<Record<number, string>> = {
  401: "the server does not accept the credentials of the kubeconfig",
  403: "the account of the kubeconfig may not call the server",
};

const UNANSWERED: Readonly<Record<string, string>> = {
  ECONNREFUSED: "nothing listens at the address of the kubeconfig",
  ENOTFOUND: "no name server knows the host of the kubeconfig",
  ETIMEDOUT: TOO_LATE,
  UND_ERR_CONNECT_TIMEOUT: TOO_LATE,
  UND_ERR_HEADERS_TIMEOUT: TOO_LATE,
  UND_ERR_BODY_TIMEOUT: TOO_LATE,
};

/** Undefined: the failure says nothing about the kubeconfig. */
export function meaningOf(failure: Pick<KubeFailure, "status" | "code">): string | undefined {
  return refusalOf(failure) ?? UNANSWERED[failure.code ?? ""];
}

/**
 * Why the server and this kubeconfig cannot work together. No waiting helps, and it is no outage. Undefined: they may.
 */
export function refusalOf({ status, code = "" }: Pick<KubeFailure, "status" | "code">): string | undefined {
  if (code === HOST_REFUSED) return "this service may not connect to the address of the kubeconfig";
  return REFUSED[status] ?? DISTRUSTED[code];
}
