/** Decides for all clusters from a state in memory, which follows the store. */

import { checkState } from "./check-state.ts";
import { FleetFollower } from "./fleet-follower.ts";
import type { FleetPlanner, FleetStore } from "./ports.ts";

/** How many admissions a round plans. The next one follows at once, and sees the gangs that came meanwhile. */
export const ADMISSIONS_MAX = 1_024;
/** How many evictions a round requests. The next one requests the others. */
const EVICTIONS_MAX = 256;
/** How many refusals a round tells. The next one tells the others. */
const REFUSALS_MAX = 1_000;
/** For so many gangs a round looks whom they may preempt if nothing has changed since the last round. */
const SEARCHES_ALONE = 50;
/** For so many at most beside changes. */
const SEARCHES_BESIDE_MAX = 25;

type FleetPlannerOptions = {
  /** True: the lease is lost, and a round that runs ends by throwing. */
  readonly isStopped: () => boolean;
  readonly monotonicMs: () => number;
  /** The most reservations that a pool has at a time. Omitted: one. */
  readonly reservationsPerPool?: number;
};

/** Makes a planner whose state is loaded by its first decision, and again for each epoch. */
export function createFleetPlanner(store: FleetStore, options: FleetPlannerOptions): FleetPlanner {
  const follower = new FleetFollower(store, options);
  let epoch: number | null = null;

  async function catchUp(plannerEpoch: number): Promise<void> {
    if (plannerEpoch !== epoch) follower.forget();
    epoch = plannerEpoch;
    if (await follower.catchUp()) await noteCauses(store, follower);
  }

  /** A round that throws may leave its marks in the planner. */
  function planNow(nowMs: number) {
    const { isStopped, reservationsPerPool = 1 } = options;
    const { planner, callers } = follower;
    const searchesMax = searchesBeside(planner.changedFacts);
    const most = { admissionsMax: ADMISSIONS_MAX, refusalsMax: REFUSALS_MAX, searchesMax };
    try {
      return planner.plan(nowMs, { ...most, isStopped, reservationsPerPool }, callers);
    } catch (error) {
      follower.forget();
      throw error;
    }
  }

  return {
    async decide({ nowMs, plannerEpoch }) {
      await catchUp(plannerEpoch);
      const startedMs = options.monotonicMs();
      const { admissions, inLine, evictions, preemptions, withdrawn, refusals, replanAtMs, more } = planNow(nowMs);
      const { planner, quotaEpoch } = follower;
      const planned = inLine === null ? admissions : [...admissions, inLine.planned];
      return {
        quotaEpoch,
        plan: { admissions, inLine },
        gangs: new Map(planned.map(({ jobUid }) => [jobUid, planner.plannedGang(jobUid)])),
        evictions: evictions.slice(0, EVICTIONS_MAX),
        preemptions: preemptions.map((one) => ({ ...one, queue: planner.plannedGang(one.planned.jobUid).queue })),
        withdrawn,
        refusals,
        replanAtMs,
        more: more || evictions.length > EVICTIONS_MAX,
        depths: planner.depths(),
        reservations: planner.reservations(),
        planMs: options.monotonicMs() - startedMs,
      };
    },
    reread: (jobUids) => follower.reread(jobUids),
    sayAgain: async (jobUids) => follower.planner.reportAgain(jobUids),
    async check() {
      const found = await checkState(store, follower);
      if (found.wrong.length > 0) follower.forget();
      return found;
    },
    rest() {
      follower.forget();
      epoch = null;
    },
  };
}

/**
 * For how many gangs a round looks whom they may preempt beside so many changed facts. The next one looks for the
 * others, and follows at once: what few changes bring is decided soon, and what is left from before has its time while
 * nothing changes, or beside many changes, whose round takes long anyway.
 */
export function searchesBeside(changedFacts: number): number {
  if (changedFacts === 0) return SEARCHES_ALONE;
  return Math.min(SEARCHES_BESIDE_MAX, changedFacts);
}

/** Notes the causes that were recorded before this planner led, so that they are not written again. */
async function noteCauses(store: FleetStore, { planner }: FleetFollower): Promise<void> {
  for (let after: string | null = ""; after !== null; ) {
    const page = await store.recordedCauses(after);
    for (const { jobUid, causeKey: key } of page.causes) planner.noteReported(jobUid, key);
    after = page.next;
  }
}
