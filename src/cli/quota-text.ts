import { type Duration, durationMs } from "@bufbuild/protobuf/wkt";
import { ReleaseOutcome, Violation_Scope as Scope, type Violation } from "../gen/gangway/v1/resource_manager_pb.ts";
import { formatSpan } from "./duration.ts";

const SCOPES: Readonly<Record<number, string>> = {
  [Scope.POOL]: "pool",
  [Scope.PROJECT]: "project",
  [Scope.NAMESPACE]: "namespace",
  [Scope.QUEUE]: "queue",
};

/** `pool gpu/h100 uses 6 of 8, 4 were asked for`, with what is kept for the head of the line. */
export function violationText(violation: Violation): string {
  const { scope, name, used, limit, requested, reservedForHead, resourceNamespace } = violation;
  const what = `${SCOPES[scope] ?? "scope"} ${name}`;
  const where = scope === Scope.POOL ? "" : ` of pool ${resourceNamespace}`;
  const kept = reservedForHead === 0n ? "" : `, ${reservedForHead} are kept for the first of the line`;
  return `${what} uses ${used} of ${limit}${where}${kept}, ${requested} asked for`;
}

export function releaseWord(outcome: ReleaseOutcome): string {
  return outcome === ReleaseOutcome.RELEASED ? "released" : "not held";
}

/** A limit as people write it; empty where there is none. */
export function limitCell(limit: bigint | undefined): string {
  return limit === undefined || limit === MAX ? "" : String(limit);
}

const MAX = 9_007_199_254_740_991n;

export function leaseCell(lease: Duration | undefined): string {
  const leaseMs = lease === undefined ? 0 : durationMs(lease);
  if (leaseMs === 0) return "never lapses";
  return leaseMs < 1000 ? `${leaseMs}ms` : formatSpan(leaseMs);
}
