/**
 * Takes the names of other jobs and callers out of the messages for why a gang waits. `refuse`, `refusal-messages` and
 * `preemption-messages` make these messages.
 */
import { replaceWords } from "../../../runtime/replace-words.ts";
import type { QuotaRefusal } from "../model/plan-types.ts";

/** Decides who may be named: a job as `namespace/name`, a caller as `caller NAME`. */
export type MayName = (holder: string) => boolean;

const OTHER_JOB = "another job";
/** Where a message names one job. */
const NAMED =
  /(waits behind |preempted for |member\(s\) for |place goes to )([^\s,/]+\/[^\s,]+)(, (?:the head |which |whose ))/g;
/** Where it lists jobs, up to its end. */
const LISTED = /(preempted for it have ended: )(.*)$/s;
const WORD = /[^\s,;:()]+/g;
/** Where it lists the jobs that have reservations, that are overtaken, or that one waits for, up to the next words. */
const RESERVING = /(the reservation of |takes over from |in the place of |these jobs have ended: )([^;]*)/g;

/**
 * Takes the names out of recorded messages. A caller may have any name, so everything that follows the first holder
 * goes, also numbers of other flavors.
 */
export function withoutNames(message: string, mayName: MayName): string {
  return withoutKeepers(withoutJobs(message, mayName).replace(/ \(held by .*$/s, " (held by others)"));
}

/** Messages about why a gang waits, with the quotas that they are about. */
export type ReportedWhy = { readonly message: string; readonly quotas: readonly QuotaRefusal[] };

/** Takes the names out of messages that come with the holders that they name. */
export function reportedWithoutNames<T extends ReportedWhy>(said: T, mayName: MayName): T {
  const named = said.quotas.flatMap(({ heldBy }) => heldBy);
  // Without the holders, the messages may be those of a record.
  if (named.length === 0) return { ...said, message: withoutNames(said.message, mayName) };
  const hidden = named.filter((holder) => !mayName(holder)).map((holder) => [holder, wordFor(holder)] as const);
  const message = replaceWords(said.message, new Map(hidden));
  const quotas = said.quotas.map((quota) => ({ ...quota, heldBy: quota.heldBy.filter(mayName) }));
  return { ...said, message: withoutJobs(message, mayName), quotas };
}

function withoutJobs(message: string, mayName: MayName): string {
  const shown = (name: string) => (mayName(name) ? name : OTHER_JOB);
  const shownWord = (word: string) => (isJobName(word) ? shown(word) : word);
  return message
    .replace(NAMED, (_, before: string, name: string, after: string) => before + shown(name) + after)
    .replace(LISTED, (_, before: string, names: string) => before + names.replace(WORD, shownWord))
    .replace(RESERVING, (_, before: string, names: string) => before + names.replace(WORD, shownWord));
}

/** True for `namespace/name`, and for a word with more slashes, which names no job and is hidden. */
function isJobName(word: string): boolean {
  const slash = word.indexOf("/");
  return slash > 0 && slash < word.length - 1;
}

const KEEPS = /, and keeps (\d+) for /g;
/** For whom a pool keeps tokens, in words that name nobody. */
const UNNAMED = ["the first of its waiting line", "nominees"];

function withoutKeepers(message: string): string {
  for (const { index, 0: words } of message.matchAll(KEEPS)) {
    const end = index + words.length;
    if (!UNNAMED.some((one) => message.startsWith(one, end))) return `${message.slice(0, end)}others`;
  }
  return message;
}

function wordFor(holder: string): string {
  return holder.startsWith("caller ") ? "another caller" : OTHER_JOB;
}
