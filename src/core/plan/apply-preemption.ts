import { invariant } from "../../runtime/assert.ts";
import { canonicalJson } from "../../runtime/json.ts";
import type { JobEvent } from "../job/event.ts";
import { isEvicted, type Job, liveAdmission } from "../job/job.ts";
import { canBeNominated, nominationOf, withoutNomination } from "../job/nomination.ts";
import type { Nomination } from "../job/preemption.ts";
import { applyEviction } from "./apply-plan.ts";
import type { PlannedPreemption, PlannedReservation, PlannedVictim } from "./preemption.ts";
import {
  PREEMPTED,
  PREEMPTING,
  preemptedWords,
  preemptingWords,
  RESERVING,
  reservingWords,
} from "./preemption-words.ts";

/** A job before and after it was nominated or is to be undone, and the events that say so. */
export type PreemptionChange = { readonly before: Job; readonly after: Job; readonly events: readonly JobEvent[] };

export type AppliedPreemption = {
  /** The nominee first. */
  readonly changes: readonly PreemptionChange[];
  /** The victims whose admissions no request was to undo before. */
  readonly evicted: readonly PlannedVictim[];
};

/**
 * Nominates a job and requests that its victims are undone, all of it or nothing. Null if it is too late: the nominee
 * waits no more, or the admission of a victim is not live, has other members, or ends anyway. A victim that is to be
 * undone already stays one, without another request.
 */
export function applyPreemption(
  jobs: ReadonlyMap<string, Job>,
  { planned, victims, reservation }: PlannedPreemption,
  nowMs: number,
): AppliedPreemption | null {
  const nominee = jobs.get(planned.jobUid);
  if (nominee === undefined || !canBeNominated(nominee)) return null;
  const by = nameOf(nominee);
  const names: string[] = [];
  const evicted: PlannedVictim[] = [];
  const changes: PreemptionChange[] = [];
  for (const victim of victims) {
    const before = jobs.get(victim.jobUid);
    if (before === undefined || !isAsPlanned(before, victim)) return null;
    names.push(nameOf(before));
    if (isEvicted(before)) continue;
    const { admission, reason: preemption } = victim;
    const message = preemptedWords(by, preemption);
    const after = applyEviction(before, { admission, reason: PREEMPTED, message, preemption });
    if (after === null) return null;
    changes.push({ before, after, events: [] });
    evicted.push(victim);
  }
  const { cluster, flavors, members, generation } = planned;
  invariant(cluster !== null, "a job without pods preempts no gang");
  const nomination: Nomination = {
    cluster,
    flavors,
    members,
    generation: generation + 1,
    victims: victims.map(({ jobUid, admission }) => ({ jobUid, admission })),
    sinceMs: nowMs,
  };
  const nominated =
    reservation === undefined
      ? nominate(nominee, nomination, { reason: PREEMPTING, message: preemptingWords(cluster, names) })
      : reserveFor(nominee, nomination, { jobs, reservation });
  return { changes: [nominated, ...changes], evicted };
}

type Said = { readonly reason: string; readonly message: string };

function nominate(before: Job, nomination: Nomination, said: Said): PreemptionChange {
  const status = { ...before.status, nomination, waiting: { ...said, sinceMs: nomination.sinceMs } };
  const event: JobEvent = { type: "Normal", ...said };
  return { before, after: { ...before, status, version: before.version + 1 }, events: [event] };
}

/**
 * Records a reservation with the gangs that it waits for: those of them whose jobs are among `jobs`. An event says so
 * if it is new or moves to another cluster.
 */
function reserveFor(
  before: Job,
  nomination: Nomination,
  { jobs, reservation }: { readonly jobs: ReadonlyMap<string, Job>; readonly reservation: PlannedReservation },
): PreemptionChange {
  const { sinceMs, keepsQuota } = reservation;
  const awaits = reservation.awaits.flatMap((one) => {
    const job = jobs.get(one.jobUid);
    return job !== undefined && liveAdmission(job)?.number === one.admission ? [{ ...one, job }] : [];
  });
  const victims = [...nomination.victims, ...awaits.map(({ jobUid, admission }) => ({ jobUid, admission }))];
  const reserved = { ...nomination, victims, reservation: { sinceMs: sinceMs ?? nomination.sinceMs, keepsQuota } };
  const names = victims.map(({ jobUid }) => nameOf(jobs.get(jobUid) ?? before));
  const startMs = Math.max(...awaits.map(({ job }) => endOf(job)));
  const message = reservingWords(nomination.cluster, names, startMs);
  const change = nominate(before, reserved, { reason: RESERVING, message });
  const known = before.status.nomination;
  const isKnown = known?.reservation !== undefined && known.cluster === nomination.cluster;
  return isKnown ? { ...change, events: [] } : change;
}

/** When a job's admission ends at the latest. Infinite: nobody knows. */
function endOf(job: Job): number {
  const { maxRuntimeMs = Number.POSITIVE_INFINITY } = job.spec.runPolicy;
  return (liveAdmission(job)?.admitTimeMs ?? 0) + maxRuntimeMs;
}

/** True if the victim's admission is live and has the members that the plan has seen. */
function isAsPlanned(job: Job, { admission, members }: PlannedVictim): boolean {
  const live = liveAdmission(job);
  return live?.number === admission && canonicalJson(live.members) === canonicalJson(members);
}

function nameOf({ namespace, name }: Job): string {
  return `${namespace}/${name}`;
}

/** Ends a nomination that the planner gives up. Null if there is none any more. */
export function applyWithdrawal(before: Job, nowMs: number): PreemptionChange | null {
  const nomination = nominationOf(before);
  if (nomination === null) return null;
  const where = `cluster ${nomination.cluster}`;
  const isReservation = nomination.reservation !== undefined;
  const what = isReservation ? `has no reservation on ${where} any more` : `is no longer nominated for ${where}`;
  const message = `it ${what}; the planner is about to look at it again`;
  const waiting = { reason: "NotEvaluated", message, sinceMs: nowMs };
  const status = { ...withoutNomination(before.status), waiting };
  const event: JobEvent = {
    type: "Normal",
    reason: isReservation ? "ReservationWithdrawn" : "PreemptionWithdrawn",
    message,
  };
  return { before, after: { ...before, status, version: before.version + 1 }, events: [event] };
}
