import type { FindCapacity } from "../fit/find-capacity.ts";
import { flavorsOf } from "../fit/flavor-choices.ts";
import type { Fleet } from "../fit/fleet.ts";
import { requestsOf } from "../fit/requests.ts";
import type { Search } from "../preempt/find-victims.ts";
import type { Round } from "../preempt/round.ts";
import { unitsOf } from "../queues/ask-shape.ts";
import { noteOptions } from "../queues/class-state.ts";
import { headOf } from "../queues/order.ts";
import type { ClassOption, GangClass } from "../queues/records.ts";
import type { ClassRefusal } from "../queues/refusals.ts";
import { isWokenByCapacity } from "../requeue/candidates.ts";
import { concernsTokens } from "../usage/quota-blocks.ts";
import type { QuotaBlock } from "../usage/quota-state.ts";
import { mayPreempt } from "./ranked-choices.ts";

/** The result of a second look at a refused gang class. `mayFit`: something that kept it refused does not any more. */
export type SecondLook = "staysRefused" | "mayFit";

/** The flavors that a gang class may get, and what keeps each of them shut. */
export class ClassOptions {
  readonly #round: Round;
  readonly #fleet: Fleet;
  readonly #capacity: FindCapacity;

  constructor(round: Round, capacity: FindCapacity) {
    this.#round = round;
    this.#fleet = round.fleet;
    this.#capacity = capacity;
  }

  /**
   * Finds out whether everything that kept a gang class refused still does, or something else does now. A gang class
   * whose gang requests one flavored resource is then also set to wait for that.
   */
  lookAgain(gangClass: GangClass, search: Search): SecondLook {
    const { quota } = this.#fleet;
    if (gangClass.refusal === null || gangClass.reevaluated === "always") return "mayFit";
    if (gangClass.reevaluated === "victims" && !this.#staysWithoutVictims(gangClass, gangClass.refusal, search))
      return "mayFit";
    // The first gang that lacks only tokens is still to be found.
    if (gangClass.reevaluated === "tokens" && quota.reserved === null) return "mayFit";
    const options = this.of(gangClass);
    if (options === null) return quota.reserved === null ? this.#lookAtAll(gangClass) : "mayFit";
    for (const option of options) if (this.#lookAt(gangClass, option) === "mayFit") return "mayFit";
    return "staysRefused";
  }

  /** Finds out whether quotas and capacity that kept a gang class refused are as short as they were. */
  #lookAtAll({ requests, closedBy }: GangClass): SecondLook {
    for (const request of requests) {
      this.#capacity.closeIfFull(request);
      if (!this.#capacity.isClosed(request)) return "mayFit";
    }
    const areShort = closedBy.every(({ level, leastNeed }) => leastNeed > this.#fleet.quota.availableAt(level));
    return areShort ? "staysRefused" : "mayFit";
  }

  /**
   * True if surely nobody is preempted for a gang class, with whatever members, and nobody could when it was refused.
   */
  #staysWithoutVictims(gangClass: GangClass, { budget, spared: protection }: ClassRefusal, search: Search): boolean {
    const gang = headOf(gangClass);
    const options = this.of(gangClass);
    if (gang === undefined || options === null || budget !== undefined || protection !== undefined) return false;
    if (search === "none" || !mayPreempt(this.#fleet.quota.queues.get(gangClass.gangQueue.name), gang)) return true;
    for (const { request } of options) {
      const requested = requestsOf(request, this.#fleet.resources);
      if (!this.#round.victims.findsNobody({ gangClass, gang, request, requested })) return false;
    }
    return true;
  }

  /** The alternatives for the fewest members of a class's gang. Null: it requests no flavored resource, or several. */
  of(gangClass: GangClass): readonly ClassOption[] | null {
    if (gangClass.options !== undefined) return gangClass.options;
    const { quota, resources } = this.#fleet;
    const queue = quota.queues.get(gangClass.gangQueue.name);
    const flavors = queue === undefined ? null : flavorsOf(gangClass, queue, resources);
    const sized = gangClass.shape.fewest ?? gangClass.shape.all;
    const [need = 0] = Object.keys(unitsOf(gangClass.shape.all, resources)).map(
      (name) => unitsOf(sized, resources)[name] ?? 0,
    );
    const options = flavors?.map((flavor) => {
      const request = this.#round.requestOf(gangClass, sized, [flavor]);
      const block = gangClass.closedBy.find(({ pool }) => pool === flavor) ?? null;
      return { flavor, need, request, waits: request.waiting.has(gangClass), block };
    });
    noteOptions(gangClass, options ?? null);
    return options ?? null;
  }

  /**
   * Finds out whether quota or all clusters refuse an option of a gang class, which waits for that then. A gang class
   * that was refused by quotas alone is looked at again once they allow an option, so that clusters are reported.
   */
  #lookAt(gangClass: GangClass, option: ClassOption): SecondLook {
    const { request, block, flavor, need } = option;
    const wasStopped = gangClass.refusal?.stoppedByQuota === true;
    const isClosed = this.#capacity.isClosed(request) && isWokenByCapacity(gangClass, option);
    if (isClosed && !wasStopped) return "staysRefused";
    const { quota } = this.#fleet;
    const of = { resource: request.resource, need, priority: gangClass.priority };
    if (wasStopped && quota.admits(gangClass.account, flavor, of)) return "mayFit";
    if (isClosed) return "staysRefused";
    if (block !== null && block.leastNeed > quota.availableAt(block.level)) return "staysRefused";
    if (quota.admits(gangClass.account, flavor, of)) return this.#lookAtCapacity(gangClass, option);
    // Each round looks at such a gang class anyway.
    if (gangClass.reevaluated === "tokens") return "staysRefused";
    const blocks = quota.blocks(gangClass.account, flavor, of);
    const [found] = blocks;
    if (found === undefined || blocks.some(concernsTokens)) return "mayFit";
    this.#waitForQuota(gangClass, option, found);
    return "staysRefused";
  }

  #lookAtCapacity(gangClass: GangClass, option: ClassOption): SecondLook {
    const { request } = option;
    this.#capacity.closeIfFull(request);
    if (!this.#capacity.isClosed(request)) return "mayFit";
    if (isWokenByCapacity(gangClass, option)) return "staysRefused";
    this.#capacity.wait(gangClass, request);
    option.waits = true;
    return "staysRefused";
  }

  #waitForQuota(gangClass: GangClass, option: ClassOption, block: QuotaBlock): void {
    const { quota } = this.#fleet;
    const { quotaWaits } = this.#round.requeue;
    // A gang class that was refused by quotas alone is looked at once it has quota.
    const request = gangClass.refusal?.stoppedByQuota ? null : option.request;
    if (option.block !== null) quotaWaits.drop(gangClass, { block: option.block, quota, request });
    quotaWaits.add(gangClass, { block, quota, request });
    option.block = block;
  }
}
