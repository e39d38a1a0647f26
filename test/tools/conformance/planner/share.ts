import { borrowsAny } from "../../../../src/core/plan/usage/branch-use.ts";
import type { QuotaState } from "../../../../src/core/plan/usage/quota-state.ts";
import { shareOf, shownShare } from "../../../../src/core/plan/usage/shares.ts";
import { amountsOf, type CaseAmounts, type CaseState, leafOf, quotaStateOf } from "./world.ts";

type ShareInput = CaseState & { readonly request?: CaseAmounts };

/** The share of each queue that the expectations name, with the request added. */
export function runShare({ input }: { readonly input: ShareInput }, expected: object): object {
  const { shares } = expected as { readonly shares: readonly { readonly queue: string }[] };
  const state = quotaStateOf(input, {});
  return { shares: shares.map(({ queue }) => shownOf(state, queue, input.request ?? {})) };
}

function shownOf(state: QuotaState, queue: string, request: CaseAmounts): object {
  const branch = state.branches.of(queue) ?? leafOf(state, queue);
  const share = shareOf(state, branch, amountsOf(request));
  const shown = shownShare(share);
  const value = shown === Number.POSITIVE_INFINITY ? "inf" : shown;
  return { queue, share: value, resource: share.resource, borrowing: share.borrows };
}

/** Whether a queue borrows, and whether it borrows from a pool of the request. */
export function runBorrowingOn({ input }: { readonly input: ShareInput & { readonly queue: string } }): object {
  const state = quotaStateOf(input, {});
  const leaf = leafOf(state, input.queue);
  const borrowing = shareOf(state, leaf).borrows;
  return { borrowing, borrowingOnRequested: borrowsAny(state, leaf, amountsOf(input.request ?? {})) };
}
