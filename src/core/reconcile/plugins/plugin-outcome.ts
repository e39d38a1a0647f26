/**
 * Decides what follows from a plugin call. It serves users who run jobs without pods, with the same budgets, retries
 * and deadlines as gangs.
 */
import { invariant } from "../../../runtime/assert.ts";
import { foreignText } from "../../../runtime/foreign-text.ts";
import { canonicalJson } from "../../../runtime/json.ts";
import type { Job } from "../../job/job.ts";
import { isTerminal } from "../../job/status.ts";
import type { PluginRecord, PluginStage, RecordedInfo, TaskPhase } from "../../job/task-info.ts";
import type { PluginEvent } from "../../kinds/plugin-services.ts";
import { type ReadTransition, readTransition } from "../../kinds/read-transition.ts";
import { kindOfJob } from "../../kinds/registry.ts";
import { expire } from "../clean-up.ts";
import { backoffMs } from "../count-failures.ts";
import type { Decision } from "../decision.ts";
import {
  changeCondition,
  type Draft,
  finishDraft,
  type Inputs,
  type ReconcileConfig,
  reasonOf,
  startDraft,
} from "../decision-draft.ts";
import { endByDeadline, finishJob } from "../finish-job.ts";
import { showRunning } from "../gang-status.ts";
import { failedCall, isLive, NO_STATE, pluginRunner } from "./plugin-job.ts";

/** A plugin call that is due. */
export type DueCall = { readonly stage: Exclude<PluginStage, "done">; readonly plugin: PluginRecord };

/**
 * How a call ended. `failed`: it threw an error or hung, or its plugin could not be loaded. `events`: those that the
 * plugin recorded meanwhile.
 */
export type CallOutcome = (
  | { readonly kind: "returned"; readonly value: unknown }
  | { readonly kind: "failed"; readonly message: string; readonly isCutOff?: boolean }
) & { readonly events?: readonly PluginEvent[] };

/** The replica key under which a job without pods counts its attempts. */
const TASK = "Task/0";

/** The call that the record names. Null: none is due yet, or none is left. */
export function dueCall(job: Job, nowMs: number): DueCall | null {
  const { plugin } = job.status;
  if (plugin === undefined || plugin.stage === "done" || nowMs < plugin.notBeforeMs) return null;
  return { stage: plugin.stage, plugin };
}

/**
 * Decides what follows from the outcome of a plugin call, given the record under which the call was made. A failed call
 * is repeated under the same task name, with backoff. When as many calls of `handle` in a row have failed as the system
 * budget allows, the job fails. `abort` and `finalize` are repeated until they succeed, since the job holds its tokens
 * until then.
 */
export function afterCall(
  job: Job,
  call: DueCall,
  outcome: CallOutcome,
  at: { readonly nowMs: number; readonly config: ReconcileConfig },
): Decision {
  const kind = kindOfJob(at.config.kinds, job);
  const inputs: Inputs = { job, kind, observed: [], refused: null, placement: null, ...at };
  const draft = startDraft(job);
  noteEvents(draft, outcome.events ?? []);
  if (outcome.kind === "failed") countFailedCall(draft, inputs, call, outcome.message);
  else if (call.stage === "handle") applyTransition(draft, inputs, call, outcome.value);
  else if (call.stage === "abort") changePlugin(draft, { ...call.plugin, stage: "finalize", ...fresh(inputs) });
  else afterFinalize(draft, inputs, call.plugin);
  if (!isTerminal(draft.status) && isLive(draft, call.plugin.admission)) endByDeadline(draft, inputs);
  pluginRunner.abort(draft, inputs);
  pluginRunner.finalize(draft, inputs);
  expire(draft, inputs);
  return finishDraft(draft, job, at.nowMs);
}

function fresh({ nowMs }: Inputs): Pick<PluginRecord, "failedCalls" | "notBeforeMs"> {
  return { failedCalls: 0, notBeforeMs: nowMs };
}

/** Sets the plugin's record. The last failure is kept until a call succeeds. */
function changePlugin(draft: Draft, plugin: PluginRecord): void {
  const { lastFailure, ...rest } = plugin;
  const isFailing = plugin.failedCalls > 0 && lastFailure !== undefined;
  draft.status = { ...draft.status, plugin: isFailing ? { ...rest, lastFailure } : rest };
}

function countFailedCall(draft: Draft, inputs: Inputs, { stage, plugin }: DueCall, errorText: string): void {
  const { job, nowMs } = inputs;
  const failed = failedCall(plugin.failedCalls, errorText, nowMs);
  const { failedCalls, lastFailure } = failed;
  changePlugin(draft, { ...plugin, ...failed });
  const message = `${stage} of attempt ${plugin.attempt} failed: ${lastFailure}`;
  draft.events.push({ type: "Warning", reason: reasonOf(job, "PluginFailed"), message });
  const limit = job.spec.runPolicy.systemBackoffLimit;
  if (stage !== "handle" || failedCalls < limit) return;
  const why = `its plugin failed ${failedCalls} times in a row (last: ${message})`;
  const ended = `${job.spec.kind} ${job.name} has failed because ${why}.`;
  fail(draft, inputs, { code: "PluginFailed", kind: "SYSTEM", message: ended });
}

