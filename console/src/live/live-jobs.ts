/** Keeps the newest version of jobs that a watch has sent. */
import { TERMINAL } from "../../../src/cli/output/job-words.ts";
import type { Job } from "../../../src/gen/gangway/v1/job_pb.ts";
import { type WatchJobsResponse, WatchJobsResponse_Type } from "../../../src/gen/gangway/v1/job_service_pb.ts";

/** By uid. Null: the record of the job was removed. */
export type LiveJobs = ReadonlyMap<string, Job | null>;

export function withChanges(live: LiveJobs, changes: readonly WatchJobsResponse[]): LiveJobs {
  let next = new Map(live);
  for (const { type, job } of changes) {
    if (type === WatchJobsResponse_Type.GAP) next = new Map();
    const uid = job?.metadata?.uid;
    if (uid === undefined || job === undefined) continue;
    next.set(uid, type === WatchJobsResponse_Type.DELETED ? null : job);
  }
  return next;
}

/** A listed job as it is now. Null: it was removed. */
export function newestOf(listed: Job, live: LiveJobs): Job | null {
  const seen = live.get(listed.metadata?.uid ?? "");
  if (seen === undefined) return listed;
  if (seen === null) return null;
  return versionOf(seen) > versionOf(listed) ? completed(seen, listed) : listed;
}

/** A watch leaves out what only lists compute: the tokens of an admission, and a place in the queue. */
function completed(seen: Job, listed: Job): Job {
  const [now, before] = [seen.status, listed.status];
  const isSame = now?.admission?.number === before?.admission?.number && !TERMINAL.includes(now?.phase ?? 0);
  if (now === undefined || now.admission === undefined || before?.admission === undefined || !isSame) return seen;
  if (now.admission.tokens.length > 0) return seen;
  return { ...seen, status: { ...now, admission: { ...now.admission, tokens: before.admission.tokens } } };
}

/** True if the list is from before the job's admission, so that it lacks the tokens which the job holds now. */
export function isListedBefore(listed: Job, now: Job): boolean {
  return listed.status?.admission?.number !== now.status?.admission?.number;
}

function versionOf({ metadata }: Job): number {
  return Number(metadata?.resourceVersion ?? 0);
}
