/**
 * Reports silent clusters to a watch. A cluster that stops answering changes no job, so no stream of jobs reports it.
 * The watch reads one of the shown jobs of each cluster from time to time: the answer says if the cluster is silent.
 */
import { clone } from "@bufbuild/protobuf";
import { type Job, type JobConcern, JobSchema } from "../../gen/gangway/v1/job_pb.ts";
import { JobService, JobView } from "../../gen/gangway/v1/job_service_pb.ts";
import { getOrCreate } from "../../runtime/get-or-create.ts";
import { append } from "../../runtime/lists.ts";
import { TERMINAL } from "../output/job-words.ts";
import { CallError } from "../rpc/call-error.ts";
import type { Run } from "../run/run-command.ts";

/** A cluster is asked about this often. The service needs longer to find that a cluster is silent. */
export const LOOK_MS = 10_000;
/** The concerns of a job of whose pods nothing is heard. */
const SILENCES = ["ClusterUnreachable", "ClusterUnusable", "ClusterLost"];
/** The most clusters of one look. The others come next: a stream is not read meanwhile. */
const CLUSTERS_MAX = 16;

type WatchRun = { readonly client: Pick<Run["client"], "call">; readonly deps: Pick<Run["deps"], "clock"> };

/** The clusters of the jobs that a watch shows, and those that do not answer. */
export class ClusterSilence {
  readonly #run: WatchRun;
  /** The shown jobs with an admission, by cluster and uid. */
  readonly #jobs = new Map<string, Map<string, Job>>();
  readonly #clusterOf = new Map<string, string>();
  /** The concern of each cluster that does not answer. */
  readonly #silent = new Map<string, JobConcern>();
  /** When each cluster was asked about. The one that was not for the longest time comes first. */
  readonly #lookedMs = new Map<string, number>();

  constructor(run: WatchRun) {
    this.#run = run;
  }

  /** Adds a job that the watch shows, as it is now. */
  add(job: Job): void {
    const uid = job.metadata?.uid ?? "";
    const cluster = clusterOf(job);
    if (this.#clusterOf.get(uid) !== cluster) this.remove(job);
    if (cluster === null) return;
    getOrCreate(this.#jobs, cluster, () => new Map<string, Job>()).set(uid, job);
    this.#clusterOf.set(uid, cluster);
  }

  /** Removes a job that the watch shows no more. */
  remove({ metadata }: Job): void {
    const uid = metadata?.uid ?? "";
    const cluster = this.#clusterOf.get(uid);
    if (cluster === undefined) return;
    this.#clusterOf.delete(uid);
    const jobs = this.#jobs.get(cluster);
    jobs?.delete(uid);
    if (jobs?.size === 0) this.#forget(cluster);
  }

  /** Removes all jobs: the stream lists them again. */
  clear(): void {
    for (const cluster of [...this.#jobs.keys()]) this.#forget(cluster);
    this.#clusterOf.clear();
  }

  /** The job with the concern that its cluster does not answer, if that is so. */
  shown(job: Job): Job {
    const concern = this.#silent.get(clusterOf(job) ?? "");
    if (concern === undefined || job.status === undefined) return job;
    const shown = clone(JobSchema, job);
    shown.status?.concerns.unshift(concern);
    return shown;
  }

  /**
   * Asks about the clusters whose time has come. Returns the shown jobs of those that fell silent or answer again. A
   * call that fails changes nothing: the stream itself says what is wrong with the service.
   */
  async look(): Promise<readonly Job[]> {
    const nowMs = this.#run.deps.clock.monotonicMs();
    const isDue = (cluster: string) => nowMs - (this.#lookedMs.get(cluster) ?? Number.NEGATIVE_INFINITY) >= LOOK_MS;
    const due = [...this.#jobs.keys()].filter(isDue);
    const oldest = due.sort((a, b) => (this.#lookedMs.get(a) ?? 0) - (this.#lookedMs.get(b) ?? 0));
    const changed: Job[] = [];
    for (const cluster of oldest.slice(0, CLUSTERS_MAX)) {
      this.#lookedMs.set(cluster, nowMs);
      const found = await this.#concernOf(cluster);
      if (found === "unknown" || isSame(found, this.#silent.get(cluster))) continue;
      if (found === undefined) this.#silent.delete(cluster);
      else this.#silent.set(cluster, found);
      append(changed, [...(this.#jobs.get(cluster)?.values() ?? [])]);
    }
    return changed.map((job) => this.shown(job));
  }

  /** Undefined: the cluster answers. */
  async #concernOf(cluster: string): Promise<JobConcern | undefined | "unknown"> {
    const [uid = ""] = this.#jobs.get(cluster)?.keys() ?? [];
    try {
      const { job } = await this.#run.client.call(JobService.method.getJob, { uid, view: JobView.BASIC });
      if (job === undefined || clusterOf(job) !== cluster) return "unknown";
      return job.status?.concerns.find((one) => SILENCES.includes(one.reason) && one.cluster === cluster);
    } catch (error) {
      if (error instanceof CallError) return "unknown";
      throw error;
    }
  }

  #forget(cluster: string): void {
    this.#jobs.delete(cluster);
    this.#silent.delete(cluster);
    this.#lookedMs.delete(cluster);
  }
}

/** The cluster whose silence is a concern of this job. Null: none. */
function clusterOf({ status }: Job): string | null {
  const cluster = status?.admission?.cluster ?? "";
  return cluster === "" || TERMINAL.includes(status?.phase ?? 0) ? null : cluster;
}

function isSame(a: JobConcern | undefined, b: JobConcern | undefined): boolean {
  return a?.message === b?.message;
}