function applyTransition(draft: Draft, inputs: Inputs, call: DueCall, returned: unknown): void {
  const read = readTransition(returned);
  if (read.kind === "wrong") {
    countFailedCall(draft, inputs, call, read.message);
    return;
  }
  const { transition } = read;
  const { nowMs } = inputs;
  const state = transition.state ?? call.plugin.state;
  const unchanged = call.plugin.failedCalls === 0 ? call.plugin.notBeforeMs : nowMs;
  changePlugin(draft, { ...call.plugin, state, failedCalls: 0, notBeforeMs: unchanged });
  noteOutputs(draft, inputs, transition);
  noteProgress(draft, inputs, transition);
  draft.recheckAtMs.push(nowMs + transition.recheckAfterMs);
  applyPhase(draft, inputs, transition);
}

/** The phases before anything runs. */
const PHASES_BEFORE_RUNNING: readonly TaskPhase[] = [
  "NOT_READY",
  "WAITING_FOR_RESOURCES",
  "WAITING_FOR_CACHE",
  "QUEUED",
  "INITIALIZING",
];

function applyPhase(draft: Draft, inputs: Inputs, transition: ReadTransition): void {
  const { job } = inputs;
  const { phase } = transition;
  if (phase === "RUNNING") {
    showRunning(draft, inputs);
  } else if (PHASES_BEFORE_RUNNING.includes(phase) && draft.status.phase === "RESTARTING") {
    draft.status = { ...draft.status, phase: "STARTING" };
  } else if (phase === "SUCCESS") {
    finishJob(draft, inputs, { phase: "SUCCEEDED", message: `${job.spec.kind} ${job.name} successfully completed.` });
    leaveAttempt(draft, inputs, "finalize");
  } else if (phase === "RETRYABLE_FAILURE") {
    retry(draft, inputs, transition);
  } else if (transition.failure !== null) {
    const { code, message } = transition.failure;
    const ended = `${job.spec.kind} ${job.name} has failed: ${message || code}.`;
    fail(draft, inputs, { ...transition.failure, message: ended });
    leaveAttempt(draft, inputs, transition.cleanup ? "abort" : "finalize");
  }
}

/**
 * Counts the failure against its budget, user's or system's. Fails the job if the budget is spent; otherwise another
 * attempt begins once this one is finalized.
 */
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
  if (limit !== null && (isUser ? attempts.user : attempts.system) >= limit) {
    const what = isUser ? "backoff limit" : "system backoff limit";
    const spent = `it has reached the specified ${what} (last: ${why})`;
    const message = `${job.spec.kind} ${job.name} has failed because ${spent}.`;
    const code = isUser ? "BackoffLimitExceeded" : "SystemBackoffLimitExceeded";
    fail(draft, inputs, { code, kind: failure.kind, message });
  } else {
    const reason = reasonOf(job, "Restarting");
    const message = `${job.spec.kind} ${job.name} is restarting because it failed: ${why}.`;
    changeCondition(draft, { type: "Restarting", status: "True", reason, message }, nowMs);
    const { outputs: _left, ...status } = draft.status;
    draft.status = { ...status, phase: "RESTARTING" };
    draft.events.push({ type: "Warning", reason, message });
  }
  leaveAttempt(draft, inputs, cleanup ? "abort" : "finalize");
}

function fail(draft: Draft, inputs: Inputs, { code, kind, message }: NonNullable<ReadTransition["failure"]>): void {
  const failure = { code, kind, message, container: null, exitCode: null };
  finishJob(draft, inputs, { phase: "FAILED", failure, message });
}

/** Ends the attempt, as its plugin has decided, by a call of `abort` or `finalize`. */
function leaveAttempt(draft: Draft, inputs: Inputs, stage: "abort" | "finalize"): void {
  const { plugin } = draft.status;
  if (plugin !== undefined) changePlugin(draft, { ...plugin, stage, ...fresh(inputs) });
}

/** After `finalize`: begins the next attempt of a live job, without the state of the last one. */
function afterFinalize(draft: Draft, inputs: Inputs, plugin: PluginRecord): void {
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

const EVENT_BYTES_MAX = 1_024;

/** Adds the events that a plugin recorded itself. */
function noteEvents(draft: Draft, events: readonly PluginEvent[]): void {
  for (const { reason, message, isWarning = false } of events) {
    const type = isWarning ? "Warning" : "Normal";
    draft.events.push({ type, reason, message: foreignText(message, EVENT_BYTES_MAX) });
  }
}

const OUTPUTS_TOLD_MAX = 20;

/** Records outputs that are new, with an event that names them. */
function noteOutputs(draft: Draft, { job }: Inputs, { outputs }: ReadTransition): void {
  if (outputs === null || canonicalJson(outputs) === canonicalJson(draft.status.outputs ?? {})) return;
  draft.status = { ...draft.status, outputs };
  const names = Object.keys(outputs);
  const more = names.length > OUTPUTS_TOLD_MAX ? ` and ${names.length - OUTPUTS_TOLD_MAX} more` : "";
  const told = names.length === 0 ? "none" : `${names.slice(0, OUTPUTS_TOLD_MAX).join(", ")}${more}`;
  const message = `${job.spec.kind} ${job.name} has recorded outputs: ${told}.`;
  draft.events.push({ type: "Normal", reason: reasonOf(job, "OutputsRecorded"), message });
}

/**
 * Records progress: another phase, or a higher version of the same phase. UNDEFINED means that the plugin has no
 * progress to report.
 */
function noteProgress(draft: Draft, { job, nowMs }: Inputs, { phase, version, reason, task }: ReadTransition): void {
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
