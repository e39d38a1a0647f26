import type { BatchedOutcome, Violation } from "../core/quota/counters.ts";
import type { PlannerQuota } from "./ports.ts";
import { type GangTokenRequest, type WaitingPlace, waiterOf } from "./waiting-place.ts";

export type ReserveOutcome =
  | { readonly kind: "granted"; readonly fence: bigint }
  /** Others hold the tokens that the ledger's sums left, or are before the gang in the waiting line. */
  | { readonly kind: "exhausted"; readonly violation: Violation; readonly inLine: boolean }
  /** An earlier round was granted other amounts under these tokens, and never recorded them. Give them back. */
  | { readonly kind: "conflict" }
  | { readonly kind: "notGranted" };

type ReserveQuota = Pick<PlannerQuota, "counters" | "notOpened">;

/**
 * Requests tokens that the ledger's sums leave room for, of several gangs in their order. The counters may refuse some
 * of them still: callers may hold tokens that the ledger does not know yet, or may be before the gang in the waiting
 * line. Then the planner takes its place in it for the first of these gangs. In a strict queue no gang gets tokens
 * after one that did not; those have no outcome.
 */
export async function reserveAll(
  quota: ReserveQuota,
  place: WaitingPlace,
  of: { readonly epoch: number; readonly requests: readonly GangTokenRequest[] },
): Promise<ReadonlyMap<GangTokenRequest, ReserveOutcome>> {
  const outcomes = new Map<GangTokenRequest, ReserveOutcome>();
  let left = of.requests;
  while (left.length > 0) {
    const answers = await askTogether(quota, place, { epoch: of.epoch, requests: left });
    const ended = new Set<string | null>();
    for (const [request, answer] of answers) {
      outcomes.set(request, outcomeOf(answer, place.waiter === waiterOf(request.planned)));
      if (answer.kind !== "granted" && request.chain !== null) ended.add(request.chain);
    }
    left = left.filter((request) => !answers.has(request) && !ended.has(request.chain));
  }
  return outcomes;
}

/**
 * Returns the answers up to the first gang that the planner's place in the waiting line may serve. Those behind it ask
 * again, once it has its answer.
 */
async function askTogether(
  quota: ReserveQuota,
  place: WaitingPlace,
  { epoch, requests }: { readonly epoch: number; readonly requests: readonly GangTokenRequest[] },
): Promise<ReadonlyMap<GangTokenRequest, BatchedOutcome>> {
  const asked = requests.map((request) => askFor(request, place));
  const outcomes = await quota.counters.grantAll(epoch, asked);
  if (outcomes.some(({ kind }) => kind === "closed")) quota.notOpened(epoch);
  const answers = new Map<GangTokenRequest, BatchedOutcome>();
  for (const [at, request] of requests.entries()) {
    const [ask, outcome] = [asked[at], outcomes[at]];
    if (ask === undefined || outcome === undefined) break;
    if (outcome.kind === "granted") place.used(ask.waiter);
    const stops = ask.stops && lacksTokens(outcome);
    answers.set(request, stops ? await reserveByPlace(quota, place, request, outcome) : outcome);
    if (stops) break;
  }
  return answers;
}

function askFor({ planned, gang, holder, allocations, chain }: GangTokenRequest, place: WaitingPlace) {
  const own = waiterOf(planned);
  const waiter = place.waiter === own ? own : null;
  return { holder, allocations, priority: gang.priority, waiter, chain, stops: place.mayServe(planned) };
}

/** Requests tokens that a pool has just refused, by the planner's place in the waiting line. */
async function reserveByPlace(
  { counters }: ReserveQuota,
  place: WaitingPlace,
  request: GangTokenRequest,
  refused: BatchedOutcome,
): Promise<BatchedOutcome> {
  const { planned, epoch, holder, allocations } = request;
  const { priority } = request.gang;
  const grantAs = async (waiter: string | null) => {
    const outcome = await counters.grant({ epoch, holder, allocations, priority, waiter });
    if (outcome.kind === "granted") place.used(waiter);
    return outcome;
  };
  let outcome = refused;
  if (isReserved(outcome) && place.isBehind(planned)) outcome = await grantAs(place.waiter);
  if (lacksTokens(outcome) && planned.kind === "admit" && (await place.take(request))) {
    outcome = await grantAs(place.waiter);
  }
  return outcome;
}

function outcomeOf(answer: BatchedOutcome, inLine: boolean): ReserveOutcome {
  if (answer.kind === "granted") return { kind: "granted", fence: answer.fence };
  if (answer.kind === "conflict") return { kind: "conflict" };
  return lacksTokens(answer) ? { kind: "exhausted", violation: answer.violation, inLine } : { kind: "notGranted" };
}

type Exhausted = Extract<BatchedOutcome, { kind: "exhausted" }>;

function lacksTokens(outcome: BatchedOutcome): outcome is Exhausted {
  return outcome.kind === "exhausted" && outcome.violation.scope.kind === "pool";
}

function isReserved(outcome: BatchedOutcome): boolean {
  return outcome.kind === "exhausted" && outcome.violation.reservedForHead > 0;
}
