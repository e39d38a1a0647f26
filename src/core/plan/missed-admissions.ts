import type { Plan, PlannedAdmission } from "./plan-types.ts";
import type { PlanSnapshot } from "./snapshot.ts";

/**
 * One step of carrying out a plan: to admit or grow some gangs, or to take the place in the waiting line for one. Steps
 * follow the plan's order.
 */
type PlanStep =
  | { readonly step: "admit"; readonly planned: readonly PlannedAdmission[] }
  | { readonly step: "takePlace"; readonly planned: PlannedAdmission };

/** The steps of a plan: batches of at most `batchMax` admissions, and the gang of the waiting line between them. */
export function planSteps({ admissions, inLine }: Plan, batchMax: number): readonly PlanStep[] {
  if (inLine === null) return batches(admissions, batchMax);
  const { after, planned } = inLine;
  return [
    ...batches(admissions.slice(0, after), batchMax),
    { step: "takePlace", planned },
    ...batches(admissions.slice(after), batchMax),
  ];
}

function batches(admissions: readonly PlannedAdmission[], max: number): readonly PlanStep[] {
  const count = Math.ceil(admissions.length / max);
  return Array.from({ length: count }, (_, at) => ({
    step: "admit",
    planned: admissions.slice(at * max, (at + 1) * max),
  }));
}

/** The planned admissions of a round that were not recorded, and their effects on later ones of the plan. */
export class MissedAdmissions {
  readonly #strictQueueOf: (jobUid: string) => string | null;
  readonly #strictQueues = new Set<string>();

  constructor(snapshot: PlanSnapshot) {
    this.#strictQueueOf = strictQueues(snapshot);
  }

  add(planned: PlannedAdmission): void {
    const queue = this.chainOf(planned);
    if (queue !== null) this.#strictQueues.add(queue);
  }

  /** The strict queue in which no gang may pass this one. Null: its queue is not strict, or the gang grows. */
  chainOf({ jobUid }: PlannedAdmission): string | null {
    return this.#strictQueueOf(jobUid);
  }

  /** True if a gang is behind one of them in a strict queue. */
  holdsUp(planned: PlannedAdmission): boolean {
    return this.#strictQueues.has(this.chainOf(planned) ?? "");
  }
}

/** Maps the uid of a waiting job to its queue; null if that queue is not strict. */
function strictQueues(snapshot: PlanSnapshot): (jobUid: string) => string | null {
  const strict = new Set(
    snapshot.queues.filter((queue) => queue.strategy === "STRICT_FIFO").map((queue) => queue.name),
  );
  const queues = new Map(snapshot.waiting.map(({ uid, queue }) => [uid, queue]));
  return (jobUid) => {
    const queue = queues.get(jobUid);
    return queue !== undefined && strict.has(queue) ? queue : null;
  };
}
