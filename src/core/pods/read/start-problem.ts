/**
 * Tells pods that can never start from pods whose cluster has a problem that passes. It serves users whose job holds
 * GPUs because its image is mistyped.
 */
import type { StartReason } from "../../job/status.ts";
import type { Problem } from "./read-problem.ts";

/** The longest part of a cluster's message that is read. */
const READ_CHARS_MAX = 4_096;

/** Words of registries and networks that pass. They count before all others: a proxy may answer 404 or 403 as well. */
const PASSING: readonly string[] = [
  "toomanyrequests",
  "too many requests",
  "rate limit",
  "no such host",
  "dial tcp",
  "connection refused",
  "connection reset",
  "i/o timeout",
  "tls handshake",
  "deadline exceeded",
  "service unavailable",
  "bad gateway",
  "gateway timeout",
  "internal server error",
  "registryunavailable",
  "unexpected eof",
];
/** Words of container runtimes and registries. Source: containerd, CRI-O, the OCI distribution specification. */
const NOT_FOUND: readonly string[] = [
  "not found",
  "notfound",
  "manifest unknown",
  "name unknown",
  "no match for platform",
];
const DENIED: readonly string[] = [
  "access denied",
  "pull access",
  "unauthorized",
  "forbidden",
  "authorization failed",
  "authentication required",
  "requested access to the resource is denied",
  "no basic auth credentials",
];
/** Words of the kubelet about a reference of an environment variable. */
const MISSING_KEY: readonly string[] = ["couldn't find key", "non-existent config key", "non-existent secret key"];

/** Why a pod with this problem cannot start however often it is tried. Null: a later start may succeed. */
export function startReasonOf({ reason, message }: Problem): StartReason | null {
  const text = message.slice(0, READ_CHARS_MAX).toLowerCase();
  const says = (words: readonly string[]) => words.some((word) => text.includes(word));
  switch (reason) {
    case "InvalidImageName":
      return "InvalidImageName";
    case "CreateContainerConfigError":
      return says(MISSING_KEY) ? "MissingKey" : null;
    case "ErrImagePull":
    case "ImagePullBackOff":
      if (says(PASSING)) return null;
      if (says(DENIED)) return "ImageAccessDenied";
      return says(NOT_FOUND) ? "ImageNotFound" : null;
    default:
      return null;
  }
}
