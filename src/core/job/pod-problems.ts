import { compareText } from "../../runtime/compare-text.ts";
import { cutText } from "../../runtime/cut-text.ts";
import { maxOf } from "../../runtime/lists.ts";
import type { PodProblem, PodProblems } from "./status.ts";

/** A problem as it is seen now. */
export type SeenProblem = Omit<PodProblem, "sinceMs">;

/** A record holds at most so many problems, those of the most pods. */
const PROBLEMS_MAX = 8;
/** The longest message that is recorded or shown. Schedulers and admission webhooks may write pages. */
export const PROBLEM_CHARS_MAX = 500;
/** A sentence says so many of them. */
const TEXTS_MAX = 2;
/**
 * The time between two records that change nothing but numbers and words of known problems: 2 s after a problem has
 * appeared, doubling up to a minute. A scheduler may word its refusal anew whenever any pod of its cluster ends.
 */
const REWORD = { firstMs: 2_000, longestMs: 60_000 };

/** Makes one problem of those that pods of one replica type share. The message is that of the first. */
export function groupProblems(each: readonly Omit<SeenProblem, "pods">[]): readonly SeenProblem[] {
  const groups = [...Map.groupBy(each, keyOf).values()].flatMap((alike) =>
    alike.slice(0, 1).map((first) => {
      return { ...first, message: cutText(first.message, PROBLEM_CHARS_MAX), pods: alike.length };
    }),
  );
  return groups.sort((a, b) => b.pods - a.pods || compareText(keyOf(a), keyOf(b))).slice(0, PROBLEMS_MAX);
}

/**
 * The problems to record. A problem that appears or goes changes the record at once. Other words or counts of the same
 * problems change it only from `rewordAtMs` on, or when it is written anyway.
 */
export function nextProblems(
  known: PodProblems | undefined,
  seen: readonly SeenProblem[],
  { nowMs, writesAnyway }: { readonly nowMs: number; readonly writesAnyway: () => boolean },
): { readonly next: PodProblems | undefined; readonly rewordAtMs: number | null } {
  if (seen.length === 0) return { next: undefined, rewordAtMs: null };
  const sinceMs = new Map(known?.problems.map((problem) => [keyOf(problem), problem.sinceMs]));
  const problems = seen.map((problem) => ({ ...problem, sinceMs: sinceMs.get(keyOf(problem)) ?? nowMs }));
  const changed = { next: { atMs: nowMs, problems }, rewordAtMs: null };
  if (known === undefined || !haveSameKeys(known.problems, problems)) return changed;
  if (!problems.some((problem) => !known.problems.some((one) => isSame(one, problem))))
    return { next: known, rewordAtMs: null };
  const rewordAtMs = known.atMs + rewordWaitMs(known);
  return nowMs >= rewordAtMs || writesAnyway() ? changed : { next: known, rewordAtMs };
}

/** `1 Master and 2 Worker pods do not run: Unschedulable (0/5 nodes are available); …`. Empty without problems. */
export function problemsText(problems: readonly SeenProblem[]): string {
  const texts = [...Map.groupBy(problems, whyText)].map(([why, alike]) => `${whoText(alike)}: ${why}`);
  const more = texts.length - TEXTS_MAX;
  return [...texts.slice(0, TEXTS_MAX), ...(more > 0 ? [`and ${more} more`] : [])].join("; ");
}

/** What pods do with a problem that does not keep them from running: one, and several. */
const RUNNING_REASONS: Readonly<Record<string, readonly [string, string]>> = {
  CrashLoopBackOff: ["crashes again and again", "crash again and again"],
  NodeSilent: ["may have stopped", "may have stopped"],
  Terminating: ["does not end", "do not end"],
};

function whyText({ reason, message }: SeenProblem): string {
  return message === "" ? reason : `${reason} (${message.replace(/\.$/, "")})`;
}

function whoText(alike: readonly SeenProblem[]): string {
  const counts = alike.map(({ pods, replicaType }) => `${pods} ${replicaType}`).join(" and ");
  const total = alike.reduce((sum, { pods }) => sum + pods, 0);
  const verbs = RUNNING_REASONS[alike[0]?.reason ?? ""] ?? ["does not run", "do not run"];
  return total === 1 ? `${counts} pod ${verbs[0]}` : `${counts} pods ${verbs[1]}`;
}

function rewordWaitMs({ atMs, problems }: PodProblems): number {
  const newestMs = maxOf(problems.map(({ sinceMs }) => sinceMs));
  return Math.min(Math.max(atMs - newestMs, REWORD.firstMs), REWORD.longestMs);
}

function keyOf({ replicaType, reason }: Pick<PodProblem, "replicaType" | "reason">): string {
  return `${replicaType} ${reason}`;
}

function haveSameKeys(a: readonly PodProblem[], b: readonly PodProblem[]): boolean {
  const keys = new Set(a.map(keyOf));
  return a.length === b.length && b.every((problem) => keys.has(keyOf(problem)));
}

function isSame(a: PodProblem, b: PodProblem): boolean {
  return keyOf(a) === keyOf(b) && a.pods === b.pods && a.message === b.message;
}
