import type { PlaceInLine, Plan, PlannedAdmission, PlannedGang } from "../core/plan/model/plan-types.ts";
import type { Allocation, Holder } from "../core/quota/counters.ts";
import type { PlannerQuota } from "./ports.ts";

/** The tokens that the planner requests of the counters for one planned admission. */
export type GangTokenRequest = {
  readonly planned: PlannedAdmission;
  readonly gang: PlannedGang;
  readonly epoch: number;
  readonly holder: Holder;
  readonly allocations: readonly Allocation[];
  /** The strict queue in which no gang may pass this one. Null: it is in none. */
  readonly chain: string | null;
};

/** Names one admission of a gang in the waiting lines of pools. */
export function waiterOf({ jobUid, admission }: Pick<PlannedAdmission, "jobUid" | "admission">): string {
  return `gang/${jobUid}/${admission}`;
}

/**
 * The planner's one place in the waiting lines of pools, among those of callers. It is for the first gang of the plan's
 * order that lacks nothing but tokens. So callers that request little do not starve a large gang, and gangs do not
 * starve callers that came before. The place lapses unless each round takes it again.
 */
export class WaitingPlace {
  readonly #quota: Pick<PlannerQuota, "counters" | "notOpened" | "giveBack">;
  /** The gang that has the place, as far as this process knows. */
  #waiter: string | null = null;
  #order: ReadonlyMap<string, number> = new Map();
  #takenInRound = false;

  constructor(quota: Pick<PlannerQuota, "counters" | "notOpened" | "giveBack">) {
    this.#quota = quota;
  }

  get waiter(): string | null {
    return this.#waiter;
  }

  /**
   * Begins a round, in which no gang has taken the place yet. Leaves the place if the plan has no step for its gang.
   */
  async begin({ admissions, inLine }: Pick<Plan, "admissions" | "inLine">, epoch: number): Promise<void> {
    this.#takenInRound = false;
    const order = new Map(admissions.map((planned, at) => [waiterOf(planned), at]));
    if (inLine !== null) order.set(waiterOf(inLine.planned), orderOf(inLine));
    this.#order = order;
    if (this.#waiter !== null && !order.has(this.#waiter)) await this.#leave(epoch);
  }

  /** True if the place is for a gang after this one in the plan: then it must not hold this one up. */
  isBehind(planned: PlannedAdmission): boolean {
    const place = this.#order.get(this.#waiter ?? "");
    return place !== undefined && place > (this.#order.get(waiterOf(planned)) ?? 0);
  }

  /**
   * True if a gang for which a pool lacks tokens may get the place, or may use that of a later gang. Gangs after it
   * must then not ask before that is settled.
   */
  mayServe(planned: PlannedAdmission): boolean {
    return (planned.kind === "admit" && !this.#takenInRound) || this.isBehind(planned);
  }

  /** A grant that named the waiter has used up its place. */
  used(waiter: string | null): void {
    if (waiter === this.#waiter) this.#waiter = null;
  }

  /**
   * Takes the place for a gang, unless a gang before it has taken it in this round. True if the counters would grant
   * the request now, from this place.
   */
  async take(request: GangTokenRequest): Promise<boolean> {
    const { epoch, holder, allocations } = request;
    // A nominee that holds all that it needs waits for no tokens.
    if (this.#takenInRound || allocations.length === 0) return false;
    this.#takenInRound = true;
    const { priority, createTimeMs: sinceMs } = request.gang;
    const waiter = waiterOf(request.planned);
    if (this.#waiter !== null && this.#waiter !== waiter) await this.#leave(epoch);
    // Set before the call: if the answer is lost, the counters may have the place.
    this.#waiter = waiter;
    const place = { epoch, waiter, holder, allocations, priority, sinceMs, grants: false };
    const outcome = await this.#quota.counters.stand(place);
    if (outcome.kind === "closed") this.#quota.notOpened(epoch);
    // An earlier round was granted other amounts under these tokens, and never recorded them.
    if (outcome.kind === "conflict") await this.#quota.giveBack(epoch, allocations);
    return outcome.kind === "waiting" && outcome.violation === null;
  }

  async #leave(epoch: number): Promise<void> {
    const waiter = this.#waiter;
    this.#waiter = null;
    if (waiter !== null) await this.#quota.counters.leave(epoch, waiter);
  }
}

/** Sorts the place between the admissions before it and those after it. */
function orderOf(place: PlaceInLine): number {
  return place.after - 0.5;
}
