import type { Plan, PlannedAdmission } from "./plan-types.ts";
import type { PlanSnapshot } from "./snapshot.ts";

/** One step of carrying out a plan: to admit or grow a gang, or to take the place in the waiting line for it. */
type PlanStep = { readonly planned: PlannedAdmission; readonly step: "admit" | "takePlace" };

/** The steps of a plan in its order: the admissions, and the gang of the waiting line at its place among them. */
export function planSteps({ admissions, inLine }: Plan): readonly PlanStep[] {
  const steps = admissions.map((planned): PlanStep => ({ planned, step: "admit" }));
  return inLine === null ? steps : steps.toSpliced(inLine.after, 0, { planned: inLine.planned, step: "takePlace" });
}

/** The planned admissions of a round that were not recorded, and their effects on later ones of the plan. */
export class MissedAdmissions {
  readonly #strictQueueOf: (jobUid: string) => string | null;
  readonly #strictQueues = new Set<string>();
  readonly #byCluster = new Map<string | null, number>();

  constructor(snapshot: PlanSnapshot) {
    this.#strictQueueOf = strictQueues(snapshot);
  }

  add(planned: PlannedAdmission): void {
    this.#byCluster.set(planned.cluster, (this.#byCluster.get(planned.cluster) ?? 0) + 1);
    const queue = this.#strictQueueOf(planned.jobUid);
    if (queue !== null) this.#strictQueues.add(queue);
  }

  /** True if a gang is behind one of them in a strict queue. */
  holdsUp(planned: PlannedAdmission): boolean {
    return this.#strictQueues.has(this.#strictQueueOf(planned.jobUid) ?? "");
  }

  /** The admission with the counter that its cluster has now: the plan expected each missed one to raise it. */
  renumber(planned: PlannedAdmission): PlannedAdmission {
    const fewer = this.#byCluster.get(planned.cluster) ?? 0;
    return { ...planned, admissionCounter: planned.admissionCounter - fewer };
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
