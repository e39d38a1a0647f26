import { status } from "@grpc/grpc-js";
import type { Violation } from "../core/quota/counters.ts";
import { scopeName } from "./convert-quota.ts";
import { errorInfo, quotaFailure, retryInfo } from "./error-details.ts";
import type { AllocateRefusal, TokenRef } from "./quota-ports.ts";
import { alreadyExists, failedPrecondition, invalidFields, notFound, RpcError } from "./rpc-error.ts";

/** What is used up is free again when others release. */
const RETRY_MS = 5000;

export function tokenName({ pool, token }: TokenRef): string {
  return `token ${token} of pool ${pool}`;
}

export function unknownPool(name: string): RpcError {
  return notFound({ type: "pool", name });
}

export function otherHolder(ref: TokenRef): RpcError {
  const message = `${tokenName(ref)} is held by another holder, who alone may renew and release it`;
  return new RpcError(status.PERMISSION_DENIED, message, [errorInfo("OTHER_HOLDER")]);
}

export function otherScope(ref: TokenRef, { project, namespace }: { project: string; namespace: string }): RpcError {
  return failedPrecondition({
    type: "OTHER_SCOPE",
    subject: tokenName(ref),
    description: `is held under project ${project} and namespace ${namespace}, not under those given`,
  });
}

/** RESOURCE_EXHAUSTED: a bound that protects the service itself, not a quota of a pool. */
export function tooMany(reason: string, violation: { subject: string; description: string }): RpcError {
  const message = `${violation.subject} ${violation.description}`;
  return new RpcError(status.RESOURCE_EXHAUSTED, message, [
    quotaFailure(violation),
    errorInfo(reason),
    retryInfo(RETRY_MS),
  ]);
}

export function neverFits(violation: Violation): RpcError {
  const { scope, limit, requested } = violation;
  const description = `would need ${requested} of ${scope.kind} ${scopeName(scope)}, which may use ${limit} at most`;
  return failedPrecondition({ type: "NEVER_FITS", subject: `the request to pool ${scope.pool}`, description });
}

/** A refusal that is an error. `path` leads to the line in the request: `lines[3].`, or nothing. */
export function allocateError(refusal: AllocateRefusal, path: (line: number) => string): RpcError {
  switch (refusal.kind) {
    case "heldOtherwise": {
      const { holder, amount, fence } = refusal;
      const how = `is held by ${holder} with amount ${amount} under fence ${fence}`;
      const why = "a token is granted again only to its holder, with its amount, and with all lines of its grant";
      return alreadyExists("TOKEN_HELD_OTHERWISE", `${tokenName(refusal)} ${how}: ${why}`);
    }
    case "unknownPool":
      return unknownPool(refusal.name);
    case "unknownQueue":
      return notFound({ type: "queue", name: refusal.name });
    case "apart":
      return failedPrecondition({
        type: "POOLS_APART",
        subject: `pools ${refusal.pools.join(" and ")}`,
        description: "belong to different quota domains or have different durability: they cannot be granted together",
      });
    case "queueApart":
      return failedPrecondition({
        type: "QUEUE_APART",
        subject: `pool ${refusal.pool}`,
        description: `cannot be charged to queue ${refusal.queue}: queues are counted with the pools of quota domain default and durability LEDGER`,
      });
    case "leaseTooLong":
      return leaseTooLong(`${path(refusal.line)}lease`, refusal.maxLeaseMs);
    case "tooManyTokens":
      return tooMany("TOO_MANY_TOKENS", {
        subject: "the quota domain",
        description: `holds ${refusal.tokensMax} tokens, and has no room for more until some are released`,
      });
  }
}

export function leaseTooLong(field: string, maxLeaseMs: number): RpcError {
  return invalidFields([{ field, message: `must be at most ${maxLeaseMs / 1000}s, the pool's max_lease` }]);
}
