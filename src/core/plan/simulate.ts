/**
 * Judges a job that was not submitted: could it run, now or later, and where? Users ask it before they wait for a job
 * that no cluster can ever take.
 */
import { invariant } from "../../runtime/assert.ts";
import { compareText } from "../../runtime/compare-text.ts";
import type { Job } from "../job/job.ts";
import type { Registry } from "../kinds/registry.ts";
import { refuseCluster } from "./choose-cluster.ts";
import { plan } from "./plan.ts";
import { gangOf, type PlanGang } from "./plan-gang.ts";
import type { ClusterRefusal, PlannedAdmission, QuotaRefusal, Refusal } from "./plan-types.ts";
import { nearestRefusal } from "./refuse.ts";
import type { PlanCluster, PlanSnapshot } from "./snapshot.ts";

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
};

type At = { readonly kinds: Registry; readonly nowMs: number };

/**
 * Judges a job as if it were submitted now, and not suspended. The waiting jobs of the snapshot come before it, except
 * one of its name: the user asks about that one.
 */
export function simulate(snapshot: PlanSnapshot, submitted: Job, at: At): Simulation {
  const gang = gangOf(asWaiting(submitted), at.kinds, { generation: 1, lastAdmission: 0 });
  const others = snapshot.waiting.filter(({ namespace, name }) => namespace !== gang.namespace || name !== gang.name);
  const now = judge({ ...snapshot, waiting: [...others, gang] }, gang, at);
  // The limits stay, nothing is used of them, and every cluster can be used.
  const named = [...snapshot.clusters].sort((a, b) => compareText(a.name, b.name));
  const usable = named.map((cluster) => ({ ...cluster, cordoned: false, reachable: true }));
  const best = { ...snapshot, waiting: [gang], sums: [], callers: [], clusters: usable };
  const ever = judge(best, gang, at);
  const hasNoPods = "kind" in ever && ever.cluster === null;
  const clusters = hasNoPods ? [] : named.map((cluster) => judgeCluster(cluster, best, { gang, at }));
  if ("kind" in now) return { verdict: "FITS_NOW", admission: now, reason: "", message: "", clusters, quotas: [] };
  const isNever = "reason" in ever && clusters.every(({ verdict }) => verdict === "NEVER");
  const { reason, message, quotas } = isNever ? ever : now;
  return { verdict: isNever ? "NEVER" : "WAITS", admission: null, reason, message, clusters, quotas };
}

/** The job as one that nothing holds back but quotas and clusters: not suspended, and without an earlier result. */
function asWaiting(job: Job): Job {
  const { suspend: _, cacheKey: __, ...runPolicy } = job.spec.runPolicy;
  return { ...job, spec: { ...job.spec, runPolicy }, status: { ...job.status, phase: "WAITING" }, admissions: [] };
}

function judge(snapshot: PlanSnapshot, gang: PlanGang, at: At): PlannedAdmission | Refusal {
  const { admissions, refusals } = plan(snapshot, at);
  const isOurs = ({ jobUid }: { readonly jobUid: string }) => jobUid === gang.uid;
  const decided = admissions.find(isOurs) ?? refusals.find(isOurs);
  invariant(decided !== undefined, "a plan admits or refuses every waiting job");
  return decided;
}

/** Plans the job for one cluster alone. The others stay, cordoned, because their flavors count everywhere. */
function judgeCluster(
  cluster: PlanCluster,
  best: PlanSnapshot,
  { gang, at }: { readonly gang: PlanGang; readonly at: At },
): ClusterVerdict {
  const { name, simulated = false } = cluster;
  const clusters = best.clusters.map((one) => (one.name === name ? one : { ...one, cordoned: true, capacity: null }));
  const alone = judge({ ...best, clusters }, gang, at);
  const refusal = "kind" in alone ? null : refusalOf(name, alone);
  if (refusal !== null && !WAITS_FOR.includes(refusal.reason))
    return { cluster: name, simulated, verdict: "NEVER", refusal };
  const barred = refuseCluster(gang, cluster) ?? refusal;
  return { cluster: name, simulated, verdict: barred === null ? "FITS_NOW" : "WAITS", refusal: barred };
}

/** A cluster that refuses for one of these reasons may take the gang later, without a change of the gang. */
const WAITS_FOR = ["NoCapacity", "CapacityUnknown"];

/** Why a cluster refuses the job. A gang that its queue can never admit is not tried in any cluster. */
function refusalOf(cluster: string, { clusters, reason, message }: Refusal): ClusterRefusal {
  const own = clusters.filter((refusal) => refusal.cluster === cluster);
  if (own.length > 0) return nearestRefusal(own);
  return { cluster, reason, message, flavor: null, need: 0, have: 0, blocked: null };
}
