import { unitsOf } from "./ask-shape.ts";
import { concernsTokens, flavorsOf } from "./choices.ts";
import type { FindRoom } from "./find-room.ts";
import type { FindVictims } from "./find-victims.ts";
import { headOf, type Lane } from "./gang-lines.ts";
import { hearsOfRoom } from "./lane-turns.ts";
import type { QuotaBlock } from "./quota-state.ts";
import { mayPreempt } from "./ranked-choices.ts";
import type { LaneRefusal } from "./refused.ts";
import { type Request, wantsOf } from "./requests.ts";
import type { Parts } from "./state-parts.ts";

/** A flavor for the fewest members of a lane's gang, and what keeps it shut: room, quota, or both. */
export type LaneOption = {
  readonly flavor: string;
  readonly need: number;
  readonly request: Request;
  /** True: the lane waits for room for the request. */
  waits: boolean;
  /** The level of a quota for which the lane waits. Null: none. */
  block: QuotaBlock | null;
};

/** The flavors that a lane may get, and what keeps each of them shut. */
export class LaneOptions {
  readonly #parts: Parts;
  readonly #rooms: FindRoom;
  readonly #victims: FindVictims;

  constructor(parts: Parts, rooms: FindRoom, victims: FindVictims) {
    this.#parts = parts;
    this.#rooms = rooms;
    this.#victims = victims;
  }

  /**
   * True if everything that kept a lane refused still does, or something else does now. A lane whose gang requests one
   * flavored resource is then also set to wait for that.
   */
  staysRefused(lane: Lane): boolean {
    const { quota } = this.#parts;
    if (lane.refusal === null || lane.restless === "always") return false;
    if (lane.restless === "victims" && !this.#staysHopeless(lane, lane.refusal)) return false;
    // The first gang that lacks only tokens is still to be found.
    if (lane.restless === "tokens" && quota.reserved === null) return false;
    const options = this.of(lane);
    if (options === null) return quota.reserved === null && this.#allShut(lane);
    for (const option of options) if (!this.#isShut(lane, option)) return false;
    return true;
  }

  /** True if quotas and room that kept a lane refused are as short as they were. */
  #allShut({ requests, closedBy }: Lane): boolean {
    if (requests.some((request) => !this.#rooms.closes(request))) return false;
    return closedBy.every(({ level, leastNeed }) => leastNeed > this.#parts.quota.roomAt(level));
  }

  /** True if surely nobody gives way for a lane, with whatever members, and nobody could when it was refused. */
  #staysHopeless(lane: Lane, { budget, spared }: LaneRefusal): boolean {
    const entry = headOf(lane);
    const options = this.of(lane);
    if (entry === undefined || options === null || budget !== undefined || spared !== undefined) return false;
    if (this.#victims.isPaused || !mayPreempt(this.#parts.quota.queues.get(lane.line.name), entry)) return true;
    for (const { request } of options) {
      const wants = wantsOf(request, this.#parts.resources);
      if (!this.#victims.isHopeless({ lane, entry, request, wants })) return false;
    }
    return true;
  }

  /** The alternatives for the fewest members of a lane's gang. Null: it requests no flavored resource, or several. */
  of(lane: Lane): readonly LaneOption[] | null {
    if (lane.options !== undefined) return lane.options;
    const { quota, resources } = this.#parts;
    const queue = quota.queues.get(lane.line.name);
    const flavors = queue === undefined ? null : flavorsOf(lane, queue, resources);
    const sized = lane.shape.fewest ?? lane.shape.all;
    const [need = 0] = Object.keys(unitsOf(lane.shape.all, resources)).map(
      (name) => unitsOf(sized, resources)[name] ?? 0,
    );
    const options = flavors?.map((flavor) => {
      const request = this.#parts.requestOf(lane, sized, [flavor]);
      const block = lane.closedBy.find(({ pool }) => pool === flavor) ?? null;
      return { flavor, need, request, waits: request.waiting.has(lane), block };
    });
    lane.options = options ?? null;
    return lane.options;
  }

  /**
   * True if quota or all clusters refuse an option of a lane, which waits for that then. A lane that was told of quotas
   * alone is looked at again once they allow an option, so that it is told of clusters.
   */
  #isShut(lane: Lane, option: LaneOption): boolean {
    const { request, block, flavor, need } = option;
    const wasStopped = lane.refusal?.stoppedByQuota === true;
    const isClosed = this.#rooms.isClosed(request) && hearsOfRoom(lane, option);
    if (isClosed && !wasStopped) return true;
    const { quota } = this.#parts;
    const of = { resource: request.resource, need, priority: lane.priority };
    if (wasStopped && quota.admits(lane.account, flavor, of)) return false;
    if (isClosed) return true;
    if (block !== null && block.leastNeed > quota.roomAt(block.level)) return true;
    if (quota.admits(lane.account, flavor, of)) return this.#isShutByRoom(lane, option);
    // Each round looks at such a lane anyway.
    if (lane.restless === "tokens") return true;
    const blocks = quota.blocks(lane.account, flavor, of);
    const [found] = blocks;
    if (found === undefined || blocks.some(concernsTokens)) return false;
    this.#waitForQuota(lane, option, found);
    return true;
  }

  #isShutByRoom(lane: Lane, option: LaneOption): boolean {
    if (!this.#rooms.closes(option.request)) return false;
    if (hearsOfRoom(lane, option)) return true;
    option.waits = this.#rooms.wait(lane, option.request);
    return option.waits;
  }

  #waitForQuota(lane: Lane, option: LaneOption, block: QuotaBlock): void {
    const { quota, waits } = this.#parts;
    // A lane that was told of quotas alone is looked at once it has quota.
    const request = lane.refusal?.stoppedByQuota ? null : option.request;
    if (option.block !== null) waits.drop(lane, { block: option.block, quota, request });
    waits.add(lane, { block, quota, request });
    option.block = block;
  }
}
