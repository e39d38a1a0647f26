import type { GrantOutcome, Violation } from "../core/quota/counters.ts";
import { type PlannerLine, type Wanted, waiterOf } from "./line.ts";
import type { PlannerQuota } from "./ports.ts";

/** `exhausted`: others hold what the ledger's sums left, or it is kept for whoever is before the gang in the line. */
export type Reserved =
  | { readonly kind: "granted"; readonly fence: bigint }
  | { readonly kind: "exhausted"; readonly violation: Violation; readonly inLine: boolean }
  | { readonly kind: "notGranted" };

/**
 * Asks the counters for lines that the ledger's sums leave room for. Where they do not give them now, callers may hold tokens that the ledger
 * does not know yet or stand before the gang: then the planner stands in the line for it, if it is the first of the round.
 */
export async function reserve(
  quota: Pick<PlannerQuota, "counters" | "catchUp" | "notOpened" | "giveBack">,
  line: PlannerLine,
  wanted: Wanted,
): Promise<Reserved> {
  const { planned, epoch, holder, lines, priority } = wanted;
  const ask = async (waiter: string | null) => {
    const outcome = await quota.counters.grant({ epoch, holder, lines, priority, waiter });
    if (outcome.kind === "granted") line.taken(waiter);
    return outcome;
  };
  const own = waiterOf(planned);
  const mine = () => (line.waiter === own ? own : null);
  let outcome = await ask(mine());
  if (outcome.kind === "exhausted") {
    // They may not have heard of a release yet.
    await quota.catchUp(epoch);
    outcome = await ask(mine());
  }
  if (isReserved(outcome) && line.standsBehind(planned)) outcome = await ask(line.waiter);
  if (lacksTokens(outcome) && planned.kind === "admit" && (await line.stand(wanted))) outcome = await ask(mine());
  if (lacksTokens(outcome)) return { ...outcome, inLine: line.waiter === own };
  if (outcome.kind === "granted") return { kind: "granted", fence: outcome.fence };
  if (outcome.kind === "closed") quota.notOpened(epoch);
  // Held since an earlier round, with other lines, and never recorded.
  if (outcome.kind === "conflict") await quota.giveBack(epoch, lines);
  return { kind: "notGranted" };
}

type Exhausted = Extract<GrantOutcome, { kind: "exhausted" }>;

function lacksTokens(outcome: GrantOutcome): outcome is Exhausted {
  return outcome.kind === "exhausted" && outcome.violation.scope.kind === "pool";
}

function isReserved(outcome: GrantOutcome): boolean {
  return outcome.kind === "exhausted" && outcome.violation.reservedForHead > 0;
}
