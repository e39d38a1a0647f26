import type { ClusterState } from "../capacity/cluster-state.ts";
import type { PlacedPod } from "../capacity/unseen-pods.ts";
import type { Fleet } from "../fit/fleet.ts";
import type { PlannedAdmission } from "../model/plan-types.ts";
import type { GangRecord, RunningAdmission } from "../queues/records.ts";
import type { PreemptableGangs } from "./preemptable-gangs.ts";
import { mayEnd, type RunningAdmissions } from "./running-admissions.ts";

/**
 * The gangs that stay as a round goes on: those that run and are preempted to nobody, and those that it has admitted.
 */
export class StayingGangs {
  readonly #queues: Fleet["queues"];
  readonly #runningAdmissions: RunningAdmissions;
  readonly #who: PreemptableGangs;
  readonly #nowMs: number;
  /** The gangs that the round has admitted. */
  readonly #admitted = new Map<GangRecord, RunningAdmission>();
  /** All of them, for so many that were chosen or admitted. Null: not known yet. */
  #all: { readonly chosen: number; readonly admitted: number; readonly gangs: readonly RunningAdmission[] } | null =
    null;

  constructor(of: {
    readonly queues: Fleet["queues"];
    readonly runningAdmissions: RunningAdmissions;
    readonly who: PreemptableGangs;
    readonly nowMs: number;
  }) {
    this.#queues = of.queues;
    this.#runningAdmissions = of.runningAdmissions;
    this.#who = of.who;
    this.#nowMs = of.nowMs;
  }

  /** How many gangs the round has admitted. */
  get admittedCount(): number {
    return this.#admitted.size;
  }

  /** All of them: the same list until others stay. */
  all(): readonly RunningAdmission[] {
    const chosen = this.#who.chosenCount;
    const admitted = this.#admitted.size;
    if (this.#all?.chosen !== chosen || this.#all.admitted !== admitted) {
      this.#all = {
        chosen,
        admitted,
        gangs: this.#with(this.#runningAdmissions.wholeStaying(), [...this.#admitted.values()]),
      };
    }
    return this.#all.gangs;
  }

  /** Those whose end is known, or that may be taken back at any time. */
  ending(): readonly RunningAdmission[] {
    return this.#with(this.#runningAdmissions.ending(), [...this.#admitted.values()].filter(mayEnd));
  }

  /** One of them. Null: there is no such gang. */
  of(uid: string): RunningAdmission | null {
    const gang = this.#queues.gangs.get(uid);
    if (gang === undefined || this.#who.isChosen(gang)) return null;
    return this.#admitted.get(gang) ?? this.#runningAdmissions.wholeStayingOf(gang);
  }

  /** True for a gang that the round has admitted: it is preempted in a later round at the earliest. */
  wasAdmitted(gang: GangRecord): boolean {
    return this.#admitted.has(gang);
  }

  /** Records an admission of the round, whose pods the cluster's capacity has placed after a mark. */
  noteAdmitted(gang: GangRecord, planned: PlannedAdmission, { free }: ClusterState, mark: number): void {
    const { admission: number, cluster, members, flavors, flavorLabels } = planned;
    const live = { state: "live" as const, admitTimeMs: this.#nowMs, tokensReleasedMs: null, goneMs: null };
    const running = this.#runningAdmissions.make(gang, { ...live, number, cluster, members, flavors, flavorLabels });
    const pods = free.placedAfter(mark).flatMap(({ slot, fit, pods: count }) => {
      return Array.from({ length: count }, (): PlacedPod => ({ node: free.nodeAt(slot)?.name ?? "", fit }));
    });
    this.#admitted.set(gang, running);
    this.#runningAdmissions.notePods(running, pods);
  }

  #with(running: readonly RunningAdmission[], admitted: readonly RunningAdmission[]): readonly RunningAdmission[] {
    const staying = this.#who.chosenCount === 0 ? running : running.filter(({ gang }) => !this.#who.isChosen(gang));
    return [...staying, ...admitted];
  }
}
