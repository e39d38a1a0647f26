import type { Job } from "../../gen/gangway/v1/job_pb.ts";
import { CommandFailure, EXIT } from "../exit.ts";
import type { Run } from "../run-command.ts";
import { FILTER_NAMES_MAX } from "./job-filter.ts";
import { type JobStreamEvent, streamJobs } from "./stream-jobs.ts";

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
  if (options.timeoutMs !== null) {
    void run.deps.clock.sleep(options.timeoutMs, stop.signal).then(() => stop.abort());
  }
  const left = new Map(jobs.map((job) => [job.metadata?.uid ?? "", job]));
  const listed = new Set<string>();
  const filter = filterFor(jobs);
  try {
    for await (const event of streamJobs(run, { filter, retriesFirstCall: true, signal: stop.signal })) {
      for (const uid of deletedBy(event, { left, listed })) {
        const job = left.get(uid);
        if (job !== undefined && left.delete(uid)) options.onDeleted(job);
      }
      if (left.size === 0) return EXIT.ok;
    }
  } finally {
    stop.abort();
  }
  throw new CommandFailure(EXIT.timedOut, [
    `error: timed out: ${left.size} of ${jobs.length} jobs are not deleted yet; "gangway list" shows them`,
  ]);
}

/** A filter that these jobs pass; others may pass it too. */
function filterFor(jobs: readonly Job[]): { readonly namespace: string; readonly names: string[] } {
  const namespaces = new Set(jobs.map((job) => job.metadata?.namespace ?? ""));
  const [namespace = ""] = namespaces;
  const names = jobs.map((job) => job.metadata?.name ?? "");
  return {
    namespace: namespaces.size === 1 ? namespace : "",
    names: names.length <= FILTER_NAMES_MAX ? names : [],
  };
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
