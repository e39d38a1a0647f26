/**
 * Keeps a time that a faulty clock has recorded from holding a job longer than its rule allows. Decision time never
 * goes back. So a recorded time lies in the future only if a clock was wrong before: that of an older version, or one
 * that an operator has set back.
 */

import type { Job } from "../job/job.ts";
import { AFTER_PREEMPTION_MS_MAX } from "../job/preemption.ts";
import type { Admission, JobStatus } from "../job/status.ts";
import { RESTART_BACKOFF_MS_MAX } from "./count-failures.ts";
import { CALL_BACKOFF_MS_MAX } from "./plugins/plugin-job.ts";
import { AFTER_START_TIMEOUT_MS_MAX } from "./undo/admission-backoff.ts";

/** Decision times of two processes differ by less. */
const TOLERANCE_MS = 1_000;

/**
 * The job with times that a later decision can rely on. A moment in the future becomes now, and a wait ends after the
 * longest wait of its kind at the latest. The next record keeps that, so each counts from when it is first seen.
 * Returns the job itself if no time changes.
 */
export function boundTimes(job: Job, nowMs: number): Job {
  const moment = (atMs: number) => (atMs > nowMs + TOLERANCE_MS ? nowMs : atMs);
  const wait = (untilMs: number, longestMs: number) =>
    untilMs > nowMs + longestMs + TOLERANCE_MS ? nowMs + longestMs : untilMs;
  const bounds: Bounds = { moment, wait };
  const status = boundStatus(job.status, bounds);
  const admissions = eachChanged(job.admissions, (admission) => boundAdmission(admission, bounds));
  return status === job.status && admissions === job.admissions ? job : { ...job, status, admissions };
}

/** True if a recorded time lies in the future: a clock was wrong before, or this one is behind now. */
export function hasFutureTimes(job: Job, nowMs: number): boolean {
  return boundTimes(job, nowMs) !== job;
}

type Bounds = {
  /** A time that something happened at. */
  readonly moment: (atMs: number) => number;
  /** A time until which something waits. */
  readonly wait: (untilMs: number, longestMs: number) => number;
};

function boundAdmission(admission: Admission, { moment }: Bounds): Admission {
  const { admitTimeMs, belowMinSinceMs } = admission;
  return changed(admission, {
    admitTimeMs: moment(admitTimeMs),
    belowMinSinceMs: belowMinSinceMs === null ? null : moment(belowMinSinceMs),
  });
}

function boundStatus(status: JobStatus, bounds: Bounds): JobStatus {
  const { moment, wait } = bounds;
  const { startTimeMs, completionTimeMs, lastReconcileMs, resizedMs, waiting, backoff, attempts, plugin } = status;
  return changed(status, {
    startTimeMs: startTimeMs === null ? null : moment(startTimeMs),
    completionTimeMs: completionTimeMs === null ? null : moment(completionTimeMs),
    ...(lastReconcileMs === undefined ? {} : { lastReconcileMs: moment(lastReconcileMs) }),
    ...(resizedMs === undefined ? {} : { resizedMs: moment(resizedMs) }),
    waiting: waiting && changed(waiting, { sinceMs: moment(waiting.sinceMs) }),
    backoff: backoff && changed(backoff, { notBeforeMs: wait(backoff.notBeforeMs, ADMISSION_BACKOFF_MS_MAX) }),
    attempts: boundAttempts(attempts, bounds),
    ...(plugin === undefined
      ? {}
      : { plugin: changed(plugin, { notBeforeMs: wait(plugin.notBeforeMs, PLUGIN_BACKOFF_MS_MAX) }) }),
    conditions: eachChanged(status.conditions, (condition) =>
      changed(condition, {
        lastUpdateMs: moment(condition.lastUpdateMs),
        lastTransitionMs: moment(condition.lastTransitionMs),
      }),
    ),
  });
}

function boundAttempts(attempts: JobStatus["attempts"], { moment, wait }: Bounds): JobStatus["attempts"] {
  const waits = Object.entries(attempts.notBeforeMs);
  const bounded = eachChanged(waits, (entry): [string, number] => {
    const untilMs = wait(entry[1], RESTART_BACKOFF_MS_MAX);
    return untilMs === entry[1] ? entry : [entry[0], untilMs];
  });
  const { incident, last } = attempts;
  return changed(attempts, {
    notBeforeMs: bounded === waits ? attempts.notBeforeMs : Object.fromEntries(bounded),
    ...(incident === undefined ? {} : { incident: changed(incident, { sinceMs: moment(incident.sinceMs) }) }),
    ...(last === undefined ? {} : { last: changed(last, { atMs: moment(last.atMs) }) }),
  });
}

/** After a start timeout or a preemption. */
const ADMISSION_BACKOFF_MS_MAX = Math.max(AFTER_START_TIMEOUT_MS_MAX, AFTER_PREEMPTION_MS_MAX);
/** After a failed call, or a failed attempt. */
const PLUGIN_BACKOFF_MS_MAX = Math.max(CALL_BACKOFF_MS_MAX, RESTART_BACKOFF_MS_MAX);

/** The record with these members; the record itself if all of them are the same. */
function changed<T extends object>(record: T, members: Partial<T>): T {
  const differs = Object.entries(members).some(([name, value]) => record[name as keyof T] !== value);
  return differs ? { ...record, ...members } : record;
}

/** The list with each one changed; the list itself if all of them are the same. */
function eachChanged<T>(list: readonly T[], change: (one: T) => T): readonly T[] {
  const next = list.map(change);
  return next.every((one, at) => one === list[at]) ? list : next;
}
