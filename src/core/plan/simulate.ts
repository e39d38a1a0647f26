/**
 * Judges a job that was not submitted: could it run, now or later, and where? Users ask it before they wait for a job
 * that no cluster can ever take.
 */
import { invariant } from "../../runtime/assert.ts";
import type { Job } from "../job/job.ts";
import type { Registry } from "../kinds/registry.ts";
import { gangOf, type PlanGang } from "./plan-gang.ts";
import type { ClusterRefusal, PlannedAdmission, QuotaRefusal, Refusal } from "./plan-types.ts";
import { nominationBy } from "./preemption.ts";
import { nearestRefusal } from "./refuse.ts";
import type { HeldByCaller } from "./snapshot.ts";
import type { FleetState } from "./state/fleet-state.ts";
import { type AloneAnswers, judgeAlone } from "./state/judge-alone.ts";
import { RefusalWords } from "./state/refusal-words.ts";
import { causeOf } from "./state/run-round.ts";

/**
 * `FITS_NOW`: the next plan admits it. `WAITS`: not now, but once others have ended, or a cluster is back.
 * `NEVER`: not even if nothing else ran, unless the job, a queue or a cluster is changed.
 */
export type SimulatedVerdict = "FITS_NOW" | "WAITS" | "NEVER";

/** Whether one cluster has nodes for the gang, under the limits of its queue; the use of quotas does not count. */
export type ClusterVerdict = {
  readonly cluster: string;
  /** True: no program runs there. */
  readonly simulated: boolean;
  readonly verdict: SimulatedVerdict;
  /** Null: the gang fits now. */
  readonly refusal: ClusterRefusal | null;
};

export type Simulation = {
  readonly verdict: SimulatedVerdict;
  /** The admission that the job would get. Null unless it fits now. */
  readonly admission: PlannedAdmission | null;
  /** Why the job would not be admitted now, in the words of a refusal. Empty if it would. */
  readonly reason: string;
  readonly message: string;
  /** All clusters, by name; empty for a job without pods. */
  readonly clusters: readonly ClusterVerdict[];
  /** Every quota that is in the way: now, or for `NEVER` at any time. */
  readonly quotas: readonly QuotaRefusal[];
  /** The clusters that the message is about. */
  readonly refusals: readonly ClusterRefusal[];
};

type At = { readonly kinds: Registry; readonly nowMs: number };

/** Versions above those of all records. */
const REMOVED_VERSION = Number.MAX_SAFE_INTEGER - 1;
const SIMULATED_VERSION = Number.MAX_SAFE_INTEGER;

/**
 * Judges a job as if it were submitted now, and not suspended. The state's waiting jobs come before it, except one of
 * its name: the user asks about that one. Leaves the state as it was.
 */
export function simulate(
  state: FleetState,
  submitted: Job,
  at: At & { readonly callers: readonly HeldByCaller[] },
): Simulation {
  const gang = gangOf(asWaiting(submitted), at.kinds, { generation: 1, lastAdmission: 0 });
  const mark = state.mark();
  try {
    addInPlace(state, gang);
    const now = judgeNow(state, gang, at);
    const entry = state.parts.lines.entries.get(gang.uid);
    invariant(entry !== undefined, "the state has the gang that was added");
    return simulationOf(now, gang, judgeAlone(state.parts, entry));
  } finally {
    state.rollback(mark);
  }
}

/** The job as one that nothing holds back but quotas and clusters: not suspended, and without an earlier result. */
function asWaiting(job: Job): Job {
  const { suspend: _, cacheKey: __, ...runPolicy } = job.spec.runPolicy;
  return { ...job, spec: { ...job.spec, runPolicy }, status: { ...job.status, phase: "WAITING" }, admissions: [] };
}

/** Adds a gang to the state, in the place of the one of its name that waits. */
function addInPlace(state: FleetState, { namespace, name, ...gang }: PlanGang): void {
  const others = [...state.parts.lines.entries.values()].filter(({ gang: other }) => {
    return other.waits && other.namespace === namespace && other.name === name;
  });
  for (const { gang: other } of others) {
    state.apply({ kind: "gang", uid: other.uid, version: REMOVED_VERSION, gang: null });
  }
  const added = { ...gang, namespace, name };
  state.apply({ kind: "gang", uid: gang.uid, version: SIMULATED_VERSION, gang: added });
}

/** The decision of the next round about a gang. */
function judgeNow(
  state: FleetState,
  gang: PlanGang,
  { nowMs, callers }: { readonly nowMs: number; readonly callers: readonly HeldByCaller[] },
): PlannedAdmission | Refusal {
  let decided: PlannedAdmission | Refusal | null = null;
  state.preview(nowMs, ({ admissions, preemptions }, parts) => {
    const entry = parts.lines.entries.get(gang.uid);
    const preemption = preemptions.find(({ planned }) => planned.jobUid === gang.uid);
    const passing = preemption?.takesOver === undefined ? undefined : preemption.planned;
    const nominated = preemption && ({ kind: "preempting", nomination: nominationBy(preemption, nowMs) } as const);
    const cause = nominated ?? (entry === undefined ? null : causeOf(parts, entry, nowMs));
    const refusal = cause === null ? null : new RefusalWords(parts, { callers, admissions }).refusalOf(gang, cause);
    decided = admissions.find(({ jobUid }) => jobUid === gang.uid) ?? passing ?? refusal;
  });
  invariant(decided !== null, "a round admits, nominates or refuses every waiting gang");
  return decided;
}

function simulationOf(now: PlannedAdmission | Refusal, gang: PlanGang, alone: AloneAnswers): Simulation {
  const { refusal: ever } = alone;
  const clusters = gang.ask.service ? [] : alone.clusters.map((one) => judgeCluster(one, ever));
  if ("kind" in now) {
    return { verdict: "FITS_NOW", admission: now, reason: "", message: "", clusters, quotas: [], refusals: [] };
  }
  const isNever = ever !== null && clusters.every(({ verdict }) => verdict === "NEVER");
  const { reason, message, quotas, clusters: refusals } = isNever ? ever : now;
  return { verdict: isNever ? "NEVER" : "WAITS", admission: null, reason, message, clusters, quotas, refusals };
}

/** A cluster that refuses for one of these reasons may take the gang later, without a change of the gang. */
const WAITS_FOR = ["NoCapacity", "CapacityUnknown"];

/** A gang that its queue can never admit is not tried in any cluster. */
function judgeCluster(one: AloneAnswers["clusters"][number], ever: Refusal | null): ClusterVerdict {
  const { name: cluster, simulated, barred, refusals, fits } = one;
  const of = { cluster, simulated };
  const untried = fits || ever === null ? null : { reason: ever.reason, message: ever.message };
  const refusal = refusals.length > 0 ? nearestRefusal(refusals) : untried && { cluster, ...untried, ...NOT_TRIED };
  if (refusal !== null && !WAITS_FOR.includes(refusal.reason)) return { ...of, verdict: "NEVER", refusal };
  const now = barred ?? refusal;
  return { ...of, verdict: now === null ? "FITS_NOW" : "WAITS", refusal: now };
}

const NOT_TRIED = { flavor: null, need: 0, have: 0, blocked: null };
