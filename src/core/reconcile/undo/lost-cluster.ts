/**
 * Decides about a gang whose cluster counts as lost. Nobody can know whether its pods run. A gang of which no pod was
 * seen running goes elsewhere at once. Any other one waits for the cluster, or moves after a while, as its job, its
 * queue or its namespace says.
 */

import { CLUSTER_LOST } from "../../job/admission/undone.ts";
import { clusterWords } from "../../job/cluster-text.ts";
import { hasRun, isMoving } from "../../job/job.ts";
import type { Admission } from "../../job/status.ts";
import { changeAdmission, type Draft, type Inputs, reasonOf } from "../decision-draft.ts";
import type { Loss, Observed } from "../observed.ts";

/** True if the cluster of a live admission is lost, and was before any of the gang's pods was seen running. */
export function hasLostStart({ job, observed }: Pick<Inputs, "job" | "observed">, live: Admission): boolean {
  return lossOf(observed, live) !== null && !hasRun(job.status);
}

/**
 * The loss of an admission's cluster. Null: it is not lost. An admission that was made after the cluster's return has a
 * higher fence, whatever is known of the return here.
 */
function lossOf(observed: Observed, { cluster: of, fence = "0" }: Admission): Loss | null {
  const loss = observed.find(({ cluster }) => cluster === of)?.loss;
  return loss !== undefined && BigInt(fence) <= BigInt(loss.fence) ? loss : null;
}

/**
 * Requests that the planner finds a gang another place once its cluster has not answered for long enough. The gang
 * keeps its admission until then. Takes the request back if the cluster answers, or if the gang is to wait after all.
 */
export function requestMove(draft: Draft, inputs: Inputs, live: Admission): void {
  const { job, observed, nowMs } = inputs;
  const loss = lossOf(observed, live);
  const leftMs = untilMove(loss, inputs);
  if (leftMs !== null && leftMs > 0) draft.recheckAtMs.push(nowMs + Math.max(LEAST_MS, leftMs));
  const where = clusterWords({ ...live, name: live.cluster ?? "" });
  if (loss === null || leftMs === null || leftMs > 0) {
    if (!isMoving(job)) return;
    forgetMove(draft);
    const message = `${job.spec.kind} ${job.name} stays in ${where}: its admission ${live.number} goes on.`;
    draft.events.push({ type: "Normal", reason: reasonOf(job, "Stays"), message });
    return;
  }
  if (isMoving(job) && job.status.move?.lostMs === loss.sinceMs) return;
  // Members that it was to give up are not: nobody would see them go.
  const { shrink: _kept, ...status } = draft.status;
  draft.status = { ...status, move: { admission: live.number, sinceMs: nowMs, lostMs: loss.sinceMs } };
  const message =
    `The ${where} counts as lost, so ${job.spec.kind} ${job.name} runs elsewhere once it fits there. ` +
    `Admission ${live.number} goes on until then.`;
  draft.events.push({ type: "Warning", reason: reasonOf(job, CLUSTER_LOST), message });
}

/** Forgets a request to run a gang elsewhere. */
export function forgetMove(draft: Draft): void {
  const { move, ...status } = draft.status;
  if (move !== undefined) draft.status = status;
}

/** What is counted of a cluster's silence is read every few seconds. */
const LEAST_MS = 1000;

/** How long a cluster has still to be silent before a gang that ran there moves. Null: it does not. */
function untilMove(loss: Loss | null, { job, config }: Pick<Inputs, "job" | "config">): number | null {
  const { moveAfterMs: own } = job.spec.runPolicy;
  if (loss === null || own === 0 || (own === undefined && loss.policy === "WAIT")) return null;
  const afterMs = own ?? config.moveAfterMs ?? MOVE_AFTER_MS;
  return afterMs - loss.silenceMs;
}

/** As in MultiKueue. */
export const MOVE_AFTER_MS = 15 * 60_000;

/**
 * Notes that an admission which this decision stops left a lost cluster. Its tokens are free then, since nobody waits
 * to hear of its pods; what is left of them goes when the cluster returns.
 */
export function noteAbandoned(draft: Draft, inputs: Inputs, live: Admission): void {
  const stopped = draft.admissions.find(({ number, state }) => number === live.number && state !== "live");
  if (stopped !== undefined && hasLostStart(inputs, live)) abandonNow(draft, inputs, stopped);
}

/**
 * The same for an admission that was stopped in a lost cluster in which it ran: once the cluster has been silent for so
 * long that a gang there would move.
 */
export function abandonOverdue(draft: Draft, inputs: Inputs, stopped: Admission): void {
  const leftMs = untilMove(lossOf(inputs.observed, stopped), inputs);
  if (leftMs === null) return;
  if (leftMs <= 0) abandonNow(draft, inputs, stopped);
  draft.recheckAtMs.push(inputs.nowMs + Math.max(0, leftMs));
}

function abandonNow(draft: Draft, { nowMs }: Inputs, stopped: Admission): void {
  changeAdmission(draft, { ...stopped, abandonedMs: nowMs });
}

/** The clusters of which something is known. */
export function withoutLost(observed: Observed): Observed {
  return observed.filter(({ loss }) => loss === undefined);
}
