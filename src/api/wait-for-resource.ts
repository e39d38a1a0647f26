import type { MessageInitShape } from "@bufbuild/protobuf";
import type { WaitForResourceRequest, WaitForResourceResponseSchema } from "../gen/gangway/v1/resource_manager_pb.ts";
import { grantedResponse, oneLine } from "./allocate.ts";
import type { CallContext } from "./call.ts";
import { scopeName, toProtoViolation } from "./convert-quota.ts";
import { allocateError, neverFits, tooMany } from "./quota-errors.ts";
import type { ResourceManager, WaitAnswer } from "./quota-ports.ts";
import type { RpcError } from "./rpc-error.ts";

/** Says where a request stands, until it is granted; who stops reading leaves the line. */
export async function* waitForResource(
  resources: ResourceManager,
  request: WaitForResourceRequest,
  context: CallContext,
): AsyncIterable<MessageInitShape<typeof WaitForResourceResponseSchema>> {
  let waited = false;
  for await (const answer of resources.wait(oneLine(request, context), context.signal)) {
    if (answer.kind === "granted") {
      // What the line granted is held by the time that it is heard of.
      yield { update: { case: "granted", value: grantedResponse({ ...answer, held: answer.held && !waited }) } };
      return;
    }
    if (answer.kind !== "waiting") throw waitError(answer, request.resourceNamespace);
    waited = true;
    const { position, violation } = answer;
    const violated = violation === null ? {} : { violated: toProtoViolation(violation) };
    yield { update: { case: "position", value: { position, ...violated } } };
  }
}

function waitError(answer: Exclude<WaitAnswer, { kind: "granted" | "waiting" }>, pool: string): RpcError {
  switch (answer.kind) {
    case "never":
      return neverFits(answer.violation);
    case "lineFull":
      return tooMany("LINE_FULL", {
        subject: `the line of pool ${pool}`,
        description: `has ${answer.waitersMax} waiters, and no room for more until some are granted or leave`,
      });
    case "exhausted":
    case "namespaceQuotaExceeded": {
      const { scope, used, limit } = answer.violation;
      return tooMany("QUOTA_EXHAUSTED", {
        subject: `${scope.kind} ${scopeName(scope)}`,
        description: `uses ${used} of the ${limit} that it may use of pool ${scope.pool}`,
      });
    }
    default:
      return allocateError(answer, () => "");
  }
}
