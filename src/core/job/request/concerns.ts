/**
 * What is wrong with a job, or under way, that its phase does not show: its cluster does not answer, or its end was
 * requested. It serves users who would take such a job for a healthy one.
 */
import { currentAdmission, type Job } from "../job.ts";
import { isTerminal } from "../status.ts";

/** The clusters that do not answer, and since when. Null: they have not answered yet. */
export type SilentClusters = ReadonlyMap<string, number | null>;

export type Concern = {
  /** `ClusterUnreachable`, `Deleting` or `Cancelling`. */
  readonly reason: string;
  readonly message: string;
  /** Null: not known. */
  readonly sinceMs: number | null;
};

/** The most important one comes first. Empty: the phase says it all. */
export function concernsOf(job: Job, silent: SilentClusters): readonly Concern[] {
  return [...silences(job, silent), ...ends(job)];
}

/** Clusters that do not answer and have, or may have, pods of the job. */
function silences(job: Job, silent: SilentClusters): readonly Concern[] {
  const current = currentAdmission(job);
  const held = job.admissions.filter(
    ({ state, tokensReleasedMs, goneMs }) =>
      state === "live" || tokensReleasedMs === null || (state === "undone" && goneMs === null),
  );
  const clusters = new Set(held.flatMap(({ cluster }) => cluster ?? []));
  return [...clusters].flatMap((cluster): Concern[] => {
    const sinceMs = silent.get(cluster);
    if (sinceMs === undefined) return [];
    const holds = cluster === current?.cluster ? "" : ", where pods of an earlier admission may still run,";
    const since = sinceMs === null ? "has not answered yet" : `has not answered since ${timeText(sinceMs)}`;
    return [{ reason: "ClusterUnreachable", message: `cluster ${cluster}${holds} ${since}`, sinceMs }];
  });
}

function ends({ deleteTimeMs, cancel, status }: Job): readonly Concern[] {
  if (deleteTimeMs !== null) {
    const message = `it is being deleted since ${timeText(deleteTimeMs)}`;
    return [{ reason: "Deleting", message, sinceMs: deleteTimeMs }];
  }
  if (cancel === null || isTerminal(status)) return [];
  const why = cancel.reason === "" ? "" : `: ${cancel.reason}`;
  const message = `it is being cancelled since ${timeText(cancel.atMs)}${why}`;
  return [{ reason: "Cancelling", message, sinceMs: cancel.atMs }];
}

function timeText(atMs: number): string {
  return new Date(atMs).toISOString();
}
