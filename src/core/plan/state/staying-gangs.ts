import type { PlannedAdmission } from "../plan-types.ts";
import type { ClusterState, PlacedPod } from "./cluster-state.ts";
import type { Entry } from "./gang-lines.ts";
import { mayEnd, type Runner, type Runners } from "./runners.ts";
import type { Parts } from "./state-parts.ts";
import type { WhoGivesWay } from "./who-gives-way.ts";

/** The gangs that stay as a round goes on: those that run and give way to nobody, and those that it has admitted. */
export class StayingGangs {
  readonly #lines: Parts["lines"];
  readonly #runners: Runners;
  readonly #who: WhoGivesWay;
  readonly #nowMs: number;
  /** The gangs that the round has admitted. */
  readonly #boarding = new Map<Entry, Runner>();
  /** All of them, for so many that were chosen or admitted. Null: not known yet. */
  #all: { readonly chosen: number; readonly boarding: number; readonly gangs: readonly Runner[] } | null = null;

  constructor(of: {
    readonly lines: Parts["lines"];
    readonly runners: Runners;
    readonly who: WhoGivesWay;
    readonly nowMs: number;
  }) {
    this.#lines = of.lines;
    this.#runners = of.runners;
    this.#who = of.who;
    this.#nowMs = of.nowMs;
  }

  /** How many gangs the round has admitted. */
  get boardingCount(): number {
    return this.#boarding.size;
  }

  /** All of them: the same list until others stay. */
  all(): readonly Runner[] {
    const chosen = this.#who.chosenCount;
    const boarding = this.#boarding.size;
    if (this.#all?.chosen !== chosen || this.#all.boarding !== boarding) {
      this.#all = { chosen, boarding, gangs: this.#with(this.#runners.wholeStaying(), [...this.#boarding.values()]) };
    }
    return this.#all.gangs;
  }

  /** Those whose end is known, or that may be taken back at any time. */
  ending(): readonly Runner[] {
    return this.#with(this.#runners.ending(), [...this.#boarding.values()].filter(mayEnd));
  }

  /** One of them. Null: there is no such gang. */
  of(uid: string): Runner | null {
    const entry = this.#lines.entries.get(uid);
    if (entry === undefined || this.#who.isChosen(entry)) return null;
    return this.#boarding.get(entry) ?? this.#runners.wholeStayingOf(entry);
  }

  /** True for a gang that the round has admitted: it gives way in a later round at the earliest. */
  isBoarding(entry: Entry): boolean {
    return this.#boarding.has(entry);
  }

  /** Notes an admission of the round, whose pods the cluster's room has placed after a mark. */
  noteBoarding(entry: Entry, planned: PlannedAdmission, { room }: ClusterState, mark: number): void {
    const { admission: number, cluster, members, flavors, flavorLabels } = planned;
    const live = { state: "live" as const, admitTimeMs: this.#nowMs, tokensReleasedMs: null, goneMs: null };
    const runner = this.#runners.make(entry, { ...live, number, cluster, members, flavors, flavorLabels });
    const pods = room.placedAfter(mark).flatMap(({ slot, fit, pods: count }) => {
      return Array.from({ length: count }, (): PlacedPod => ({ node: room.nodeAt(slot)?.name ?? "", fit }));
    });
    this.#boarding.set(entry, runner);
    this.#runners.notePods(runner, pods);
  }

  #with(running: readonly Runner[], boarding: readonly Runner[]): readonly Runner[] {
    const staying = this.#who.chosenCount === 0 ? running : running.filter(({ entry }) => !this.#who.isChosen(entry));
    return [...staying, ...boarding];
  }
}
