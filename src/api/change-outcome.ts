import type { ChangeOutcome } from "./ports.ts";
import { alreadyExists, failedPrecondition, notFound, staleVersion } from "./rpc-error.ts";

/** The record that a change of a queue, namespace or cluster led to; throws the answer where it was refused. */
export function changed<T>(outcome: ChangeOutcome<T>, resource: { readonly type: string; readonly name: string }): T {
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
    case "inUse":
      throw failedPrecondition({ type: `${prefix}_IN_USE`, subject, description: `is in use by ${outcome.by}` });
    case "apart": {
      const { pool, domain, durability } = outcome;
      const description = `pool ${pool} is in quota domain ${domain} with durability ${durability}; queues need default and LEDGER`;
      throw failedPrecondition({ type: `${prefix}_APART`, subject, description });
    }
  }
}

/** The record that was looked for; throws NOT_FOUND where there is none. */
export function found<T>(record: T | null, resource: { readonly type: string; readonly name: string }): T {
  if (record === null) throw notFound(resource);
  return record;
}
