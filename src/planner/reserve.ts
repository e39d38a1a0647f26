import type { GrantOutcome, Violation } from "../core/quota/counters.ts";
import type { PlannerQuota } from "./ports.ts";
import { type GangTokenRequest, type WaitingPlace, waiterOf } from "./waiting-place.ts";

export type ReserveOutcome =
  | { readonly kind: "granted"; readonly fence: bigint }
  /** Others hold the tokens that the ledger's sums left, or are before the gang in the waiting line. */
  | { readonly kind: "exhausted"; readonly violation: Violation; readonly inLine: boolean }
  | { readonly kind: "notGranted" };

/**
 * Requests tokens that the ledger's sums leave room for. The counters may refuse them still: callers may hold tokens
 * that the ledger does not know yet, or may be before the gang in the waiting line. Then the planner takes its place in
 * it for this gang, if the gang is the first of the round.
 */
export async function reserve(
  quota: Pick<PlannerQuota, "counters" | "catchUp" | "notOpened" | "giveBack">,
  place: WaitingPlace,
  request: GangTokenRequest,
): Promise<ReserveOutcome> {
  const { planned, epoch, holder, allocations, priority } = request;
  const grantAs = async (waiter: string | null) => {
    const outcome = await quota.counters.grant({ epoch, holder, allocations, priority, waiter });
    if (outcome.kind === "granted") place.used(waiter);
    return outcome;
  };
  const own = waiterOf(planned);
  const ownPlace = () => (place.waiter === own ? own : null);
  let outcome = await grantAs(ownPlace());
  if (outcome.kind === "exhausted") {
    // The counters may not know a release yet.
    await quota.catchUp(epoch);
    outcome = await grantAs(ownPlace());
  }
  if (isReserved(outcome) && place.isBehind(planned)) outcome = await grantAs(place.waiter);
  if (lacksTokens(outcome) && planned.kind === "admit" && (await place.take(request))) {
    outcome = await grantAs(ownPlace());
  }
  if (lacksTokens(outcome)) return { ...outcome, inLine: place.waiter === own };
  if (outcome.kind === "granted") return { kind: "granted", fence: outcome.fence };
  if (outcome.kind === "closed") quota.notOpened(epoch);
  // An earlier round was granted other amounts under these tokens, and never recorded them.
  if (outcome.kind === "conflict") await quota.giveBack(epoch, allocations);
  return { kind: "notGranted" };
}

type Exhausted = Extract<GrantOutcome, { kind: "exhausted" }>;

function lacksTokens(outcome: GrantOutcome): outcome is Exhausted {
  return outcome.kind === "exhausted" && outcome.violation.scope.kind === "pool";
}

function isReserved(outcome: GrantOutcome): boolean {
  return outcome.kind === "exhausted" && outcome.violation.reservedForHead > 0;
}
