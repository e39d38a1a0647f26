import type { ChangeOutcome } from "../../core/admin/change-outcome.ts";
import { alreadyExists, failedPrecondition, notFound, type RpcError, staleVersion, tooMany } from "./rpc-error.ts";

/** Returns the record after a change of a queue, namespace, cluster or pool. Throws if the change was refused. */
export function changedRecord<T>(
  outcome: ChangeOutcome<T>,
  resource: { readonly type: string; readonly name: string },
): T {
  const subject = `${resource.type} ${resource.name}`;
  const prefix = resource.type.toUpperCase();
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
  const description = `cannot be created: there are ${max} ${resource.type}s, which is the maximum`;
  return tooMany(`TOO_MANY_${resource.type.toUpperCase()}S`, { subject, description });
}

/** Returns the record. Throws NOT_FOUND for null. */
export function existingRecord<T>(record: T | null, resource: { readonly type: string; readonly name: string }): T {
  if (record === null) throw notFound(resource);
  return record;
}
