import type { MessageInitShape } from "@bufbuild/protobuf";
import type { ReleaseAnswer, RenewAnswer, TokenRelease } from "../../core/quota/calls.ts";
import {
  type AllocationLine,
  type BatchReleaseResourcesRequest,
  ReleaseOutcome,
  type ReleaseResourceRequest,
  type RenewAllocationsRequest,
  RenewResult_Outcome as Renewal,
  type RenewResultSchema,
} from "../../gen/gangway/v1/resource_manager_pb.ts";
import { invariant } from "../../runtime/assert.ts";
import type { CallContext } from "../rpc/call.ts";
import { mergeNotes } from "../rpc/check-request.ts";
import { invalidFields } from "../rpc/rpc-error.ts";
import { toTimestamp } from "../rpc/timestamp.ts";
import { spanMs } from "./convert-quota.ts";
import { duplicateTokens, tokenOf } from "./duplicate-tokens.ts";
import { leaseTooLong, otherHolder, otherScope, unknownPool } from "./quota-errors.ts";
import type { TokenOperations } from "./quota-ports.ts";

const RELEASE: Readonly<Record<ReleaseAnswer["kind"], ReleaseOutcome>> = {
  released: ReleaseOutcome.RELEASED,
  notHeld: ReleaseOutcome.NOT_HELD,
  otherHolder: ReleaseOutcome.OTHER_HOLDER,
  otherScope: ReleaseOutcome.OTHER_SCOPE,
  unknownPool: ReleaseOutcome.UNKNOWN_POOL,
};

const RENEWAL = {
  lost: Renewal.LOST,
  otherHolder: Renewal.OTHER_HOLDER,
  unknownPool: Renewal.UNKNOWN_POOL,
} as const;

export async function release(resources: TokenOperations, request: ReleaseResourceRequest, context: CallContext) {
  const release = toRelease(request, context);
  const [answer] = await resources.release([release]);
  invariant(answer !== undefined, "every token of a release is answered");
  if (answer.kind === "otherHolder") throw otherHolder(release);
  if (answer.kind === "otherScope") throw otherScope(release, answer);
  if (answer.kind === "unknownPool") throw unknownPool(release.pool);
  return { outcome: RELEASE[answer.kind] };
}

export async function batchRelease(
  resources: TokenOperations,
  request: BatchReleaseResourcesRequest,
  context: CallContext,
) {
  refuse(request, context);
  const outcomes = await eachAllowed(
    request,
    context,
    { denied: ReleaseOutcome.DENIED, unseen: ReleaseOutcome.UNKNOWN_POOL },
    async (lines) => {
      const answers = await resources.release(lines.map((sent) => toRelease(sent, context)));
      return answers.map(({ kind }) => RELEASE[kind]);
    },
  );
  return { outcomes };
}

/** Answers the lines that the caller may have, together; and each of the others by itself. */
async function eachAllowed<Line extends object, Answer>(
  request: { readonly lines: readonly Line[] },
  { access }: CallContext,
  refused: { readonly denied: Answer; readonly unseen: Answer },
  answerAll: (lines: readonly Line[]) => Promise<readonly Answer[]>,
): Promise<Answer[]> {
  const verdicts = request.lines.map((line) => access.judgeItem(line, request));
  const allowed = request.lines.filter((_, at) => verdicts[at] === "allowed");
  const answers = (allowed.length === 0 ? [] : await answerAll(allowed)).values();
  return verdicts.map((verdict) => {
    if (verdict !== "allowed") return refused[verdict];
    const { value } = answers.next();
    invariant(value !== undefined, "every line is answered");
    return value;
  });
}

export async function renew(resources: TokenOperations, request: RenewAllocationsRequest, context: CallContext) {
  refuse(request, context);
  const { holder, lease } = request;
  const refused = { denied: { outcome: Renewal.DENIED }, unseen: { outcome: Renewal.UNKNOWN_POOL } };
  const results = await eachAllowed<AllocationLine, MessageInitShape<typeof RenewResultSchema>>(
    request,
    context,
    refused,
    async (lines) => {
      const answers = await resources.renew({
        holder: holder || context.identity.subject,
        tokens: lines.map(tokenOf),
        leaseMs: lease === undefined ? null : spanMs(lease),
      });
      if ("kind" in answers) throw leaseTooLong("lease", answers.maxLeaseMs);
      return answers.map(toResult);
    },
  );
  return { results };
}

function toRelease(request: ReleaseResourceRequest, { identity }: CallContext): TokenRelease {
  const { holder, project, namespace } = request;
  return {
    ...tokenOf(request),
    holder: holder || identity.subject,
    project: project || null,
    namespace: namespace || null,
  };
}

function toResult(answer: RenewAnswer): MessageInitShape<typeof RenewResultSchema> {
  if (answer.kind !== "renewed") return { outcome: RENEWAL[answer.kind] };
  return { outcome: Renewal.RENEWED, expireTime: toTimestamp(answer.expireTimeMs), fence: answer.fence };
}

/** Throws everything that is wrong with a batch in one error. */
function refuse({ lines }: { readonly lines: Parameters<typeof duplicateTokens>[0] }, { violations }: CallContext) {
  const notes = mergeNotes(violations, duplicateTokens(lines));
  if (notes.length > 0) throw invalidFields(notes);
}
