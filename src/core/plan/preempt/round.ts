import type { Flavors } from "../fit/flavors.ts";
import type { Fleet } from "../fit/fleet.ts";
import { Reserved } from "../fit/reserved.ts";
import type { RoundBounds } from "../model/round-bounds.ts";
import type { SizedAsk } from "../queues/ask-shape.ts";
import type { GangClass, Request } from "../queues/records.ts";
import type { Requeue } from "../requeue/requeue.ts";
import type { SearchesLeft } from "../requeue/search-queue.ts";
import type { QuotaRise } from "../usage/quota-levels.ts";
import { FindVictims, type Running } from "./find-victims.ts";

export type RoundOf = {
  readonly fleet: Fleet;
  readonly requeue: Requeue;
  readonly running: Running;
  readonly nowMs: number;
  readonly number: number;
  readonly bounds: RoundBounds;
};

/** One round: everything that is made with it and thrown away after it. */
export class Round {
  readonly fleet: Fleet;
  readonly requeue: Requeue;
  readonly nowMs: number;
  readonly number: number;
  readonly bounds: RoundBounds;
  readonly reserved: Reserved;
  readonly victims: FindVictims;
  readonly searchesLeft: SearchesLeft;
  /** So many reservations a pool has at most. */
  readonly reservationsPerPool: number;
  /** How much more each level would use if the nominees had what they lack until their victims have left. */
  pendingUse: QuotaRise = [];

  constructor(of: RoundOf) {
    const { fleet, requeue, running, nowMs, number, bounds } = of;
    this.fleet = fleet;
    this.requeue = requeue;
    this.nowMs = nowMs;
    this.number = number;
    this.bounds = bounds;
    this.reserved = new Reserved(fleet.quota);
    const { searchesMax = Number.POSITIVE_INFINITY, reservationsPerPool = 1 } = bounds;
    this.reservationsPerPool = reservationsPerPool;
    this.searchesLeft = { searches: searchesMax, wakes: searchesMax };
    this.victims = new FindVictims({ fleet, reserved: this.reserved, running, nowMs });
  }

  /** A request as it is now, beside the reservations that are charged. */
  requestOf(gangClass: GangClass, sized: SizedAsk, flavors: Flavors): Request {
    return this.fleet.requestOf(gangClass, sized, flavors, this.reserved.excluded);
  }
}
