import type { Plan, PlannedAdmission, PlannedGang } from "../model/plan-types.ts";

/**
 * One step of carrying out a plan: to admit or grow some gangs, or to take the place in the waiting line for one. Steps
 * follow the plan's order.
 */
type PlanStep =
  | { readonly step: "admit"; readonly planned: readonly PlannedAdmission[] }
  | { readonly step: "takePlace"; readonly planned: PlannedAdmission };

/**
 * The steps of a plan: batches of admissions, and the gang of the waiting line between them. A batch has at most as
 * many as `batchMax` says when it is due.
 */
export function* planSteps(
  { admissions, inLine }: Pick<Plan, "admissions" | "inLine">,
  batchMax: () => number,
): Generator<PlanStep> {
  const after = inLine?.after ?? admissions.length;
  yield* batches(admissions.slice(0, after), batchMax);
  if (inLine !== null) yield { step: "takePlace", planned: inLine.planned };
  yield* batches(admissions.slice(after), batchMax);
}

function* batches(admissions: readonly PlannedAdmission[], batchMax: () => number): Generator<PlanStep> {
  let from = 0;
  while (from < admissions.length) {
    const to = from + batchMax();
    yield { step: "admit", planned: admissions.slice(from, to) };
    from = to;
  }
}

/** The planned admissions of a round that were not recorded, and their effects on later ones of the plan. */
export class MissedAdmissions {
  readonly #strictQueues = new Set<string>();

  add(gang: PlannedGang): void {
    const queue = chainOf(gang);
    if (queue !== null) this.#strictQueues.add(queue);
  }

  /** True if a gang is behind one of them in a strict queue. */
  holdsUp(gang: PlannedGang): boolean {
    return this.#strictQueues.has(chainOf(gang) ?? "");
  }
}

/** The strict queue in which no gang may overtake this one. Null: its queue is not strict, or the gang grows. */
export function chainOf({ isChained, queue }: PlannedGang): string | null {
  return isChained ? queue : null;
}
