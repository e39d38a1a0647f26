import type { Job } from "../../job/job.ts";
import type { Submission } from "../../job/request/requests.ts";
import type { FieldNote } from "../../job/request/sent.ts";
import type { HashedAsk } from "./ask.ts";
import type { ClusterRefusal, PlannedAdmission, QuotaRefusal, Refusal } from "./plan-types.ts";

/**
 * `FITS_NOW`: the next plan admits it. `WAITS`: not now, but once others have ended, or a cluster is back.
 * `NEVER`: not even if nothing else ran, unless the job, a queue or a cluster is changed.
 */
export type SimulatedVerdict = "FITS_NOW" | "WAITS" | "NEVER";

/** Whether one cluster has nodes for the gang, under the limits of its queue; the use of quotas does not count. */
export type ClusterVerdict = {
  readonly cluster: string;
  /** True: no program runs there. */
  readonly simulated: boolean;
  readonly verdict: SimulatedVerdict;
  /** Null: the gang fits now. */
  readonly refusal: ClusterRefusal | null;
};

export type Simulation = {
  readonly verdict: SimulatedVerdict;
  /** The admission that the job would get. Null unless it fits now. */
  readonly admission: PlannedAdmission | null;
  /** Why the job would not be admitted now, in the words of a refusal. Empty if it would. */
  readonly reason: string;
  readonly message: string;
  /** All clusters, by name; empty for a job without pods. */
  readonly clusters: readonly ClusterVerdict[];
  /** Every quota that is in the way: now, or for `NEVER` at any time. */
  readonly quotas: readonly QuotaRefusal[];
  /** The clusters that the message is about. */
  readonly refusals: readonly ClusterRefusal[];
};

/** The reason for which a gang can never run as things are. */
export type NeverRuns = {
  readonly refusal: Refusal;
  /** Another queue in which it could run. Null: none that may be used was found. */
  readonly queue: string | null;
};

/** A submission that may be warned of what keeps its job from ever running. Omitted: nothing is known of that. */
export type ForeseenSubmission = Submission & {
  readonly foresee?: (job: Job, asked: HashedAsk) => Promise<readonly FieldNote[]>;
};
