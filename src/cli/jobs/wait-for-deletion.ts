import type { Job } from "../../gen/gangway/v1/job_pb.ts";
import { abortAfter } from "../../runtime/abort-after.ts";
import { qualifiedName } from "../output/job-text.ts";
import { CallError, STATUS } from "../rpc/call-error.ts";
import type { Run } from "../run/run-command.ts";
import { type CommandFailure, EXIT, timeoutFailure } from "../shell/exit.ts";
import { filterOfJobs } from "./job-filter.ts";
import { namespaceFlag } from "./namespace-flag.ts";
import { type JobStreamEvent, streamJobs } from "./stream-jobs.ts";

/** Names that a message shows. */
const NAMES_SHOWN_MAX = 10;

type WaitForDeletionOptions = {
  /** Null: no timeout. */
  readonly timeoutMs: number | null;
  /** Called once for each job, as soon as it is deleted. */
  readonly onDeleted: (job: Job) => void;
};

/** Waits until these jobs are deleted. A new job of the same name has another uid and is ignored. */
export async function waitForDeletion(
  run: Run,
  jobs: readonly Job[],
  options: WaitForDeletionOptions,
): Promise<number> {
  const stop = new AbortController();
  abortAfter(run.deps.clock, options.timeoutMs, stop);
  const left = new Map(jobs.map((job) => [job.metadata?.uid ?? "", job]));
  const listed = new Set<string>();
  const filter = filterOfJobs(jobs);
  try {
    for await (const event of streamJobs(run, { filter, retriesFirstCall: true, signal: stop.signal })) {
      for (const uid of deletedBy(event, { left, listed })) {
        const job = left.get(uid);
        if (job !== undefined && left.delete(uid)) options.onDeleted(job);
      }
      if (left.size === 0) return EXIT.ok;
    }
  } catch (error) {
    return sayUnseen(run, [...left.values()], error);
  } finally {
    stop.abort();
  }
  throw notDeleted(run, [...left.values()], jobs.length);
}

/** The deletion is asked for: a caller that may not see jobs cannot wait for more. Throws every other error. */
function sayUnseen(run: Run, left: readonly Job[], error: unknown): number {
  if (!(error instanceof CallError) || error.code !== STATUS.PERMISSION_DENIED) throw error;
  run.deps.stderr(`${namesOf(left)}: being deleted; you may not see jobs, so this command does not wait\n`);
  return EXIT.ok;
}

function notDeleted(run: Run, left: readonly Job[], total: number): CommandFailure {
  const list = `gangway list${namespaceFlag(run, left)}`;
  return timeoutFailure(`${left.length} of ${total} jobs are not deleted yet: ${namesOf(left)}`, [
    `Their deletion goes on: their pods must first be removed from their clusters. "${list}" shows them.`,
  ]);
}

function namesOf(jobs: readonly Job[]): string {
  const shown = jobs.slice(0, NAMES_SHOWN_MAX).map(qualifiedName).join(", ");
  return jobs.length > NAMES_SHOWN_MAX ? `${shown}, …` : shown;
}

/** Returns the uids of the jobs that this event shows to be deleted. `listed` collects the uids of a listing. */
function deletedBy(
  event: JobStreamEvent,
  { left, listed }: { readonly left: ReadonlyMap<string, Job>; readonly listed: Set<string> },
): readonly string[] {
  switch (event.kind) {
    case "relisting":
      listed.clear();
      return [];
    case "changed":
      listed.add(event.job.metadata?.uid ?? "");
      return [];
    case "deleted":
      return [event.job.metadata?.uid ?? ""];
    case "listed":
      return [...left.keys()].filter((uid) => !listed.has(uid));
  }
}
