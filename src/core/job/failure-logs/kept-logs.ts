/**
 * The last lines of containers that failed, kept with their job. They serve users who ask why a job failed when its
 * pods are gone.
 */
import type { ReplicaKey } from "../status.ts";

/** The limits of what is kept. The oldest go first. */
export const FAILURE_LOG_LIMITS = {
  /** Of one container: enough for a stack trace and what led to it. */
  linesMax: 200,
  containerBytesMax: 16 * 1024,
  /** The last attempts of a replica; with restart scope GANG, of the gang. */
  attemptsMax: 3,
  /** Containers of one attempt: in a gang of a thousand, the first few tell what the others do. */
  containersMax: 16,
  /** The last runs of a container that is restarted in its pod. */
  runsMax: 3,
  jobBytesMax: 256 * 1024,
  namespaceBytesMax: 64 * 1024 * 1024,
} as const;

/** Names one run of a container of a pod of a job. No two pods have one uid. */
export type RunKey = {
  readonly podUid: string;
  readonly container: string;
  /** How often the container had been restarted in its pod before this run. */
  readonly restarts: number;
};

/** A run of a container that has failed, and where its log is. */
export type FailedRun = RunKey & {
  readonly replica: ReplicaKey;
  readonly attempt: number;
  readonly admission: number;
  readonly cluster: string;
  readonly pod: string;
  readonly exitCode: number;
  /** Why the container ended, in the words of its cluster. May be empty. */
  readonly reason: string;
  /** True: the container has been restarted since, or is about to be. */
  readonly previous: boolean;
};

/** The last lines of a log. `cut`: the log has more before them. */
export type LastLines = { readonly text: string; readonly cut: boolean };

/** Why no lines could be read: a reason in CamelCase, and words. */
export type LogProblem = { readonly reason: string; readonly message: string };

/** The lines of a failed run as they are kept, or why there are none. */
export type FailureLog = Omit<FailedRun, "previous"> & {
  readonly lines: LastLines;
  /** Null: the lines were read. */
  readonly problem: LogProblem | null;
};

/** A log that is kept, and when it was read. */
export type KeptLog = FailureLog & { readonly readMs: number };

/** The logs that are kept of a job. */
export type KeptLogs = {
  /** False: the namespace of the job keeps no lines. */
  readonly keeps: boolean;
  /** The newest attempt first; of one attempt, in the order in which they were kept. */
  readonly logs: readonly KeptLog[];
};

/** The part of a log by which limits judge it. */
export type MeasuredLog = RunKey & Pick<FailedRun, "attempt" | "replica"> & { readonly bytes: number };

export function runKey({ podUid, container, restarts }: RunKey): string {
  return `${podUid}/${container}/${restarts}`;
}

/**
 * Which logs of a job stay within its limits, and which new ones are added. `kept`: the oldest first. `fresh`: the most
 * important first; a run that is kept already is not added again. Of the containers of an attempt the first ones stay,
 * of everything else the newest. `gang`: the members of the job restart together, and so have the same attempts.
 */
export function withinLimits<L extends MeasuredLog>(
  { kept, fresh }: { readonly kept: readonly L[]; readonly fresh: readonly L[] },
  { gang }: { readonly gang: boolean },
): { readonly stay: readonly L[]; readonly add: readonly L[] } {
  const known = new Set(kept.map(runKey));
  const added = fresh.filter((log, at) => !known.has(runKey(log)) && isFirst(fresh, at));
  const allowed = lastRuns(firstContainers(lastAttempts([...kept, ...added], gang)));
  const fitting = new Set(withinBytes(allowed, new Set(kept)));
  return { stay: kept.filter((log) => fitting.has(log)), add: added.filter((log) => fitting.has(log)) };
}

function isFirst(logs: readonly RunKey[], at: number): boolean {
  const log = logs[at];
  return log !== undefined && logs.findIndex((one) => runKey(one) === runKey(log)) === at;
}

/** Those of the last attempts, of each replica or of the gang. */
function lastAttempts<L extends MeasuredLog>(logs: readonly L[], gang: boolean): readonly L[] {
  const groupOf = ({ replica }: L) => (gang ? "" : replica);
  const last = new Map<string, number>();
  for (const log of logs) last.set(groupOf(log), Math.max(log.attempt, last.get(groupOf(log)) ?? 0));
  return logs.filter((log) => log.attempt > (last.get(groupOf(log)) ?? 0) - FAILURE_LOG_LIMITS.attemptsMax);
}

/** Those of the first containers of each attempt. */
function firstContainers<L extends MeasuredLog>(logs: readonly L[]): readonly L[] {
  const byAttempt = new Map<number, Set<string>>();
  return logs.filter(({ attempt, podUid, container }) => {
    const seen = byAttempt.get(attempt) ?? new Set();
    byAttempt.set(attempt, seen);
    const name = `${podUid}/${container}`;
    if (!seen.has(name) && seen.size >= FAILURE_LOG_LIMITS.containersMax) return false;
    seen.add(name);
    return true;
  });
}

/** Those of the last runs of each container. */
function lastRuns<L extends MeasuredLog>(logs: readonly L[]): readonly L[] {
  const runs = Map.groupBy(logs, ({ podUid, container }) => `${podUid}/${container}`);
  const stay = new Set<L>();
  for (const own of runs.values()) {
    const newest = own.toSorted((a, b) => b.restarts - a.restarts).slice(0, FAILURE_LOG_LIMITS.runsMax);
    for (const log of newest) stay.add(log);
  }
  return logs.filter((log) => stay.has(log));
}

/** The newest whose bytes fit together: the new ones in their order, then the old ones from the last. */
function withinBytes<L extends MeasuredLog>(logs: readonly L[], old: ReadonlySet<L>): readonly L[] {
  const order = [...logs.filter((log) => !old.has(log)), ...logs.filter((log) => old.has(log)).toReversed()];
  const stay = new Set<L>();
  let left = FAILURE_LOG_LIMITS.jobBytesMax;
  for (const log of order) {
    left -= log.bytes;
    if (left < 0) break;
    stay.add(log);
  }
  return logs.filter((log) => stay.has(log));
}

/** The newest attempt of each replica that is kept, in the order of the logs. */
export function newestAttempts<L extends Pick<FailedRun, "attempt" | "replica">>(logs: readonly L[]): readonly L[] {
  const newest = new Map<string, number>();
  for (const { replica, attempt } of logs) newest.set(replica, Math.max(attempt, newest.get(replica) ?? 0));
  return logs.filter(({ replica, attempt }) => attempt === newest.get(replica));
}

/** The attempts of logs, without doubles, the oldest first: `1, 2`. */
export function attemptsText(logs: readonly Pick<FailedRun, "attempt">[]): string {
  return [...new Set(logs.map(({ attempt }) => attempt))].sort((a, b) => a - b).join(", ");
}
