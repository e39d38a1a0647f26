import { isEvicted, isSuspended, type Job, liveAdmission } from "../job/job.ts";
import { isSetAside } from "../job/set-aside.ts";
import type { Admission } from "../job/status.ts";
import { isTerminal } from "../job/status.ts";
import { isService, type Kind } from "../kinds/kind.ts";
import { kindOfJob, OWN_ENTRY } from "../kinds/registry.ts";
import { boundTimes } from "./bound-times.ts";
import { cleanUp, expire, removeAll, settleAll } from "./clean-up.ts";
import type { Action, Decision } from "./decision.ts";
import {
  type BesideRecord,
  type Draft,
  finishDraft,
  type Inputs,
  type ReconcileConfig,
  startDraft,
} from "./decision-draft.ts";
import { cancelMessage, finishJob } from "./finish-job.ts";
import { forceDeleteLost } from "./force-delete.ts";
import { countEnded } from "./gang-status.ts";
import { holdGang, holdTask } from "./hold-gang.ts";
import { remainsOf } from "./objects/remains.ts";
import type { Observed } from "./observed.ts";
import { kindFailed } from "./plugins/kind-failed.ts";
import { pluginRunner } from "./plugins/plugin-job.ts";
import { forgetProblems } from "./problems/show-problems.ts";
import { forgetStartProblem } from "./problems/start-problem.ts";
import { runGang } from "./run-gang.ts";
import { forgetShrink } from "./scale-down.ts";
import { resume, suspend } from "./suspend.ts";
import { forgetMove, hasLostStart, noteAbandoned, requestMove, withoutLost } from "./undo/lost-cluster.ts";
import { abandon, evict, forgetEviction } from "./undo/wait-again.ts";

/**
 * Decides the next step of one job from its record, its observed objects and the time alone. The same inputs give the
 * same decision. Once a decision is recorded and carried out, the next one changes nothing. It is level-based: every
 * pass derives all that is still to be done.
 *
 *   WAITING ──admitted by the planner──▶ ADMITTED ─▶ STARTING ─▶ RUNNING ◀─▶ RESTARTING
 *      ▲                                                │           │            │
 *      └─────────── start timeout, eviction ────────────┴───────────┴────────────┤
 *                                               SUCCEEDED | FAILED | CANCELLED ◀──┘ then clean-up, tokens, time to live
 *
 * `observed` must be taken no earlier than the record was read. Otherwise objects of a newer admission would look like
 * those of an unknown one, and would be deleted.
 */
export function reconcile(
  recorded: Job,
  observed: Observed,
  nowMs: number,
  config: ReconcileConfig,
  { refused = null, placement = null }: BesideRecord = {},
): Decision {
  const job = boundTimes(recorded, nowMs);
  const kind = kindOfJob(config.kinds, job);
  const inputs: Inputs = { job, kind, observed, nowMs, config, refused, placement };
  if (observed.some((seen) => seen.unadopted && remainsOf(seen, inputs).some(({ isRecorded }) => !isRecorded)))
    return NOTHING_YET;
  const draft = startDraft(job);
  const runner = runnerOf(kind, isSetAside(job));
  if (!isTerminal(job.status)) advance(draft, inputs, runner);
  if (liveAdmission(draft) === null) {
    forgetProblems(draft);
    forgetStartProblem(draft);
    forgetEviction(draft);
    forgetShrink(draft);
    forgetMove(draft);
  }
  runner.abort(draft, inputs);
  runner.finalize(draft, inputs);
  expire(draft, inputs);
  const decision = finishDraft(draft, recorded, nowMs);
  return isForgotten(decision, inputs) ? { ...decision, forget: true } : decision;
}

/**
 * Of a job with objects in a cluster that the restored records do not know: its latest admission may run there. Nothing
 * is decided until the cluster is adopted.
 */
const NOTHING_YET: Decision = { record: null, forget: false, actions: [], recheckAtMs: null };

