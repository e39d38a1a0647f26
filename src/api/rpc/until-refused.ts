/** Judges the caller of a stream again while the stream runs. */
import type { Authenticate, Authentication, Credentials, Identity } from "../../core/access/identity.ts";
import type { Clock } from "../../runtime/clock.ts";
import type { Caller } from "./authentication.ts";

/** A stream whose credential was withdrawn ends at most this much later than a new call is refused. */
const LOOK_AGAIN_MS = 5_000;

/**
 * Resolves with the reason once the caller's credential does not count any more or names another subject or other
 * groups, or with null when the signal is aborted. A stream has the rights of the identity that it began with. If an
 * identity provider is unreachable, open streams continue: their callers were verified before.
 */
export async function untilRefused(
  { identity, credentials }: Pick<Caller, "identity" | "credentials">,
  { authenticate, clock }: { readonly authenticate: Authenticate; readonly clock: Pick<Clock, "sleep"> },
  signal: AbortSignal,
): Promise<string | null> {
  if (identity.method === "anonymous") return null;
  while (!signal.aborted) {
    await clock.sleep(LOOK_AGAIN_MS, signal);
    if (signal.aborted) break;
    const answer = await again(credentials, authenticate);
    const why = answer === null ? null : whyOver(identity, answer);
    if (why !== null) return why;
  }
  return null;
}

/** Null: the stream may continue. */
function whyOver(before: Identity, answer: Authentication): string | null {
  if (answer.kind === "refused") return answer.why;
  const { subject, groups } = answer.identity;
  if (subject !== before.subject) return "the credential is that of another caller now";
  return haveSame(before.groups, groups) ? null : "the caller's groups have changed";
}

/** Issuers name groups in any order. */
function haveSame(before: readonly string[], now: readonly string[]): boolean {
  const [old, groups] = [new Set(before), new Set(now)];
  return old.size === groups.size && before.every((group) => groups.has(group));
}

/** Null: a part that is needed for the answer is away. */
async function again(credentials: Credentials, authenticate: Authenticate): Promise<Authentication | null> {
  try {
    return await authenticate(credentials);
  } catch {
    return null;
  }
}
