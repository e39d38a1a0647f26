import { type Duration, durationMs } from "@bufbuild/protobuf/wkt";
import { ReleaseOutcome, type Violation, Violation_Scope } from "../../gen/gangway/v1/resource_manager_pb.ts";
import { formatSetSpan } from "./duration.ts";

const SCOPES: Readonly<Record<number, string>> = {
  [Violation_Scope.POOL]: "pool",
  [Violation_Scope.PROJECT]: "project",
  [Violation_Scope.NAMESPACE]: "namespace",
  [Violation_Scope.QUEUE]: "queue",
};

/** `pool gpu/h100 uses 6 of 8, 4 requested`, with the amount that is reserved for the first in the waiting line. */
export function violationText(violation: Violation): string {
  const { scope, name, used, limit, requested, reservedForHead, resourceNamespace, frozen } = violation;
  const subject = `${SCOPES[scope] ?? "scope"} ${name}`;
  const ofPool = scope === Violation_Scope.POOL ? "" : ` of pool ${resourceNamespace}`;
  if (frozen) return `${subject} is frozen; it uses ${used}${ofPool}, ${requested} requested`;
  const reserved = reservedForHead === 0n ? "" : `, ${reservedForHead} reserved for the first of the waiting line`;
  return `${subject} uses ${used} of ${limit}${ofPool}${reserved}, ${requested} requested`;
}

export function releaseWord(outcome: ReleaseOutcome): string {
  return outcome === ReleaseOutcome.RELEASED ? "released" : "not held";
}

/** Formats a limit; empty for "no limit". */
export function limitCell(limit: bigint | undefined): string {
  return limit === undefined || limit === NO_LIMIT ? "" : String(limit);
}

/** The largest amount that the API accepts stands for "no limit". */
export const NO_LIMIT = 9_007_199_254_740_991n;

export function leaseCell(lease: Duration | undefined): string {
  const leaseMs = lease === undefined ? 0 : durationMs(lease);
  if (leaseMs === 0) return "never expires";
  return formatSetSpan(leaseMs);
}
