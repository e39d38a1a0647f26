import type { PlaceInLine, Plan, PlannedAdmission } from "../core/plan/plan-types.ts";
import type { AllocationLine, Holder } from "../core/quota/counters.ts";
import type { PlannerQuota } from "./ports.ts";

/** What is asked of the counters for a gang. */
export type Wanted = {
  readonly planned: PlannedAdmission;
  readonly epoch: number;
  readonly holder: Holder;
  readonly lines: readonly AllocationLine[];
  /** As of its job. */
  readonly priority: number;
  readonly sinceMs: number;
};

/** Names one boarding of a gang in the lines of pools. */
export function waiterOf({ jobUid, admission }: Pick<PlannedAdmission, "jobUid" | "admission">): string {
  return `gang/${jobUid}/${admission}`;
}

/**
 * The planner's one place in the lines of pools, beside those of callers: for the first gang of its order that lacks nothing but tokens. So
 * callers that ask for little do not starve a large gang, and gangs do not starve callers that came before. It lapses unless each round repeats it.
 */
export class PlannerLine {
  readonly #quota: Pick<PlannerQuota, "counters" | "notOpened" | "giveBack">;
  /** Who it stands for, as far as is known here. */
  #waiter: string | null = null;
  #order: ReadonlyMap<string, number> = new Map();
  #stood = false;

  constructor(quota: Pick<PlannerQuota, "counters" | "notOpened" | "giveBack">) {
    this.#quota = quota;
  }

  get waiter(): string | null {
    return this.#waiter;
  }

  /** Begins a round: nobody has the place in it yet. Leaves it where whom it was for does not come in the plan. */
  async begin({ admissions, inLine }: Pick<Plan, "admissions" | "inLine">, epoch: number): Promise<void> {
    this.#stood = false;
    const order = new Map(admissions.map((planned, at) => [waiterOf(planned), at]));
    if (inLine !== null) order.set(waiterOf(inLine.planned), orderOf(inLine));
    this.#order = order;
    if (this.#waiter !== null && !order.has(this.#waiter)) await this.#leave(epoch);
  }

  /** True if the place is for a gang that comes after that one in the plan: it is not to be in its way. */
  standsBehind(planned: PlannedAdmission): boolean {
    const mine = this.#order.get(this.#waiter ?? "");
    return mine !== undefined && mine > (this.#order.get(waiterOf(planned)) ?? 0);
  }

  /** A grant that named the waiter has taken its place. */
  taken(waiter: string | null): void {
    if (waiter === this.#waiter) this.#waiter = null;
  }

  /**
   * Stands for a gang, unless a gang before it has the place in this round. True if the counters would grant what it asks now, where it
   * stands.
   */
  async stand(wanted: Wanted): Promise<boolean> {
    if (this.#stood) return false;
    this.#stood = true;
    const { epoch, holder, lines, priority, sinceMs } = wanted;
    const waiter = waiterOf(wanted.planned);
    if (this.#waiter !== null && this.#waiter !== waiter) await this.#leave(epoch);
    // Known before it is asked for: a place whose answer is lost may be there.
    this.#waiter = waiter;
    const outcome = await this.#quota.counters.stand({
      epoch,
      waiter,
      holder,
      lines,
      priority,
      sinceMs,
      grants: false,
    });
    if (outcome.kind === "closed") this.#quota.notOpened(epoch);
    // Held since an earlier round, with other lines, and never recorded.
    if (outcome.kind === "conflict") await this.#quota.giveBack(epoch, lines);
    return outcome.kind === "waiting" && outcome.violation === null;
  }

  async #leave(epoch: number): Promise<void> {
    const waiter = this.#waiter;
    this.#waiter = null;
    if (waiter !== null) await this.#quota.counters.leave(epoch, waiter);
  }
}

/** Between the admissions that come before it and those that come after. */
function orderOf(place: PlaceInLine): number {
  return place.after - 0.5;
}
