import { invariant } from "../../runtime/assert.ts";
import type { Job } from "../job/job.ts";
import { isTerminal } from "../job/status.ts";
import type { PluginRecord, PluginStage, RecordedInfo, TaskPhase } from "../job/task-info.ts";
import { type ReadTransition, readTransition } from "../kinds/read-transition.ts";
import { kindOfJob } from "../kinds/registry.ts";
import { expire } from "./clean-up.ts";
import { backoffMs } from "./count.ts";
import type { Decision } from "./decision.ts";
import {
  changeCondition,
  type Draft,
  finishDraft,
  type Inputs,
  type ReconcileConfig,
  reasonOf,
  startDraft,
} from "./draft.ts";
import { failedCall } from "./failed-call.ts";
import { finish } from "./finish.ts";
import { endByDeadline, showRunning } from "./follow.ts";
import { isLive, NO_STATE, serviceRunner } from "./service.ts";

/** A call of a plugin that is due. */
export type DueCall = { readonly stage: Exclude<PluginStage, "done">; readonly plugin: PluginRecord };

/** How a call ended: with whatever it returned, or by throwing, by hanging, or because its plugin could not be loaded. */
export type CallOutcome =
  | { readonly kind: "returned"; readonly value: unknown }
  | { readonly kind: "failed"; readonly message: string; readonly isCutOff?: boolean };

/** Under this name a job without pods counts its attempts. */
const TASK = "Task/0";

/** The call that the record names; null where none is due yet, or none is left. */
export function dueCall(job: Job, nowMs: number): DueCall | null {
  const { plugin } = job.status;
  if (plugin === undefined || plugin.stage === "done" || nowMs < plugin.notBeforeMs) return null;
  return { stage: plugin.stage, plugin };
}

/**
 * Decides what a plugin's call comes to, from the record that the call was made under. A call that failed is repeated under the same name, with
 * backoff; `handle` fails the job once as many in a row have failed as its system budget allows. `abort` and `finalize` are repeated until they
 * succeed, since what they end holds the job's tokens.
 */
export function afterCall(
  job: Job,
  call: DueCall,
  outcome: CallOutcome,
  at: { readonly nowMs: number; readonly config: ReconcileConfig },
): Decision {
  const kind = kindOfJob(job);
  const inputs: Inputs = { job, kind, observed: [], refused: null, ...at };
  const draft = startDraft(job);
  if (outcome.kind === "failed") countFailedCall(draft, inputs, call, outcome.message);
  else if (call.stage === "handle") handled(draft, inputs, call, outcome.value);
  else if (call.stage === "abort") changePlugin(draft, { ...call.plugin, stage: "finalize", ...fresh(inputs) });
  else finalized(draft, inputs, call.plugin);
  if (!isTerminal(draft.status) && isLive(draft, call.plugin.admission)) endByDeadline(draft, inputs);
  serviceRunner.abort(draft, inputs);
  serviceRunner.finalize(draft, inputs);
  expire(draft, inputs);
  return finishDraft(draft, job);
}

function fresh({ nowMs }: Inputs): Pick<PluginRecord, "failedCalls" | "notBeforeMs"> {
  return { failedCalls: 0, notBeforeMs: nowMs };
}

/** How a call failed is known until one of its like has not. */
function changePlugin(draft: Draft, plugin: PluginRecord): void {
  const { lastFailure, ...rest } = plugin;
  const isFailing = plugin.failedCalls > 0 && lastFailure !== undefined;
  draft.status = { ...draft.status, plugin: isFailing ? { ...rest, lastFailure } : rest };
}

function countFailedCall(draft: Draft, inputs: Inputs, { stage, plugin }: DueCall, said: string): void {
  const { job, nowMs } = inputs;
  const failed = failedCall(plugin.failedCalls, said, nowMs);
  const { failedCalls, lastFailure } = failed;
  changePlugin(draft, { ...plugin, ...failed });
  const message = `${stage} of attempt ${plugin.attempt} failed: ${lastFailure}`;
  draft.events.push({ type: "Warning", reason: reasonOf(job, "PluginFailed"), message });
  const limit = Math.max(job.spec.runPolicy.systemBackoffLimit, 1);
  if (stage !== "handle" || failedCalls < limit) return;
  const ended = `${job.spec.kind} ${job.name} has failed because its plugin failed ${failedCalls} times in a row (last: ${message}).`;
  fail(draft, inputs, { code: "PluginFailed", kind: "SYSTEM", message: ended });
}

function handled(draft: Draft, inputs: Inputs, call: DueCall, value: unknown): void {
  const read = readTransition(value);
  if (read.kind === "wrong") {
    countFailedCall(draft, inputs, call, read.message);
    return;
  }
  const { transition } = read;
  const { nowMs } = inputs;
  const state = transition.state ?? call.plugin.state;
  const unchanged = call.plugin.failedCalls === 0 ? call.plugin.notBeforeMs : nowMs;
  changePlugin(draft, { ...call.plugin, state, failedCalls: 0, notBeforeMs: unchanged });
  tell(draft, inputs, transition);
  draft.recheckAtMs.push(nowMs + transition.recheckAfterMs);
  follow(draft, inputs, transition);
}

