import { type Job, JobPhase } from "../../gen/gangway/v1/job_pb.ts";
import { abortAfter } from "../../runtime/abort-after.ts";
import { getOrCreate } from "../../runtime/get-or-create.ts";
import { linkedController } from "../../runtime/linked-controller.ts";
import { formatSpan } from "../output/duration.ts";
import { clusterCell, paintPhase, qualifiedName } from "../output/job-text.ts";
import { phaseWord, podsCell, reasonCell, TERMINAL } from "../output/job-words.ts";
import { oneLine } from "../output/table.ts";
import type { Run } from "../run/run-command.ts";
import { EXIT, timeoutFailure } from "../shell/exit.ts";
import { FILTER_NAMES_MAX } from "./job-filter.ts";
import { namespaceFlag } from "./namespace-flag.ts";
import { type JobStreamEvent, streamJobs } from "./stream-jobs.ts";

type WaitForEndOptions = {
  /** Null: no timeout. */
  readonly timeoutMs: number | null;
  /** Takes each line of progress. */
  readonly report: (line: string) => void;
};

/** A job that has not ended yet, and the text of its last progress line. */
type PendingJob = { readonly uid: string; readonly label: string; lastText: string };

/** The pending jobs of one namespace, by name. */
type PendingJobs = Map<string, PendingJob>;

type JobEnd = "succeeded" | "failed";

/**
 * Waits until every job has ended, and reports each change. Returns exit status 0 if all jobs succeeded, 1 if one did
 * not. Fails with exit status 124 after the timeout.
 */
export async function waitForEnd(run: Run, jobs: readonly Job[], options: WaitForEndOptions): Promise<number> {
  const { clock } = run.deps;
  const startMs = clock.monotonicMs();
  const stop = new AbortController();
  const counts = { succeeded: 0, failed: 0 };
  const report = (label: string, text: string) => {
    const elapsed = formatSpan(clock.monotonicMs() - startMs);
    options.report(`${elapsed.padStart(6)}  ${oneLine(label)}  ${text}`);
  };
  const waitForNamespace = async (namespace: string, pending: PendingJobs) => {
    const names = pending.size <= FILTER_NAMES_MAX ? [...pending.keys()] : [];
    using finished = linkedController(stop.signal);
    const { signal } = finished;
    const progress = { pending, listed: new Set<string>(), report, color: run.deps.color };
    for await (const event of streamJobs(run, { filter: { namespace, names }, retriesFirstCall: true, signal })) {
      for (const end of applyEvent(event, progress)) counts[end] += 1;
      if (pending.size === 0) finished.abort();
    }
  };
  const timedOut = abortAfter(clock, options.timeoutMs, stop);
  try {
    await Promise.all([...pendingByNamespace(jobs)].map(([namespace, jobsOf]) => waitForNamespace(namespace, jobsOf)));
  } finally {
    stop.abort();
  }
  const left = timedOut() ? jobs.length - counts.succeeded - counts.failed : 0;
  if (left > 0) {
    const list = `gangway list${namespaceFlag(run, jobs)}`;
    throw timeoutFailure(`${left} of ${jobs.length} jobs have not ended yet; "${list}" shows them`);
  }
  return counts.failed > 0 ? EXIT.jobFailed : EXIT.ok;
}

function pendingByNamespace(jobs: readonly Job[]): ReadonlyMap<string, PendingJobs> {
  const groups = new Map<string, PendingJobs>();
  for (const job of jobs) {
    const namespace = job.metadata?.namespace ?? "";
    const group: PendingJobs = getOrCreate(groups, namespace, () => new Map());
    group.set(job.metadata?.name ?? "", { uid: job.metadata?.uid ?? "", label: qualifiedName(job), lastText: "" });
  }
  return groups;
}

type Progress = {
  readonly pending: PendingJobs;
  /** Names of the jobs that the stream has shown since its listing began. */
  readonly listed: Set<string>;
  readonly report: (label: string, text: string) => void;
  readonly color: boolean;
};

/** Applies one event; returns the ends of the jobs that it ended. */
function applyEvent(event: JobStreamEvent, progress: Progress): JobEnd[] {
  switch (event.kind) {
    case "relisting":
      progress.listed.clear();
      return [];
    case "listed":
      return [...progress.pending.keys()]
        .filter((name) => !progress.listed.has(name))
        .map((name) => endDeleted(name, progress));
    case "changed":
    case "deleted": {
      const name = event.job.metadata?.name ?? "";
      const pendingJob = progress.pending.get(name);
      if (pendingJob === undefined || pendingJob.uid !== event.job.metadata?.uid) return [];
      progress.listed.add(name);
      const end = reportChange(event.job, pendingJob, progress);
      if (end === null && event.kind === "deleted") return [endDeleted(name, progress)];
      if (end !== null) progress.pending.delete(name);
      return end === null ? [] : [end];
    }
  }
}

/** Reports a job if its text has changed; returns its end, or null if it has not ended. */
function reportChange(job: Job, pendingJob: PendingJob, progress: Progress): JobEnd | null {
  const text = progressText(job, progress.color);
  if (text !== pendingJob.lastText) progress.report(pendingJob.label, text);
  pendingJob.lastText = text;
  const phase = job.status?.phase ?? JobPhase.UNSPECIFIED;
  if (!TERMINAL.includes(phase)) return null;
  return phase === JobPhase.SUCCEEDED ? "succeeded" : "failed";
}

/** Counts a job as failed if it was deleted before the stream showed its end. */
function endDeleted(name: string, progress: Progress): "failed" {
  progress.report(progress.pending.get(name)?.label ?? name, "was deleted; how it ended is not known");
  progress.pending.delete(name);
  return "failed";
}

function progressText(job: Job, color: boolean): string {
  const phase = job.status?.phase ?? JobPhase.UNSPECIFIED;
  const word = phaseWord(phase);
  const cluster = clusterCell(job);
  const isPlaced = cluster !== "" && !TERMINAL.includes(phase);
  const parts = [color ? paintPhase(word) : word, cluster, isPlaced ? `${podsCell(job)} pods` : "", reasonCell(job)];
  return parts
    .filter((part) => part !== "")
    .map((part, at) => (at === 0 ? part : oneLine(part)))
    .join("  ");
}
