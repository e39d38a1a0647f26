/** Decides for all clusters from a state in memory, which follows the store. */
import type { SaidRefusal } from "../core/plan/kept-refusal.ts";
import type { PlannedGang } from "../core/plan/plan-types.ts";
import type { FleetParts } from "../core/plan/state/fleet-parts.ts";
import type { Entry } from "../core/plan/state/gang-lines.ts";
import { keyedCause } from "../core/plan/state/kept-cause.ts";
import { RefusalWords } from "../core/plan/state/refusal-words.ts";
import type { FleetPlan } from "../core/plan/state/run-round.ts";
import { invariant } from "../runtime/assert.ts";
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

  /** A round that throws may leave its marks in the state. */
  function decideNow(nowMs: number, refusals: SaidRefusal[]): FleetPlan {
    const { isStopped, reservationsPerPool = 1 } = options;
    const { state } = follower;
    const searchesMax = searchesBeside(state.changedFacts);
    const most = { admissionsMax: ADMISSIONS_MAX, refusalsMax: REFUSALS_MAX, searchesMax };
    const bounds = { ...most, isStopped, reservationsPerPool };
    try {
      return state.round(nowMs, bounds, ({ refused, admissions }, parts) => {
        const words = new RefusalWords(parts, { callers: follower.callers, admissions });
        for (const { gang, cause } of refused) {
          refusals.push({ refusal: words.refusalOf(gang, cause), ...keyedCause(cause) });
        }
      });
    } catch (error) {
      follower.forget();
      throw error;
    }
  }

  return {
    async decide({ nowMs, plannerEpoch }) {
      await catchUp(plannerEpoch);
      const startedMs = options.monotonicMs();
      const refusals: SaidRefusal[] = [];
      const { admissions, inLine, evictions, preemptions, withdrawn, replanAtMs, more } = decideNow(nowMs, refusals);
      const { state, quotaEpoch } = follower;
      const planned = inLine === null ? admissions : [...admissions, inLine.planned];
      return {
        quotaEpoch,
        plan: { admissions, inLine },
        gangs: new Map(planned.map(({ jobUid }) => [jobUid, plannedGang(state.parts, jobUid)])),
        evictions: evictions.slice(0, EVICTIONS_MAX),
        preemptions: preemptions.map((one) => ({ ...one, queue: entryOf(state.parts, one.planned.jobUid).gang.queue })),
        withdrawn,
        refusals,
        replanAtMs,
        more: more || evictions.length > EVICTIONS_MAX,
        depths: depthsOf(state.parts),
        reservations: reservationsIn(state.parts),
        planMs: options.monotonicMs() - startedMs,
      };
    },
    reread: (jobUids) => follower.reread(jobUids),
    sayAgain: async (jobUids) => follower.state.sayAgain(jobUids),
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

function entryOf({ lines }: Pick<FleetParts, "lines">, jobUid: string): Entry {
  const entry = lines.entries.get(jobUid);
  invariant(entry !== undefined, "a plan names gangs of its state");
  return entry;
}

function plannedGang(parts: FleetParts, jobUid: string): PlannedGang {
  const { lines, quota } = parts;
  const entry = entryOf({ lines }, jobUid);
  const { uid, generation, namespace, name, queue, priority, createTimeMs, waitsSinceMs, traceParent } = entry.gang;
  const isChained = entry.lane !== null && quota.queues.get(queue)?.strategy === "STRICT_FIFO";
  const facts = { uid, generation, namespace, name, queue, priority, createTimeMs, waitsSinceMs, isChained };
  const holds = parts.holdsOf(jobUid);
  return {
    ...facts,
    ...(traceParent === undefined ? {} : { traceParent }),
    ...(holds === null ? {} : { holds }),
  };
}

/** How many gangs wait in each queue, queues without any included. */
function depthsOf({ lines, quota }: FleetParts): ReadonlyMap<string, number> {
  const depths = new Map([...quota.queues.keys()].map((name) => [name, 0]));
  for (const { name, waiting } of lines.lines.values()) if (waiting > 0) depths.set(name, waiting);
  return depths;
}

/** How many gangs have a reservation. */
function reservationsIn({ lines }: Pick<FleetParts, "lines">): number {
  return [...lines.nominees].filter(({ gang }) => gang.nomination?.reservation !== undefined).length;
}

/** Notes the causes that were recorded before this planner led, so that they are not written again. */
async function noteCauses(store: FleetStore, { state }: FleetFollower): Promise<void> {
  for (let after: string | null = ""; after !== null; ) {
    const page = await store.recordedCauses(after);
    for (const { jobUid, causeKey: key } of page.causes) state.noteSaid(jobUid, key);
    after = page.next;
  }
}
