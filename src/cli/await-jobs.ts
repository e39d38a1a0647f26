import { type Job, JobPhase } from "../gen/gangway/v1/job_pb.ts";
import { formatSpan } from "./duration.ts";
import { EXIT } from "./exit.ts";
import { followJobs, type JobChange } from "./follow-jobs.ts";
import { paintPhase, phaseWord, podsCell, qualifiedName, reasonCell, TERMINAL } from "./job-text.ts";
import type { Run } from "./shell.ts";
import { oneLine } from "./table.ts";

export type AwaitOptions = {
  /** Null: as long as it takes. */
  readonly timeoutMs: number | null;
  /** Takes each line of progress. */
  readonly report: (line: string) => void;
};

/** The jobs of one namespace that are still waited for, by name, and what was last said of each. */
type Pending = Map<string, { readonly uid: string; readonly label: string; said: string }>;

/** A stream's filter takes so many names; beyond, a whole namespace is followed. */
const FILTER_NAMES_MAX = 1000;

/** Waits until every job has ended, saying each change; the exit status is 0 if all succeeded, 1 if one did not, 124 after the timeout. */
export async function awaitJobs(run: Run, jobs: readonly Job[], options: AwaitOptions): Promise<number> {
  const { clock } = run.deps;
  const startMs = clock.monotonicMs();
  const enough = new AbortController();
  const counts = { succeeded: 0, failed: 0 };
  let timedOut = false;
  const say = (label: string, text: string) => {
    const elapsed = formatSpan(clock.monotonicMs() - startMs);
    options.report(`${elapsed.padStart(6)}  ${label}  ${text}`);
  };
  const pendingByNamespace = groupPending(jobs);
  const follow = async (namespace: string, pending: Pending) => {
    const names = pending.size <= FILTER_NAMES_MAX ? [...pending.keys()] : [];
    const stopped = new AbortController();
    const signal = AbortSignal.any([enough.signal, stopped.signal]);
    const seen = new Set<string>();
    for await (const change of followJobs(run, { filter: { namespace, names }, patient: true, signal })) {
      for (const end of applyChange(change, { pending, seen, say, color: run.deps.color })) counts[end] += 1;
      if (pending.size === 0) stopped.abort();
    }
  };
  if (options.timeoutMs !== null) {
    void clock.sleep(options.timeoutMs, enough.signal).then(() => {
      timedOut = !enough.signal.aborted;
      enough.abort();
    });
  }
  try {
    await Promise.all([...pendingByNamespace].map(([namespace, pending]) => follow(namespace, pending)));
  } finally {
    enough.abort();
  }
  return conclude(run, { ...counts, left: timedOut ? jobs.length - counts.succeeded - counts.failed : 0 });
}

function groupPending(jobs: readonly Job[]): ReadonlyMap<string, Pending> {
  const groups = new Map<string, Pending>();
  for (const job of jobs) {
    const namespace = job.metadata?.namespace ?? "";
    const group: Pending = groups.get(namespace) ?? new Map();
    group.set(job.metadata?.name ?? "", { uid: job.metadata?.uid ?? "", label: qualifiedName(job), said: "" });
    groups.set(namespace, group);
  }
  return groups;
}

type Progress = {
  readonly pending: Pending;
  /** Names heard of since the listing began. */
  readonly seen: Set<string>;
  readonly say: (label: string, text: string) => void;
  readonly color: boolean;
};

/** Takes one change into account; returns how the jobs that it ends have ended. */
function applyChange(change: JobChange, progress: Progress): ("succeeded" | "failed")[] {
  switch (change.kind) {
    case "forget":
      progress.seen.clear();
      return [];
    case "listed":
      return [...progress.pending.keys()]
        .filter((name) => !progress.seen.has(name))
        .map((name) => lose(name, progress));
    case "seen":
    case "gone": {
      const name = change.job.metadata?.name ?? "";
      const waiter = progress.pending.get(name);
      if (waiter === undefined || waiter.uid !== change.job.metadata?.uid) return [];
      progress.seen.add(name);
      const ended = follow(change.job, waiter, progress);
      if (ended === null && change.kind === "gone") return [lose(name, progress)];
      if (ended !== null) progress.pending.delete(name);
      return ended === null ? [] : [ended];
    }
  }
}

/** Says what is new about a job; returns how it ended, null if it has not. */
function follow(job: Job, waiter: { label: string; said: string }, progress: Progress): "succeeded" | "failed" | null {
  const text = describe(job, progress.color);
  if (text !== waiter.said) progress.say(waiter.label, text);
  waiter.said = text;
  const phase = job.status?.phase ?? JobPhase.UNSPECIFIED;
  if (!TERMINAL.includes(phase)) return null;
  return phase === JobPhase.SUCCEEDED ? "succeeded" : "failed";
}

function lose(name: string, progress: Progress): "failed" {
  progress.say(progress.pending.get(name)?.label ?? name, "was deleted before its end was seen");
  progress.pending.delete(name);
  return "failed";
}

function describe(job: Job, color: boolean): string {
  const phase = job.status?.phase ?? JobPhase.UNSPECIFIED;
  const word = phaseWord(phase);
  const cluster = job.status?.admission?.cluster ?? "";
  const isUnderWay = cluster !== "" && !TERMINAL.includes(phase);
  const parts = [color ? paintPhase(word) : word, cluster, isUnderWay ? `${podsCell(job)} pods` : "", reasonCell(job)];
  return parts
    .filter((part) => part !== "")
    .map((part, at) => (at === 0 ? part : oneLine(part)))
    .join("  ");
}

function conclude(run: Run, counts: { succeeded: number; failed: number; left: number }): number {
  if (counts.left > 0) {
    run.deps.stderr(`error: waited too long: ${counts.left} of the jobs had not ended\n`);
    return EXIT.waitedTooLong;
  }
  return counts.failed > 0 ? EXIT.jobFailed : EXIT.ok;
}
