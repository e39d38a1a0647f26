/** What survives from round to round about which gangs are due to be evaluated again. */
import type { ClusterState } from "../capacity/cluster-state.ts";
import type { GangRecord, Request, ReservedCapacity, RunningAdmission } from "../queues/records.ts";
import type { QuotaState } from "../usage/quota-state.ts";
import { CapacityWaits } from "./capacity-waits.ts";
import { QuotaWaits } from "./quota-waits.ts";
import { RequeueCandidates } from "./requeue-candidates.ts";
import { SearchQueue } from "./search-queue.ts";

/** What the last round has left to the next one. */
type LastRound = {
  /** What it kept for gangs with reservations. It leaves out what time alone may change. */
  readonly kept: WeakMap<GangRecord, ReservedCapacity>;
  /** Gangs in the order in which they were expected to end when that was asked last. */
  ends: readonly RunningAdmission[];
  /** True: it gave gangs something, or there was none. */
  gave: boolean;
  /** When gangs may be preempted that are protected until then. Infinite: none is in the way. */
  recheckAtMs: number;
};

export class Requeue {
  /** The gang classes that wait for quota. */
  readonly quotaWaits = new QuotaWaits();
  /** The refused requests that wait for more pods of a class to fit. */
  readonly capacityWaits = new CapacityWaits();
  /** The refused requests for which there may be capacity again. */
  readonly candidates = new RequeueCandidates<Request>();
  /** The gang classes that are due to look for victims. */
  readonly searchQueue = new SearchQueue();
  readonly lastRound: LastRound = {
    kept: new WeakMap(),
    ends: [],
    gave: true,
    recheckAtMs: Number.POSITIVE_INFINITY,
  };

  /** Brings the capacity of a cluster up to date, and opens the requests for which it may have capacity again. */
  syncCapacity(cluster: ClusterState, quota: QuotaState, keepsSame = false): void {
    for (const request of this.capacityWaits.sync(cluster, keepsSame)) {
      // This or another cluster has opened it.
      if (request.isCandidate && request.closedFor === -1) continue;
      request.closedFor = -1;
      if (isAwaited(request)) this.candidates.add(request);
      this.quotaWaits.noteOpen(request, quota);
    }
  }

  /** Records when gangs may be preempted that are protected until then. */
  recheckAt(atMs: number): void {
    this.lastRound.recheckAtMs = Math.min(this.lastRound.recheckAtMs, atMs);
  }

  /** Forgets what depends on the records of clusters. */
  forgetClusters(): void {
    this.candidates.clear();
    this.capacityWaits.clear();
  }
}

/** True if some gang class waits for capacity for a request, now or once it has the quota. */
function isAwaited({ waiting, lists }: Request): boolean {
  if (waiting.size > 0) return true;
  for (const list of lists) if (list.waiting.size > 0) return true;
  return false;
}
