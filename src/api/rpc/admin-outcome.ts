import type { ChangeOutcome } from "../../core/admin/change-outcome.ts";
import {
  alreadyExists,
  failedPrecondition,
  notFound,
  type RpcError,
  reasonPart,
  staleVersion,
  tooMany,
} from "./rpc-error.ts";

/** Returns the record after a change of it by an administrator. Throws if the change was refused. */
export function changedRecord<T>(
  outcome: ChangeOutcome<T>,
  resource: { readonly type: string; readonly name: string },
): T {
  const subject = `${resource.type} ${resource.name}`;
  const prefix = reasonPart(resource.type);
  switch (outcome.kind) {
    case "done":
      return outcome.record;
    case "exists":
      throw alreadyExists(`${prefix}_EXISTS`, `${subject} exists`);
    case "notFound":
      throw notFound(resource);
    case "stale":
      throw staleVersion(subject);
    case "full":
      throw noRoomFor(resource, outcome.max);
    case "inUse":
      throw failedPrecondition({ type: `${prefix}_IN_USE`, subject, description: `is in use by ${outcome.by}` });
    case "tooManyPools":
      throw tooMany("TOO_MANY_POOLS", {
        subject: "the service",
        description: `would have more than ${outcome.poolsMax} pools, flavors included; delete pools that nothing uses`,
      });
  }
}

/** RESOURCE_EXHAUSTED for a record that is one too many. */
export function noRoomFor(resource: { readonly type: string; readonly name: string }, max: number): RpcError {
  const subject = `${resource.type} ${resource.name}`;
  const all = resource.type.endsWith("s") ? `${resource.type}es` : `${resource.type}s`;
  const description = `cannot be created: there are ${max} ${all}, which is the maximum`;
  return tooMany(`TOO_MANY_${reasonPart(all)}`, { subject, description });
}

/** Returns the record. Throws NOT_FOUND for null. */
export function existingRecord<T>(record: T | null, resource: { readonly type: string; readonly name: string }): T {
  if (record === null) throw notFound(resource);
  return record;
}
