import type { MessageInitShape } from "@bufbuild/protobuf";
import type { FieldNote } from "../../core/job/request/sent.ts";
import type { AllocateAnswer, AllocateRequest, RequestedAllocation } from "../../core/quota/calls.ts";
import type { Caps } from "../../core/quota/counters.ts";
import {
  type AllocateResourceRequest,
  type AllocateResourceResponseSchema,
  AllocationStatus,
  type BatchAllocateResourcesRequest,
  type BatchAllocateResourcesResponseSchema,
  type ResourceConstraintsSpec,
  type WaitForResourceRequest,
} from "../../gen/gangway/v1/resource_manager_pb.ts";
import type { CallContext } from "../rpc/call.ts";
import { mergeNotes } from "../rpc/check-request.ts";
import { invalidFields } from "../rpc/rpc-error.ts";
import { toTimestamp } from "../rpc/timestamp.ts";
import { spanMs, toProtoViolation } from "./convert-quota.ts";
import { duplicateTokens } from "./duplicate-tokens.ts";
import { allocateError } from "./quota-errors.ts";
import type { TokenOperations } from "./quota-ports.ts";

type SentAllocation = AllocateResourceRequest | WaitForResourceRequest;
type GrantedAnswer = Extract<AllocateAnswer, { kind: "granted" }>;

const STATUS = {
  exhausted: AllocationStatus.EXHAUSTED,
  namespaceQuotaExceeded: AllocationStatus.NAMESPACE_QUOTA_EXCEEDED,
} as const;

/** Takes tokens of one pool, or returns the scope that has no room. */
export async function allocate(
  resources: TokenOperations,
  request: AllocateResourceRequest,
  context: CallContext,
): Promise<MessageInitShape<typeof AllocateResourceResponseSchema>> {
  const answer = await resources.allocate(oneAllocation(request, context));
  if (answer.kind === "granted") return grantedResponse(answer);
  if (!("violation" in answer)) throw allocateError(answer, context);
  return { status: STATUS[answer.kind], violated: toProtoViolation(answer.violation) };
}

/** Takes tokens of several pools together, or takes none. */
export async function batchAllocate(
  resources: TokenOperations,
  request: BatchAllocateResourcesRequest,
  context: CallContext,
): Promise<MessageInitShape<typeof BatchAllocateResourcesResponseSchema>> {
  const notes = mergeNotes(context.violations, [...duplicateTokens(request.lines), ...allocationNotes(request)]);
  if (notes.length > 0) throw invalidFields(notes);
  const allocations = request.lines.map((sent) =>
    toAllocation(sent.lease === undefined ? { ...sent, ...leaseOf(request) } : sent),
  );
  const { holder, priority } = request;
  const answer = await resources.allocate({ allocations, holder: holder || context.identity.subject, priority });
  if (answer.kind === "granted") {
    const granted = answer.allocations.map(({ pool, token, expireTimeMs }) => {
      return { resourceNamespace: pool, allocationToken: token, expireTime: toTimestamp(expireTimeMs) };
    });
    return { status: AllocationStatus.GRANTED, fence: answer.fence, held: answer.held, lines: granted };
  }
  if (!("violation" in answer)) {
    const path = (index: number) => (request.lines[index]?.lease === undefined ? "" : `lines[${index}].`);
    throw allocateError(answer, { ...context, path });
  }
  return { status: STATUS[answer.kind], violated: toProtoViolation(answer.violation), line: answer.index };
}

export function grantedResponse({
  fence,
  held,
  allocations,
}: GrantedAnswer): MessageInitShape<typeof AllocateResourceResponseSchema> {
  const expireTime = toTimestamp(allocations[0]?.expireTimeMs ?? null);
  return { status: AllocationStatus.GRANTED, fence, held, expireTime };
}

export function oneAllocation(request: SentAllocation, { identity }: Pick<CallContext, "identity">): AllocateRequest {
  return {
    allocations: [toAllocation(request)],
    holder: request.holder || identity.subject,
    priority: request.priority,
  };
}

function toAllocation(sent: Omit<SentAllocation, "$typeName">): RequestedAllocation {
  return {
    pool: sent.resourceNamespace,
    token: sent.allocationToken,
    project: sent.project || "default",
    namespace: sent.namespace || "default",
    amount: Number(sent.amount ?? 1n),
    caps: toCaps(sent.resourceConstraints),
    queue: sent.queue || null,
    lease: sent.lease === undefined ? { kind: "default" } : { kind: "asked", ms: spanMs(sent.lease) },
  };
}

function toCaps(spec: ResourceConstraintsSpec | undefined): Caps {
  const cap = (constraint: { readonly value: bigint } | undefined) =>
    constraint === undefined ? null : Number(constraint.value);
  return { project: cap(spec?.projectScope), namespace: cap(spec?.namespaceScope) };
}

function leaseOf({ lease }: BatchAllocateResourcesRequest) {
  return lease === undefined ? {} : { lease };
}

/** Refuses allocations with a holder or a priority other than the batch's. */
function allocationNotes({ lines, holder, priority }: BatchAllocateResourcesRequest): readonly FieldNote[] {
  return lines.flatMap((sent, at) => [
    ...(sent.holder === "" || sent.holder === holder
      ? []
      : [
          {
            field: `lines[${at}].holder`,
            message: "must be empty or equal to the batch's holder: all allocations of a batch have one holder",
          },
        ]),
    ...(sent.priority === 0 || sent.priority === priority
      ? []
      : [
          {
            field: `lines[${at}].priority`,
            message: "must be 0 or equal to the batch's priority: all allocations of a batch are granted together",
          },
        ]),
  ]);
}
