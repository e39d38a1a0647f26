import type { MessageInitShape } from "@bufbuild/protobuf";
import type { WaitAnswer } from "../../core/quota/calls.ts";
import type {
  WaitForResourceRequest,
  WaitForResourceResponseSchema,
} from "../../gen/gangway/v1/resource_manager_pb.ts";
import type { CallContext } from "../rpc/call.ts";
import { type RpcError, tooMany } from "../rpc/rpc-error.ts";
import { grantedResponse, oneAllocation } from "./allocate.ts";
import { scopeName, toProtoViolation } from "./convert-quota.ts";
import { allocateError, neverFits } from "./quota-errors.ts";
import type { TokenOperations } from "./quota-ports.ts";

/**
 * Streams the place in the waiting line until the tokens are granted. The caller leaves the line when it stops reading.
 */
export async function* waitForResource(
  resources: TokenOperations,
  request: WaitForResourceRequest,
  context: CallContext,
): AsyncIterable<MessageInitShape<typeof WaitForResourceResponseSchema>> {
  let waited = false;
  for await (const answer of resources.wait(oneAllocation(request, context), context.signal)) {
    if (answer.kind === "granted") {
      // A grant of the waiting line is already held when it is read here, but it is new to the caller.
      yield { update: { case: "granted", value: grantedResponse({ ...answer, held: answer.held && !waited }) } };
      return;
    }
    if (answer.kind !== "waiting") throw waitError(answer, request.resourceNamespace, context);
    waited = true;
    const { position, violation } = answer;
    const violated = violation === null ? {} : { violated: toProtoViolation(violation) };
    yield { update: { case: "position", value: { position, ...violated } } };
  }
}

function waitError(
  answer: Exclude<WaitAnswer, { kind: "granted" | "waiting" }>,
  pool: string,
  context: CallContext,
): RpcError {
  switch (answer.kind) {
    case "never":
      return neverFits(answer.violation);
    case "lineFull":
      return tooMany("LINE_FULL", {
        subject: `the waiting line of pool ${pool}`,
        description: `has ${answer.waitersMax} waiters, its maximum; retry when some have been granted or have left`,
      });
    case "exhausted":
    case "namespaceQuotaExceeded": {
      const { scope, used, limit } = answer.violation;
      return tooMany("QUOTA_EXHAUSTED", {
        subject: `${scope.kind} ${scopeName(scope)}`,
        description: `uses ${used} of its limit ${limit} of pool ${scope.pool}`,
      });
    }
    default:
      return allocateError(answer, context);
  }
}
