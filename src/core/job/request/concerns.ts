/**
 * Problems and pending ends of a job that its phase does not show: its cluster does not answer or cannot be used, or
 * its end was requested. It serves users who would take such a job for a healthy one.
 */
import { currentAdmission, isMoving, type Job } from "../job.ts";
import { isTerminal } from "../status.ts";

/** A cluster of whose pods nothing is heard. */
export type Silence = {
  /** Since when. Null: it has not answered yet. */
  readonly sinceMs: number | null;
  /** Why it cannot be used, although it answers. Null: it does not answer. */
  readonly unusable: string | null;
  /** Since when it counts as lost. Omitted or null: it does not. */
  readonly lostMs?: number | null;
};

/** The clusters of whose pods nothing is heard, by name. */
export type SilentClusters = ReadonlyMap<string, Silence>;

const UNREACHABLE = "ClusterUnreachable";
const UNUSABLE = "ClusterUnusable";
const LOST = "ClusterLost";

/** True if nothing is heard of the pods of a cluster. */
export function isSilence({ reason }: Pick<Concern, "reason">): boolean {
  return reason === UNREACHABLE || reason === UNUSABLE || reason === LOST;
}

export type Concern = {
  /** `ClusterUnreachable`, `ClusterUnusable`, `ClusterLost`, `Deleting` or `Cancelling`. */
  readonly reason: string;
  readonly message: string;
  /** The cluster that it is about. Null: none. */
  readonly cluster: string | null;
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
    const silence = silent.get(cluster);
    if (silence === undefined) return [];
    const holds = cluster === current?.cluster ? "" : ", where pods of an earlier admission may still run,";
    const reason = silenceReason(silence);
    const runsHere = current?.state === "live" && current.cluster === cluster;
    const stays = runsHere && typeof silence.lostMs === "number" ? stayText(job) : "";
    const message = `cluster ${cluster}${holds} ${silenceText(silence)}${stays}`;
    return [{ reason, message, cluster, sinceMs: silence.sinceMs }];
  });
}

/** Whether a gang that ran in a lost cluster waits for it or moves, as far as its own record says it. */
function stayText(job: Job): string {
  if (isMoving(job)) return "; the gang runs elsewhere once it fits there";
  const { moveAfterMs } = job.spec.runPolicy;
  if (moveAfterMs === undefined)
    return "; the gang waits for it, or runs elsewhere later, as its queue or namespace says";
  if (moveAfterMs === 0) return "; the gang waits for the cluster, as its job says";
  return `; the gang runs elsewhere once the cluster has not answered for ${moveAfterMs / 1000} s`;
}

function silenceReason({ unusable, lostMs }: Silence): string {
  if (unusable !== null) return UNUSABLE;
  return typeof lostMs === "number" ? LOST : UNREACHABLE;
}

/** After the cluster's name. The words for `unusable` are for its operators: they may name what it is. */
function silenceText({ sinceMs, unusable, lostMs }: Silence): string {
  const since = sinceMs === null ? "" : ` since ${timeText(sinceMs)}`;
  if (unusable !== null) return `answers, but cannot be used${since}: an operator has to see to it`;
  const silent = since === "" ? "has not answered yet" : `has not answered${since}`;
  if (typeof lostMs !== "number") return silent;
  return `${silent}, and counts as lost: whether pods run there is not known`;
}

function ends({ deleteTimeMs, cancel, status }: Job): readonly Concern[] {
  if (deleteTimeMs !== null) {
    const message = `it is being deleted since ${timeText(deleteTimeMs)}`;
    return [{ reason: "Deleting", message, cluster: null, sinceMs: deleteTimeMs }];
  }
  if (cancel === null || isTerminal(status)) return [];
  const why = cancel.reason === "" ? "" : `: ${cancel.reason}`;
  const message = `it is being cancelled since ${timeText(cancel.atMs)}${why}`;
  return [{ reason: "Cancelling", message, cluster: null, sinceMs: cancel.atMs }];
}

function timeText(atMs: number): string {
  return new Date(atMs).toISOString();
}