/** The same for a kind that may come from a plugin: an error that the kind throws fails its job (see `kindFailed`). */
export function reconcileGuarded(...of: Parameters<typeof reconcile>): Decision {
  const [job, , nowMs, config] = of;
  if (config.kinds.entryOf(job.spec.kind) === OWN_ENTRY) return reconcile(...of);
  try {
    return reconcile(...of);
  } catch (error) {
    return kindFailed(job, error, { nowMs, config });
  }
}

/** Deletes all objects that are seen of a job whose record is gone, in clusters that are adopted. */
export function sweep(
  observed: Observed,
  job: { readonly uid: string; readonly namespace: string },
): readonly Action[] {
  return observed.flatMap((seen) => (seen.unadopted ? [] : removeAll(seen, job)));
}

function advance(draft: Draft, inputs: Inputs, runner: Runner): void {
  const { job } = inputs;
  const live = liveAdmission(job);
  if (job.cancel !== null || job.deleteTimeMs !== null) {
    finishJob(draft, inputs, { phase: "CANCELLED", message: cancelMessage(job) });
  } else if (isSuspended(job)) {
    suspend(draft, inputs);
  } else if (job.status.phase === "SUSPENDED") {
    resume(draft, inputs);
  } else if (live !== null && isEvicted(job)) {
    evict(draft, inputs, live);
  } else if (live !== null) {
    bringForward(draft, inputs, { live, runner });
  }
  if (live !== null) noteAbandoned(draft, inputs, live);
}

/** Brings a live admission forward, or undoes it because its cluster is gone. */
function bringForward(
  draft: Draft,
  inputs: Inputs,
  { live, runner }: { readonly live: Admission; readonly runner: Runner },
): void {
  const { observed } = inputs;
  if (isGivenUp(observed, live)) abandon(draft, inputs, { admission: live, gone: "ClusterGivenUp" });
  else if (hasLostStart(inputs, live)) abandon(draft, inputs, { admission: live, gone: "ClusterLost" });
  else {
    requestMove(draft, inputs, live);
    runner.handle(draft, { ...inputs, observed: withoutLost(observed) }, live);
  }
}

/** True if the cluster of an admission was given up. */
function isGivenUp(observed: Observed, { cluster: of }: Admission): boolean {
  return observed.some(({ cluster, forgotten }) => cluster === of && forgotten === true);
}

/** True if a deleted job's record can be removed: no object of it is seen, and this pass has nothing else to record. */
function isForgotten(decision: Decision, inputs: Inputs): boolean {
  const { job, observed } = inputs;
  if (job.deleteTimeMs === null || decision.record !== null || !isTerminal(job.status)) return false;
  const settled = job.admissions.every(({ tokensReleasedMs, goneMs }) => tokensReleasedMs !== null && goneMs !== null);
  return settled && observed.every((seen) => remainsOf(seen, inputs).length === 0);
}

/**
 * The three stages of running a job, for gangs and for jobs without pods. Each derives all that is still to be done
 * from the record and the observed objects, so that repeating a decision that was carried out changes nothing.
 */
type Runner = {
  /** Brings a live admission forward. */
  readonly handle: (draft: Draft, inputs: Inputs, admission: Admission) => void;
  /** Ends the pods, or the plugin's task, of admissions that are no longer live. */
  readonly abort: (draft: Draft, inputs: Inputs) => void;
  /** Releases the tokens of such admissions once nothing of them runs, and notes which of them are gone. */
  readonly finalize: (draft: Draft, inputs: Inputs) => void;
};

/**
 * Runs kinds of pods. The kind decides how the gang's pods look and when the gang succeeds or fails.
 */
const gangRunner: Runner = {
  handle: runGang,
  abort: cleanUp,
  finalize: (draft, inputs) => {
    settleAll(draft, inputs);
    countEnded(draft, inputs);
    forceDeleteLost(draft, inputs);
  },
};

/** A job that is set aside ends, is undone and is cleaned up as others are: only `handle` reads its templates. */
function runnerOf(kind: Kind, holds: boolean): Runner {
  const runner = isService(kind) ? pluginRunner : gangRunner;
  if (!holds) return runner;
  return { ...runner, handle: isService(kind) ? holdTask : holdGang };
}
