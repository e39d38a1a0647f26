/**
 * Takes the names of other jobs and callers out of the words for why a gang waits. `refuse`, `refusal-words` and
 * `preemption-words` make these words.
 */
import type { QuotaRefusal } from "./plan-types.ts";

/** Decides who may be named: a job as `namespace/name`, a caller as `caller NAME`. */
export type MayName = (holder: string) => boolean;

const OTHER_JOB = "another job";
/** Where a message names one job. */
const NAMED = /(waits behind |preempted for |member\(s\) for )([^\s,/]+\/[^\s,]+)(?=, (?:the head |which |whose ))/g;
/** Where it lists jobs, up to its end. */
const LISTED = /(preempted for it have ended: )(.*)$/s;
const JOB_NAME = /[^\s,;:()/]+\/[^\s,;:()/]+/g;
/** Where it lists the jobs that have reservations, or that one waits for, up to the next words. */
const RESERVING = /(the reservation of |these jobs have ended: )([^;]*)/g;

/**
 * Takes the names out of recorded words. A caller may have any name, so everything that follows the first holder goes,
 * also numbers of other flavors.
 */
export function withoutNames(message: string, mayName: MayName): string {
  return withoutJobs(message, mayName)
    .replace(/ \(held by .*$/s, " (held by others)")
    .replace(/, and keeps (\d+) for (?!the first of its waiting line|nominees).*$/s, ", and keeps $1 for others");
}

/** Words about why a gang waits, with the quotas that they are about. */
export type Said = { readonly message: string; readonly quotas: readonly QuotaRefusal[] };

/** Takes the names out of words that come with the holders that they name. */
export function saidWithoutNames<T extends Said>(said: T, mayName: MayName): T {
  const named = said.quotas.flatMap(({ heldBy }) => heldBy);
  // Without the holders, the words may be those of a record.
  if (named.length === 0) return { ...said, message: withoutNames(said.message, mayName) };
  const hidden = [...new Set(named.filter((holder) => !mayName(holder)))].sort((a, b) => b.length - a.length);
  const message = hidden.reduce((text, holder) => text.replaceAll(holder, wordFor(holder)), said.message);
  const quotas = said.quotas.map((quota) => ({ ...quota, heldBy: quota.heldBy.filter(mayName) }));
  return { ...said, message: withoutJobs(message, mayName), quotas };
}

function withoutJobs(message: string, mayName: MayName): string {
  const shown = (name: string) => (mayName(name) ? name : OTHER_JOB);
  return message
    .replace(NAMED, (_, before: string, name: string) => before + shown(name))
    .replace(LISTED, (_, before: string, names: string) => before + names.replace(JOB_NAME, shown))
    .replace(RESERVING, (_, before: string, names: string) => before + names.replace(JOB_NAME, shown));
}

function wordFor(holder: string): string {
  return holder.startsWith("caller ") ? "another caller" : OTHER_JOB;
}
