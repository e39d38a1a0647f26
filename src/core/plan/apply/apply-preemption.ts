import { canonicalJson } from "../../../runtime/json.ts";
import { append, maxOf } from "../../../runtime/lists.ts";
import type { JobEvent } from "../../job/event.ts";
import { isEvicted, isSuspended, type Job, liveAdmission, shrinksTo } from "../../job/job.ts";
import { canBeNominated, nominationOf, withoutNomination } from "../../job/nomination.ts";
import type { Nomination } from "../../job/preemption.ts";
import { memberCount } from "../../job/roles.ts";
import { isSetAside } from "../../job/set-aside.ts";
import type { Shrink } from "../../job/status.ts";
import {
  nominationBy,
  type PlannedPreemption,
  type PlannedReservation,
  type PlannedVictim,
} from "../model/preemption.ts";
import {
  givesUpMessage,
  overtakenMessage,
  PREEMPTED,
  PREEMPTING,
  preemptedMessage,
  preemptingMessage,
  RESERVING,
  reservingMessage,
  SHRINKS,
  takingOverMessage,
  victimMessage,
} from "../model/preemption-messages.ts";
import { applyEviction } from "./apply-plan.ts";

/** A job before and after it was nominated or is to be undone, and the events that say so. */
export type PreemptionChange = { readonly before: Job; readonly after: Job; readonly events: readonly JobEvent[] };

export type AppliedPreemption = {
  /** The nominee first. */
  readonly changes: readonly PreemptionChange[];
  /** The victims whose admissions no request was to undo before. */
  readonly evicted: readonly PlannedVictim[];
};

/**
 * Nominates a job and requests that its victims are undone, or give up members, all of it or nothing. Null if it is
 * too late: the nominee waits no more, or the admission of a victim is not live, has other members, or ends anyway. A
 * victim that is to be undone already stays one, without another request.
 */
export function applyPreemption(
  jobs: ReadonlyMap<string, Job>,
  preemption: PlannedPreemption,
  nowMs: number,
): AppliedPreemption | null {
  const { planned, victims } = preemption;
  const nominee = jobs.get(planned.jobUid);
  if (nominee === undefined || !canBeNominated(nominee)) return null;
  const by = nameOf(nominee);
  const names: string[] = [];
  const evicted: PlannedVictim[] = [];
  const changes: PreemptionChange[] = [];
  for (const victim of victims) {
    const before = jobs.get(victim.jobUid);
    if (before === undefined || !isAsPlanned(before, victim)) return null;
    names.push(victimMessage(nameOf(before), victim.members, victim.keeps));
    if (isEvicted(before)) continue;
    const change = applyToVictim(before, victim, { by, nowMs });
    if (change === null) return null;
    changes.push(change);
    append(evicted, victim.keeps === undefined ? [victim] : []);
  }
  const overtaken = overtakenNominees(preemption, jobs).flatMap(({ job, treeDigest }) => {
    const change = withdraw(job, overtakenMessage(by), nowMs);
    return change === null ? [] : [{ ...change, after: notePreemptedIn(change.after, treeDigest) }];
  });
  return { changes: [changeNominee(nominee, preemption, { jobs, names, nowMs }), ...overtaken, ...changes], evicted };
}

/** The nominees that are none any more, since another gang takes their places. */
function overtakenNominees(
  { takesOver = [] }: PlannedPreemption,
  jobs: ReadonlyMap<string, Job>,
): readonly { readonly job: Job; readonly treeDigest: string | undefined }[] {
  return takesOver.flatMap(({ jobUid, victims, treeDigest }) => {
    const job = victims === undefined ? undefined : jobs.get(jobUid);
    return job === undefined ? [] : [{ job, treeDigest }];
  });
}

function changeNominee(
  nominee: Job,
  preemption: PlannedPreemption,
  of: { readonly jobs: ReadonlyMap<string, Job>; readonly names: readonly string[]; readonly nowMs: number },
): PreemptionChange {
  const { reservation, takesOver } = preemption;
  const overtaken = overtakenNominees(preemption, of.jobs).map(({ job }) => nameOf(job));
  if (takesOver !== undefined && overtaken.length === 0)
    return nominateToOvertake(nominee, { ...preemption, takesOver }, of);
  if (reservation === undefined) {
    const left = (takesOver ?? []).flatMap(({ victims = [] }) =>
      victims.flatMap((one) => of.jobs.get(one.jobUid) ?? []),
    );
    const victims = [...new Set([...of.names, ...left.map(nameOf)])];
    return nominateFor(nominee, nominationBy(preemption, of.nowMs), { victims, passed: overtaken });
  }
  return reserveFor(nominee, { ...preemption, reservation: stillAwaited(reservation, of.jobs) }, of);
}

/** Requests that a victim is undone, or gives up members. Null if it is too late. */
function applyToVictim(
  before: Job,
  { admission, reason, keeps, treeDigest }: PlannedVictim,
  { by, nowMs }: { readonly by: string; readonly nowMs: number },
): PreemptionChange | null {
  if (keeps !== undefined) return applyShrink(before, { admission, keeps }, { nowMs, why: givesUpMessage(by, reason) });
  const message = preemptedMessage(by, reason);
  const after = applyEviction(before, { admission, reason: PREEMPTED, message, preemption: reason });
  return after === null ? null : { before, after: notePreemptedIn(after, treeDigest), events: [] };
}