/** The first phases: nothing runs yet. */
const BEFORE: readonly TaskPhase[] = [
  "NOT_READY",
  "WAITING_FOR_RESOURCES",
  "WAITING_FOR_CACHE",
  "QUEUED",
  "INITIALIZING",
];

function follow(draft: Draft, inputs: Inputs, transition: ReadTransition): void {
  const { job } = inputs;
  const { phase } = transition;
  if (phase === "RUNNING") {
    showRunning(draft, inputs);
  } else if (BEFORE.includes(phase) && draft.status.phase === "RESTARTING") {
    draft.status = { ...draft.status, phase: "STARTING" };
  } else if (phase === "SUCCESS") {
    finish(draft, inputs, { phase: "SUCCEEDED", message: `${job.spec.kind} ${job.name} successfully completed.` });
    leave(draft, inputs, "finalize");
  } else if (phase === "RETRYABLE_FAILURE") {
    retry(draft, inputs, transition);
  } else if (transition.failure !== null) {
    const { code, message } = transition.failure;
    const ended = `${job.spec.kind} ${job.name} has failed: ${message || code}.`;
    fail(draft, inputs, { ...transition.failure, message: ended });
    leave(draft, inputs, transition.cleanup ? "abort" : "finalize");
  }
}

/** Counts the failure against the budget of its kind, and begins another attempt once this one is finalized, or fails the job. */
function retry(draft: Draft, inputs: Inputs, { failure, cleanup }: ReadTransition): void {
  const { job, nowMs } = inputs;
  invariant(failure !== null, "a failure says why");
  const { backoffLimit, systemBackoffLimit } = job.spec.runPolicy;
  const isUser = failure.kind === "USER";
  const before = draft.status.attempts;
  const attempts = { ...before, user: before.user + Number(isUser), system: before.system + Number(!isUser) };
  draft.status = { ...draft.status, attempts };
  const limit = isUser ? backoffLimit : systemBackoffLimit;
  const why = failure.message || failure.code;
  if (limit !== null && (isUser ? attempts.user : attempts.system) >= Math.max(limit, 1)) {
    const what = isUser ? "backoff limit" : "system backoff limit";
    const message = `${job.spec.kind} ${job.name} has failed because it has reached the specified ${what} (last: ${why}).`;
    const code = isUser ? "BackoffLimitExceeded" : "SystemBackoffLimitExceeded";
    fail(draft, inputs, { code, kind: failure.kind, message });
  } else {
    const reason = reasonOf(job, "Restarting");
    const message = `${job.spec.kind} ${job.name} is restarting because it failed: ${why}.`;
    changeCondition(draft, { type: "Restarting", status: "True", reason, message }, nowMs);
    draft.status = { ...draft.status, phase: "RESTARTING" };
    draft.events.push({ type: "Warning", reason, message });
  }
  leave(draft, inputs, cleanup ? "abort" : "finalize");
}

function fail(draft: Draft, inputs: Inputs, { code, kind, message }: NonNullable<ReadTransition["failure"]>): void {
  const failure = { code, kind, message, container: null, exitCode: null };
  finish(draft, inputs, { phase: "FAILED", failure, message });
}

/** The attempt is over, by its plugin's own word. */
function leave(draft: Draft, inputs: Inputs, stage: "abort" | "finalize"): void {
  const { plugin } = draft.status;
  if (plugin !== undefined) changePlugin(draft, { ...plugin, stage, ...fresh(inputs) });
}

/** Begins the next attempt of a job that goes on, without what the last one kept. */
function finalized(draft: Draft, inputs: Inputs, plugin: PluginRecord): void {
  if (isTerminal(draft.status) || !isLive(draft, plugin.admission)) {
    changePlugin(draft, { ...plugin, stage: "done", ...fresh(inputs) });
    return;
  }
  const attempt = plugin.attempt + 1;
  const notBeforeMs = inputs.nowMs + backoffMs(plugin.attempt);
  changePlugin(draft, { ...plugin, attempt, stage: "handle", state: NO_STATE, failedCalls: 0, notBeforeMs });
  const { attempts } = draft.status;
  draft.status = { ...draft.status, attempts: { ...attempts, byReplica: { ...attempts.byReplica, [TASK]: attempt } } };
}

/** Records what is news: another phase, or a higher version of the same. What was not to be told in this round leaves everything as it is. */
function tell(draft: Draft, { job, nowMs }: Inputs, { phase, version, reason, task }: ReadTransition): void {
  const known = draft.status.info;
  if (phase === "UNDEFINED" || (known?.phase === phase && known.version >= version)) return;
  const info: RecordedInfo = {
    ...task,
    phase,
    version,
    reason,
    occurredAtMs: task.occurredAtMs ?? nowMs,
    reportedAtMs: task.reportedAtMs ?? nowMs,
  };
  draft.status = { ...draft.status, info };
  const words = phase.toLowerCase().replaceAll("_", " ");
  const message = `${job.spec.kind} ${job.name}: ${words}${reason === "" ? "" : `: ${reason}`}`;
  draft.events.push({ type: "Normal", reason: reasonOf(job, "TaskProgress"), message });
}
