import type { MessageInitShape } from "@bufbuild/protobuf";
import type { FieldNote } from "../../core/job/sent.ts";
import type { AllocateAnswer, AllocateLine, AllocateRequest } from "../../core/quota/calls.ts";
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
import { toTimestamp } from "../job/convert-job.ts";
import type { CallContext } from "../rpc/call.ts";
import { mergeNotes } from "../rpc/check-request.ts";
import { invalidFields } from "../rpc/rpc-error.ts";
import { spanMs, toProtoViolation } from "./convert-quota.ts";
import { allocateError } from "./quota-errors.ts";
import type { TokenOperations } from "./quota-ports.ts";
import { duplicateTokens } from "./token-lines.ts";

type SentLine = AllocateResourceRequest | WaitForResourceRequest;
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
  const answer = await resources.allocate(oneLine(request, context));
  if (answer.kind === "granted") return grantedResponse(answer);
  if (!("violation" in answer)) throw allocateError(answer, () => "");
  return { status: STATUS[answer.kind], violated: toProtoViolation(answer.violation) };
}

/** Takes tokens of several pools together, or takes none. */
export async function batchAllocate(
  resources: TokenOperations,
  request: BatchAllocateResourcesRequest,
  context: CallContext,
): Promise<MessageInitShape<typeof BatchAllocateResourcesResponseSchema>> {
  const notes = mergeNotes(context.violations, [...duplicateTokens(request.lines), ...lineNotes(request)]);
  if (notes.length > 0) throw invalidFields(notes);
  const lines = request.lines.map((line) => toLine(line.lease === undefined ? { ...line, ...leaseOf(request) } : line));
  const { holder, priority } = request;
  const answer = await resources.allocate({ lines, holder: holder || context.identity, priority });
  if (answer.kind === "granted") {
    const granted = answer.lines.map(({ pool, token, expireTimeMs }) => {
      return { resourceNamespace: pool, allocationToken: token, expireTime: toTimestamp(expireTimeMs) };
    });
    return { status: AllocationStatus.GRANTED, fence: answer.fence, held: answer.held, lines: granted };
  }
  if (!("violation" in answer)) {
    throw allocateError(answer, (line) => (request.lines[line]?.lease === undefined ? "" : `lines[${line}].`));
  }
  return { status: STATUS[answer.kind], violated: toProtoViolation(answer.violation), line: answer.line };
}

export function grantedResponse({
  fence,
  held,
  lines,
}: GrantedAnswer): MessageInitShape<typeof AllocateResourceResponseSchema> {
  const expireTime = toTimestamp(lines[0]?.expireTimeMs ?? null);
  return { status: AllocationStatus.GRANTED, fence, held, expireTime };
}

export function oneLine(request: SentLine, { identity }: Pick<CallContext, "identity">): AllocateRequest {
  return { lines: [toLine(request)], holder: request.holder || identity, priority: request.priority };
}

function toLine(sent: Omit<SentLine, "$typeName">): AllocateLine {
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

/** Refuses lines with a holder or a priority other than the batch's. */
function lineNotes({ lines, holder, priority }: BatchAllocateResourcesRequest): readonly FieldNote[] {
  return lines.flatMap((line, at) => [
    ...(line.holder === "" || line.holder === holder
      ? []
      : [
          {
            field: `lines[${at}].holder`,
            message: "must be empty or equal to the batch's holder: all lines of a batch have one holder",
          },
        ]),
    ...(line.priority === 0 || line.priority === priority
      ? []
      : [
          {
            field: `lines[${at}].priority`,
            message: "must be 0 or equal to the batch's priority: all lines of a batch are granted together",
          },
        ]),
  ]);
}
