/** How a cluster is, judged from what its probe and its watches meet. */
import { maxOf } from "../../runtime/lists.ts";
import { refusalOf } from "./failure-meaning.ts";
import type { KubeFailure } from "./kube-failure.ts";
import type { ProbeVerdict } from "./probe.ts";

export type ClusterHealth =
  | { readonly kind: "active" }
  /** It does not answer, or not in time. `forMs`: for how long. */
  | { readonly kind: "unreachable"; readonly forMs: number }
  /** It answers, and cannot be used: an operator has to act. Never the same as an outage. */
  | { readonly kind: "unusable"; readonly forMs: number; readonly why: string };

export type HealthFacts = {
  /** Why the server's cluster is a wrong one. Null: it is not. */
  readonly problem: string | null;
  readonly probe: ProbeVerdict;
  /** For how long the calls of each watch have been failing (0: they do not), and with what. */
  readonly watches: readonly { readonly failingForMs: number; readonly failure: KubeFailure | null }[];
};

/**
 * Judges a cluster. Watches may fail for `graceMs` before that counts. A cluster that was not active is active again
 * only when none of its watches fails, so that nobody plans on what was seen before.
 */
export function healthOf(
  { problem, probe, watches }: HealthFacts,
  { wasActive, graceMs }: { readonly wasActive: boolean; readonly graceMs: number },
): ClusterHealth {
  if (problem !== null) return { kind: "unusable", forMs: 0, why: problem };
  if (probe.kind === "refuses") return { kind: "unusable", forMs: probe.forMs, why: probe.why };
  if (probe.kind === "silent") return { kind: "unreachable", forMs: probe.forMs };
  const failing = watches.filter(({ failingForMs }) => failingForMs > 0);
  const forMs = maxOf([0, ...failing.map(({ failingForMs }) => failingForMs)]);
  if (forMs < (wasActive ? graceMs : 1)) return { kind: "active" };
  const [why] = failing.flatMap(({ failure }) => (failure === null ? [] : (refusalOf(failure) ?? [])));
  return why === undefined ? { kind: "unreachable", forMs } : { kind: "unusable", forMs, why };
}