/** Records the digest of the tree in which a gang is preempted, or loses its place as a nominee. */
function notePreemptedIn(job: Job, treeDigest: string | undefined): Job {
  return treeDigest === undefined ? job : { ...job, status: { ...job.status, preemptedIn: treeDigest } };
}

/** Requests that an elastic gang gives up members. Null if it is too late. */
function applyShrink(
  before: Job,
  shrink: Shrink,
  { nowMs, why }: { readonly nowMs: number; readonly why: string },
): PreemptionChange | null {
  const live = liveAdmission(before);
  const ends = before.cancel !== null || before.deleteTimeMs !== null || isSuspended(before) || isSetAside(before);
  if (live === null || ends || shrinksTo(before) !== null) return null;
  const count = memberCount(live.members) - memberCount(shrink.keeps);
  const message = `Admission ${live.number} gives up ${count} member(s) ${why}; it keeps ${memberCount(shrink.keeps)}.`;
  // Pods of the members that it gives up may be created until shortly after, as after a change of their number.
  const status = { ...before.status, shrink, resizedMs: nowMs };
  const event: JobEvent = { type: "Normal", reason: SHRINKS, message };
  return { before, after: { ...before, status, version: before.version + 1 }, events: [event] };
}

type WaitMessage = { readonly reason: string; readonly message: string };

function nominate(before: Job, nomination: Nomination, reported: WaitMessage): PreemptionChange {
  const status = { ...before.status, nomination, waiting: { ...reported, sinceMs: nomination.sinceMs } };
  const event: JobEvent = { type: "Normal", ...reported };
  return { before, after: { ...before, status, version: before.version + 1 }, events: [event] };
}

/** Nominates a job for which those of these names are preempted, in the place of nominees of these names. */
function nominateFor(
  before: Job,
  nomination: Nomination,
  { victims, passed: overtaken }: { readonly victims: readonly string[]; readonly passed: readonly string[] },
): PreemptionChange {
  const message = preemptingMessage(nomination.cluster, victims, overtaken);
  return nominate(before, nomination, { reason: PREEMPTING, message });
}

/** Nominates a job that overtakes reservations, or nominees which stay nominees. */
function nominateToOvertake(
  before: Job,
  preemption: PlannedPreemption & Required<Pick<PlannedPreemption, "takesOver">>,
  { jobs, nowMs }: { readonly jobs: ReadonlyMap<string, Job>; readonly nowMs: number },
): PreemptionChange {
  const nomination = nominationBy(preemption, nowMs);
  const names = preemption.takesOver.map(({ jobUid }) => holderMessage(jobs.get(jobUid) ?? before));
  return nominate(before, nomination, { reason: PREEMPTING, message: takingOverMessage(nomination.cluster, names) });
}

function holderMessage(job: Job): string {
  return nominationOf(job)?.reservation === undefined ? nameOf(job) : `the reservation of ${nameOf(job)}`;
}

/** A reservation that awaits only those gangs whose jobs are among `jobs` and run as planned. */
function stillAwaited(reservation: PlannedReservation, jobs: ReadonlyMap<string, Job>): PlannedReservation {
  const runs = ({ jobUid, admission }: PlannedReservation["awaits"][number]) => {
    const job = jobs.get(jobUid);
    return job !== undefined && liveAdmission(job)?.number === admission;
  };
  return { ...reservation, awaits: reservation.awaits.filter(runs) };
}

/** Records a reservation. An event says so if it is new or moves to another cluster. */
function reserveFor(
  before: Job,
  preemption: PlannedPreemption & { readonly reservation: PlannedReservation },
  { jobs, nowMs }: { readonly jobs: ReadonlyMap<string, Job>; readonly nowMs: number },
): PreemptionChange {
  const nomination = nominationBy(preemption, nowMs);
  const jobOf = ({ jobUid }: { readonly jobUid: string }) => jobs.get(jobUid) ?? before;
  const names = nomination.victims.map((one) => nameOf(jobOf(one)));
  const startMs = maxOf(preemption.reservation.awaits.map((one) => endOf(jobOf(one))));
  const message = reservingMessage(nomination.cluster, names, startMs);
  const change = nominate(before, nomination, { reason: RESERVING, message });
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
  return withdraw(before, "the planner is about to look at it again", nowMs);
}

function withdraw(before: Job, why: string, nowMs: number): PreemptionChange | null {
  const nomination = nominationOf(before);
  if (nomination === null) return null;
  const where = `cluster ${nomination.cluster}`;
  const isReservation = nomination.reservation !== undefined;
  const what = isReservation ? `has no reservation on ${where} any more` : `is no longer nominated for ${where}`;
  const message = `it ${what}; ${why}`;
  const waiting = { reason: "NotEvaluated", message, sinceMs: nowMs };
  const status = { ...withoutNomination(before.status), waiting };
  const event: JobEvent = {
    type: "Normal",
    reason: isReservation ? "ReservationWithdrawn" : "PreemptionWithdrawn",
    message,
  };
  return { before, after: { ...before, status, version: before.version + 1 }, events: [event] };
}
