import type { Job } from "../job/job.ts";
import { isTerminal } from "../job/status.ts";
import { entryOf, kindOfJob, OWN_ENTRY } from "../kinds/registry.ts";
import { expire, remainsIn, removeAll } from "./clean-up.ts";
import type { Action, Decision, Observed } from "./decision.ts";
import { type Draft, finishDraft, type Inputs, type ReconcileConfig, type RefusedPod, startDraft } from "./draft.ts";
import { cancelMessage, finish } from "./finish.ts";
import { kindFailed } from "./kind-failed.ts";
import { type Runner, runnerOf } from "./runner.ts";
import { isSuspended, resume, suspend } from "./suspend.ts";

/**
 * Decides the next step of one job from its record, what is seen of it and the time alone; the same inputs give the same decision, and a
 * decision that was recorded and acted on leads to one that changes nothing. Level-based: every pass derives all that is still to be done.
 *
 *   WAITING ──admitted by the planner──▶ ADMITTED ─▶ STARTING ─▶ RUNNING ◀─▶ RESTARTING
 *      ▲                                                │           │            │
 *      └──────────────── start timeout ─────────────────┴───────────┴────────────┤
 *                                               SUCCEEDED | FAILED | CANCELLED ◀──┘  then clean-up, tokens, time to live
 *
 * `refused` is what a worker was told when it asked for a pod, before anything of that is on record.
 *
 * `observed` has to be taken no earlier than the record was read, or objects of a newer admission would look like remains of an unknown one.
 */
export function reconcile(
  job: Job,
  observed: Observed,
  nowMs: number,
  config: ReconcileConfig,
  refused: RefusedPod | null = null,
): Decision {
  const kind = kindOfJob(job);
  const inputs: Inputs = { job, kind, observed, nowMs, config, refused };
  const draft = startDraft(job);
  const runner = runnerOf(kind);
  if (!isTerminal(job.status)) advance(draft, inputs, runner);
  runner.abort(draft, inputs);
  runner.finalize(draft, inputs);
  expire(draft, inputs);
  const decision = finishDraft(draft, job);
  return isForgotten(decision, inputs) ? { ...decision, forget: true } : decision;
}

/** The same, of a kind that may be anybody's: one that throws fails its job, see `kindFailed`. */
export function reconcileGuarded(...of: Parameters<typeof reconcile>): Decision {
  const [job, , nowMs, config] = of;
  if (entryOf(job.spec.kind) === OWN_ENTRY) return reconcile(...of);
  try {
    return reconcile(...of);
  } catch (error) {
    return kindFailed(job, error, { nowMs, config });
  }
}

/** What is to be deleted of a job whose record is gone: whatever is seen of it. */
export function sweep(
  observed: Observed,
  job: { readonly uid: string; readonly namespace: string },
): readonly Action[] {
  return observed.flatMap((seen) => removeAll(seen, job));
}

function advance(draft: Draft, inputs: Inputs, runner: Runner): void {
  const { job } = inputs;
  const live = job.admissions.find(({ state }) => state === "live");
  if (job.cancel !== null || job.deleteTimeMs !== null) {
    finish(draft, inputs, { phase: "CANCELLED", message: cancelMessage(job) });
  } else if (isSuspended(job)) {
    suspend(draft, inputs);
  } else if (job.status.phase === "SUSPENDED") {
    resume(draft, inputs);
  } else if (live !== undefined) {
    runner.handle(draft, inputs, live);
  }
}

/** A deleted job's record goes once nothing is seen of any admission, in a pass that has nothing else to record. */
function isForgotten(decision: Decision, { job, observed }: Inputs): boolean {
  if (job.deleteTimeMs === null || decision.record !== null || !isTerminal(job.status)) return false;
  const settled = job.admissions.every(({ tokensReleasedMs, goneMs }) => tokensReleasedMs !== null && goneMs !== null);
  return settled && observed.every((seen) => remainsIn(seen, job.uid).length === 0);
}
