import type { Job } from "../gen/gangway/v1/job_pb.ts";
import { EXIT } from "./exit.ts";
import { followJobs, type JobChange } from "./follow-jobs.ts";
import type { Run } from "./shell.ts";

export type ForgottenOptions = {
  readonly namespace: string;
  /** Null: as long as it takes. */
  readonly timeoutMs: number | null;
  /** Takes each job that is gone. */
  readonly report: (job: Job) => void;
};

/** Waits until none of these jobs of one namespace is left; another job of the same name does not count. */
export async function awaitForgotten(run: Run, jobs: readonly Job[], options: ForgottenOptions): Promise<number> {
  const enough = new AbortController();
  if (options.timeoutMs !== null) {
    void run.deps.clock.sleep(options.timeoutMs, enough.signal).then(() => enough.abort());
  }
  const left = new Map(jobs.map((job) => [job.metadata?.uid ?? "", job]));
  const seen = new Set<string>();
  const filter = { namespace: options.namespace, names: jobs.map((job) => job.metadata?.name ?? "") };
  try {
    for await (const change of followJobs(run, { filter, patient: true, signal: enough.signal })) {
      for (const uid of goneBy(change, { left, seen })) {
        const job = left.get(uid);
        if (job !== undefined && left.delete(uid)) options.report(job);
      }
      if (left.size === 0) return EXIT.ok;
    }
  } finally {
    enough.abort();
  }
  run.deps.stderr(`error: waited too long: ${left.size} of the jobs are still there\n`);
  return EXIT.waitedTooLong;
}

/** The uids that a change shows to be gone. */
function goneBy(change: JobChange, known: { left: ReadonlyMap<string, Job>; seen: Set<string> }): readonly string[] {
  switch (change.kind) {
    case "forget":
      known.seen.clear();
      return [];
    case "seen":
      known.seen.add(change.job.metadata?.uid ?? "");
      return [];
    case "gone":
      return [change.job.metadata?.uid ?? ""];
    case "listed":
      return [...known.left.keys()].filter((uid) => !known.seen.has(uid));
  }
}
