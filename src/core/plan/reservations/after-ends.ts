import type { FitClass } from "../capacity/fit-classes.ts";
import type { FitGroup } from "../capacity/place-all.ts";
import { fitGang } from "../domains/place-gang.ts";
import type { AskingGang, FindVictims } from "../preempt/find-victims.ts";
import type { Round } from "../preempt/round.ts";
import type { CapacityTry, RunningAdmission } from "../queues/records.ts";
import { borrowingLevel } from "../usage/branch-use.ts";

/**
 * The use of the pools that a gang asks for, and the capacity of one cluster, as if gangs had ended: those that leave,
 * those that are about to be preempted, and more that come and go one by one. `close` brings the state back.
 */
export class AfterEnds {
  readonly #fleet: Round["fleet"];
  readonly #victims: FindVictims;
  readonly #asking: AskingGang;
  readonly #tried: CapacityTry;
  readonly #marks: { readonly quota: number; readonly free: number };

  constructor({ fleet, victims }: Round, asking: AskingGang, tried: CapacityTry) {
    this.#fleet = fleet;
    this.#victims = victims;
    this.#asking = asking;
    this.#tried = tried;
    this.#marks = { quota: fleet.quota.mark, free: tried.cluster.free.mark };
    victims.dischargeAll([]);
    victims.free(tried.cluster, []);
  }

  /** Lets a gang end too. */
  end(gang: RunningAdmission): void {
    this.#move(gang, -1);
  }

  /** Lets a gang that has ended run again. */
  resume(gang: RunningAdmission): void {
    this.#move(gang, 1);
  }

  /**
   * How many of these gangs, in their order, must have ended at least: until then the nodes together have too little of
   * a resource. Infinite: more than the first `most`.
   */
  leastEnds(gangs: readonly RunningAdmission[], most: number): number {
    const { cluster, groups } = this.#tried;
    const largest = largestOf(groups);
    if (largest === undefined) return 0;
    const { fit, count } = largest;
    const column = fit.columns[0] as number;
    let missing = amountOf(fit, column) * count - leftFor(cluster, fit);
    for (let at = 0; at < most; at++) {
      if (missing <= 0) return at;
      missing -= this.#freedBy(gangs[at] as RunningAdmission, fit);
    }
    return missing <= 0 ? most : Number.POSITIVE_INFINITY;
  }

  /** How much of a class's scarcest resource the end of a gang leaves on nodes that may take pods of the class. */
  #freedBy(gang: RunningAdmission, { rules, columns }: FitClass): number {
    const { cluster } = this.#tried;
    if (gang.admission.cluster !== cluster.name) return 0;
    let freed = 0;
    for (const pod of this.#victims.podsOf(cluster, gang)) {
      const slot = cluster.free.slotOf(pod.node);
      const isOpen = slot !== undefined && cluster.free.allowedNow(rules, slot);
      if (isOpen) freed += amountOf(pod.fit, columns[0] as number);
    }
    return freed;
  }

  /** True if quotas allow the request, and the cluster has capacity for it. */
  fits(): boolean {
    return this.isAllowed() && fitGang(this.#tried.cluster.free, this.#tried);
  }

  isAllowed(): boolean {
    return this.#victims.shortPools(this.#asking).size === 0;
  }

  /** True if the gang's queue has the quota, so that it borrows nothing. */
  isWithinQuota(): boolean {
    const { quota } = this.#fleet;
    const { gangClass, requested } = this.#asking;
    const leaf = quota.branches.leaf(gangClass.gangQueue.name);
    return leaf === null || borrowingLevel(quota, leaf, requested) === 0;
  }

  close(): void {
    this.#fleet.quota.undo(this.#marks.quota);
    this.#tried.cluster.free.undo(this.#marks.free);
  }

  #move(gang: RunningAdmission, times: 1 | -1): void {
    const { account, uses, admission } = gang;
    const { cluster } = this.#tried;
    const { requested } = this.#asking;
    for (const [pool, amount] of uses) {
      if (requested.has(pool)) this.#fleet.quota.charge(account, pool, times * amount);
    }
    if (admission.cluster !== cluster.name) return;
    for (const { node, fit } of this.#victims.podsOf(cluster, gang)) cluster.free.shift(node, fit, times);
  }
}

/** The pods that together request most of their scarcest resource. Undefined: none requests any. */
function largestOf(groups: readonly FitGroup[]): FitGroup | undefined {
  const demand = ({ fit, count }: FitGroup) => (fit.amounts[0] ?? 0) * count;
  const [first] = groups.filter((one) => demand(one) > 0).sort((a, b) => demand(b) - demand(a));
  return first;
}

/** How much of a class's scarcest resource is left on the nodes that may take its pods, all together. */
function leftFor({ free }: Pick<CapacityTry["cluster"], "free">, { rules, columns }: FitClass): number {
  let left = 0;
  for (let slot = 0; slot < free.slotCount; slot++) {
    if (free.allowedNow(rules, slot)) left += Math.max(0, free.freeAt(columns[0] as number, slot));
  }
  return left;
}

/** How much of a column a pod requests. */
function amountOf({ columns, amounts }: FitClass, column: number): number {
  return amounts[columns.indexOf(column)] ?? 0;
}
