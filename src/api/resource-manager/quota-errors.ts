import { status } from "@grpc/grpc-js";
import type { AllocateRefusal } from "../../core/quota/calls.ts";
import type { TokenName, Violation } from "../../core/quota/counters.ts";
import type { CallContext } from "../rpc/call.ts";
import { errorInfo } from "../rpc/error-details.ts";
import { alreadyExists, failedPrecondition, invalidFields, notFound, RpcError, tooMany } from "../rpc/rpc-error.ts";
import { scopeName } from "./convert-quota.ts";

export function tokenName({ pool, token }: TokenName): string {
  return `token ${token} of pool ${pool}`;
}

export function unknownPool(name: string): RpcError {
  return notFound({ type: "pool", name });
}

export function otherHolder(ref: TokenName): RpcError {
  const message = `${tokenName(ref)} has another holder; only its holder can renew or release it`;
  return new RpcError(status.PERMISSION_DENIED, message, [errorInfo("OTHER_HOLDER")]);
}

export function otherScope(ref: TokenName, { project, namespace }: { project: string; namespace: string }): RpcError {
  return failedPrecondition({
    type: "OTHER_SCOPE",
    subject: tokenName(ref),
    description: `is held in project ${project} and namespace ${namespace}, not in those of the request`,
  });
}

export function neverFits(violation: Violation): RpcError {
  const { scope, limit, requested } = violation;
  const description = `needs ${requested} of ${scope.kind} ${scopeName(scope)}, whose limit is ${limit}`;
  return failedPrecondition({ type: "NEVER_FITS", subject: `the request to pool ${scope.pool}`, description });
}

/** Returns the error for a refusal. `path` returns the path to an allocation of the request: `lines[3].`, or "". */
export function allocateError(
  refusal: AllocateRefusal,
  of: Pick<CallContext, "access" | "identity"> & { readonly path?: (index: number) => string },
): RpcError {
  switch (refusal.kind) {
    case "heldOtherwise": {
      const { holder, amount, fence } = refusal;
      const isNamed =
        holder === of.identity.subject || of.access.may("tokens.get", { kind: "pool", name: refusal.pool });
      const how = `is held by ${isNamed ? holder : "another holder"} with amount ${amount} under fence ${fence}`;
      const why = "a token is granted again only to its holder, with its amount, and with all allocations of its grant";
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
        description: "have different quota domains or durabilities, so that they cannot be granted together",
      });
    case "queueApart":
      return failedPrecondition({
        type: "QUEUE_APART",
        subject: `pool ${refusal.pool}`,
        description:
          `cannot be charged to queue ${refusal.queue}: ` +
          "queues need pools of quota domain default and durability LEDGER",
      });
    case "leaseTooLong":
      return leaseTooLong(`${of.path?.(refusal.index) ?? ""}lease`, refusal.maxLeaseMs);
    case "tooManyTokens":
      return tooMany("TOO_MANY_TOKENS", {
        subject: "the quota domain",
        description: `holds ${refusal.tokensMax} tokens, its maximum; release some before the next request`,
      });
  }
}

export function leaseTooLong(field: string, maxLeaseMs: number): RpcError {
  return invalidFields([{ field, message: `must be at most ${maxLeaseMs / 1000}s, the pool's max_lease` }]);
}
