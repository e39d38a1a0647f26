/**
 * Judges a job that was not submitted: could it run, now or later, and where? Users ask it before they wait for a job
 * that no cluster can ever take.
 */

import { invariant } from "../../runtime/assert.ts";
import { maxOf } from "../../runtime/lists.ts";
import { isMoving, type Job } from "../job/job.ts";
import type { Registry } from "../kinds/registry.ts";
import { type AloneAnswers, judgeAlone } from "./explain/judge-alone.ts";
import { RefusalMessages } from "./explain/refusal-messages.ts";
import { nearestRefusal } from "./explain/refuse.ts";
import type { FleetState } from "./fleet-state.ts";
import { type HashedAsk, hashedAsk } from "./model/ask.ts";
import { askingGang, gangVersion, type PlanGang } from "./model/plan-gang.ts";
import type { PlannedAdmission, Refusal } from "./model/plan-types.ts";
import { nominationBy } from "./model/preemption.ts";
import type { ClusterVerdict, Simulation } from "./model/simulation.ts";
import type { HeldByCaller } from "./model/snapshot.ts";
import { reasonOf } from "./round/reasons.ts";

export type SimulateAt = {
  readonly kinds: Registry;
  readonly nowMs: number;
  /** The callers that hold tokens. */
  readonly callers: readonly HeldByCaller[];
  /** Gangs that wait before the job. Omitted: those that the state knows. */
  readonly waiting?: readonly PlanGang[];
};

/** Versions above those of all records. */
const WAITING_VERSION = Number.MAX_SAFE_INTEGER - 2;
const REMOVED_VERSION = Number.MAX_SAFE_INTEGER - 1;
export const SIMULATED_VERSION = Number.MAX_SAFE_INTEGER;

/**
 * Judges a job as if it were submitted now, and not suspended. The state's waiting jobs come before it, except one of
 * its name: the user asks about that one. A job that is to leave its cluster has the tokens that it has. Leaves the
 * state as it was.
 */
export function simulate(state: FleetState, submitted: Job, at: SimulateAt): Simulation {
  const gang = simulatedGang(submitted, hashedAsk(submitted, at.kinds));
  const amounts = isMoving(submitted) ? state.parts.holdsOf(submitted.uid) : null;
  const mark = state.mark();
  try {
    for (const one of at.waiting ?? []) addWaiting(state, one);
    addInPlace(state, gang);
    if (amounts !== null) {
      const holds = { admission: gang.lastAdmission + 1, amounts };
      state.apply({ kind: "holds", uid: gang.uid, version: SIMULATED_VERSION, holds });
    }
    const now = judgeNow(state, gang, at);
    const queued = state.parts.queues.gangs.get(gang.uid);
    invariant(queued !== undefined, "the state has the gang that was added");
    return simulationOf(now, gang, judgeAlone(state.parts, queued));
  } finally {
    state.rollback(mark);
  }
}

/** A gang that is to leave its cluster goes to none in which it has left something. */
function simulatedGang(job: Job, asked: HashedAsk): PlanGang {
  const gang = waitingGang(job, asked);
  if (!isMoving(job)) return gang;
  const left = askingGang(job, asked, { generation: 1, lastAdmission: 0 }).admissions;
  const admissions = left.map((one) => ({ ...one, state: "undone" as const, tokensReleasedMs: one.admitTimeMs }));
  return {
    ...gang,
    admissions,
    lastAdmission: maxOf(
      left.map(({ number }) => number),
      0,
    ),
  };
}

/** The gang of a job that was not submitted, as if nothing but quotas and clusters held it back. */
export function waitingGang(job: Job, asked: HashedAsk): PlanGang {
  return askingGang(asWaiting(job), asked, { generation: 1, lastAdmission: 0 });
}

/** The job as one that nothing holds back but quotas and clusters: not suspended, and without an earlier result. */
function asWaiting(job: Job): Job {
  const { suspend: _, cacheKey: __, ...runPolicy } = job.spec.runPolicy;
  return { ...job, spec: { ...job.spec, runPolicy }, status: { ...job.status, phase: "WAITING" }, admissions: [] };
}

/** Adds a waiting gang to the state, unless the state knows it as it was later: then it was admitted meanwhile. */
function addWaiting(state: FleetState, gang: PlanGang): void {
  const known = state.parts.queues.gangs.get(gang.uid)?.facts;
  if (known !== undefined && gangVersion(known) > gangVersion(gang)) return;
  state.apply({ kind: "gang", uid: gang.uid, version: WAITING_VERSION, gang });
}

/** Adds a gang to the state, in the place of the one of its name that waits. */
function addInPlace(state: FleetState, { namespace, name, ...gang }: PlanGang): void {
  const others = [...state.parts.queues.gangs.values()].filter(({ facts: other }) => {
    return other.waits && other.namespace === namespace && other.name === name;
  });
  for (const { facts: other } of others) {
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
  state.preview(nowMs, ({ admissions, preemptions }, { fleet, pendingUse }) => {
    const queued = fleet.queues.gangs.get(gang.uid);
    const preemption = preemptions.find(({ planned }) => planned.jobUid === gang.uid);
    const nomination = preemption && nominationBy(preemption, nowMs);
    const admitsNext = preemption?.takesOver !== undefined && nomination?.victims.length === 0;
    const overtaking = admitsNext ? preemption.planned : undefined;
    const nominated = nomination && ({ kind: "preempting", nomination } as const);
    const cause = nominated ?? (queued === undefined ? null : reasonOf(fleet, queued, nowMs));
    const messages = new RefusalMessages(fleet, { callers, admissions, pendingUse });
    const refusal = cause === null ? null : messages.refusalOf(gang, cause);
    decided = admissions.find(({ jobUid }) => jobUid === gang.uid) ?? overtaking ?? refusal;
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
const WAITS_FOR = ["NoCapacity", "DomainFull", "CapacityUnknown"];

/** A gang that its queue can never admit is not tried in any cluster. */
export function judgeCluster(one: AloneAnswers["clusters"][number], ever: Refusal | null): ClusterVerdict {
  const { name: cluster, simulated, exclusion, refusals, fits } = one;
  const of = { cluster, simulated };
  const untried = fits || ever === null ? null : { reason: ever.reason, message: ever.message };
  const refusal = refusals.length > 0 ? nearestRefusal(refusals) : untried && { cluster, ...untried, ...NOT_TRIED };
  if (refusal !== null && !WAITS_FOR.includes(refusal.reason)) return { ...of, verdict: "NEVER", refusal };
  const now = exclusion ?? refusal;
  return { ...of, verdict: now === null ? "FITS_NOW" : "WAITS", refusal: now };
}

const NOT_TRIED = { flavor: null, need: 0, have: 0, blocked: null };
